// WordPiece by likelihood: merges the pair whose count is largest beside those of its parts.
//
// With each merge of (a, b) the counts of a and b fall, so that the scores of all pairs that hold
// one of them rise: a queue whose entries can only be too high, as for BPE, would be wrong. The
// pairs of each symbol are kept, and those of a, of b and of what was made are queued again.
//
// Memory: 4 bytes for each character of the words, 4 for each word and pair in it, about 150 bytes
// for each pair that reaches the least count, and up to 5 queued entries of 48 bytes for it.
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "recipes/likelihood_score.h"
#include "recipes/wordpiece_words.h"
#include "train/pair_index.h"
#include "train/pair_trainer.h"

namespace beam_bpe {

struct WordPieceRules {
  int64_t max_tokens;                  // stop at so many tokens, reserved ones among them
  int64_t max_merges;                  // and after so many merges
  int64_t min_frequency;               // a pair that occurs less often is not merged; at least 1
  TieOrder tie_order;                  // kId, kBytes or kFirst
  std::vector<std::string> reserved;   // written tokens with the first ids
  std::vector<std::string> forbidden;  // written forms that no merge may make
};

struct LearnedWordPieces {
  std::vector<std::string> tokens;  // reserved, alphabet, made; by id
  std::vector<uint32_t> left;       // id of the left part of each merge
  std::vector<uint32_t> right;      // id of its right part
  std::vector<LikelihoodScore> scores;
  StopReason stop_reason;           // kVocabSize or kExhausted
};

class WordPieceTrainer {
 public:
  WordPieceTrainer(WordPieceWords words, WordPieceRules rules);

  LearnedWordPieces train(const TrainingProgress& progress);

 private:
  struct Symbol {
    WordPiece piece;
    int64_t count;                  // occurrences now
    std::vector<uint32_t> records;  // pairs that hold it and may be merged; some no longer
  };
  // What PairIndex does not hold of a pair.
  struct Places {
    std::vector<uint32_t> words;  // ascending; some hold the pair no more
    uint32_t head = 0;            // elements at the front known to hold it no more
    bool is_allowed = true;       // whether the rules let it be merged
  };
  struct Entry {
    LikelihoodScore score;
    uint64_t order;   // smaller wins among equal scores, but for the order by bytes
    uint32_t record;
  };

  uint32_t add_symbol(WordPiece piece);
  void count_all();
  void add_pair(uint32_t left, uint32_t right, int64_t weight, uint32_t word);
  bool allows(uint64_t key) const;
  uint64_t order_of(uint32_t record);
  LikelihoodScore score_of(uint32_t record);
  void push(uint32_t record);
  void push_all(uint32_t symbol, uint32_t but, uint32_t and_but);
  bool before(const Entry& a, const Entry& b) const;
  bool take_best(Entry* best);
  void rebuild_queue();
  uint32_t merge(uint32_t record);
  bool merge_in_word(uint32_t word, uint32_t left, uint32_t right, uint32_t made);
  uint32_t made_by(uint32_t left, uint32_t right);

  WordPieceWords words_;
  WordPieceRules rules_;
  std::vector<uint32_t> sizes_;  // symbols of each word now, at the front of its place
  std::vector<Symbol> symbols_;
  std::unordered_map<std::string, uint32_t> symbol_of_;  // by written form
  std::unordered_set<std::string> forbidden_;
  PairIndex pairs_;
  std::vector<Places> places_;   // by record
  std::vector<Entry> queue_;     // a heap
  std::vector<uint32_t> before_; // scratch: a word as it was
  std::vector<char> touched_;    // scratch: which of its symbols were merged
};

}  // namespace beam_bpe
