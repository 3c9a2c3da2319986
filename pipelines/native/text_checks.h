// What can be told of text without knowing words: where a byte stands, and what is unusual.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "python/arrow_columns.h"

namespace beam_bpe {

// Whether bytes are well-formed UTF-8: the Unicode standard's table 3-7.
bool is_utf8(std::string_view text);

// Positions of a byte, ascending, from `start` on; none for a start after the end.
std::vector<int64_t> find_byte(std::string_view data, char byte, size_t start);

// Length of the longest of strings that stand one after the other, each after its own length in
// four bytes (little-endian); 0 for no strings, -1 where they do not end with the data.
int64_t longest_string(std::string_view data);

// How many texts have each feature; the first two are looked for in whole documents alone.
struct TextFeatures {
  int64_t empty = 0;
  int64_t whitespace_only = 0;  // Unicode's White_Space, and not empty
  int64_t invalid_utf8 = 0;
  int64_t nul = 0;
  int64_t cr = 0;    // a carriage return without a line feed after it
  int64_t crlf = 0;
};

// whole: a byte for each text, 0 unless it is a whole document. Throws InputError where their
// numbers differ.
TextFeatures count_text_features(const BinaryColumn& texts, std::string_view whole);

}  // namespace beam_bpe
