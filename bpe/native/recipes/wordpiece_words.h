// Words as WordPiece sees them: a first character, and characters that continue it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "python/arrow_columns.h"

namespace beam_bpe {

// A piece: "##" stands before the text of one that continues a word.
struct WordPiece {
  std::string written;
  bool continues;
  uint32_t characters;  // code points of its text
};

struct WordPieceWords {
  std::vector<WordPiece> alphabet;  // pieces of one character, by the bytes of their written form
  std::vector<uint32_t> symbols;    // of all words, as positions in the alphabet
  std::vector<uint64_t> starts;     // of each word in `symbols`, and the end
  std::vector<int64_t> weights;     // occurrences of each word
  int64_t left_out_words = 0;       // words that no training can use
  int64_t left_out_uses = 0;        // their occurrences
};

struct WordPieceLimits {
  int64_t max_word_chars;  // longest word, in code points
  int64_t alphabet;        // so many characters, the most frequent ones; 0: all
};

// Words in the order of `first_positions`, or else as they come. Left out, and counted, are those of
// invalid UTF-8, empty or too long ones, and those with a character outside the alphabet; left out
// without counting, those that are white space.
// Throws CountTableError for a count below 1, for columns of different lengths, and if the
// characters occur more than 2^63 - 1 times in all.
WordPieceWords read_wordpiece_words(const BinaryColumn& words, const Int64Column& counts,
                                    const Int64Column* first_positions,
                                    const WordPieceLimits& limits);

}  // namespace beam_bpe
