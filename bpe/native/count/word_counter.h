// Counts the pre-tokens of many documents, on several threads, with a table each.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "python/arrow_columns.h"
#include "scan/pattern_scan.h"
#include "count/word_table.h"

namespace beam_bpe {

// The parts of counted words as columns: large_binary words, int64 counts, int64 first positions.
std::vector<OwnedColumn> to_columns(WordCounts words);

class WordCounter {
 public:
  // `scan`: none where the caller brings words. `threads`: at least 1.
  WordCounter(std::optional<Scan> scan, int threads);

  // Counts every element as a document of its own; their positions go on from call to call.
  void add_documents(const BinaryColumn& documents);

  // Counts every element as a word; their positions go on from call to call.
  void add_words(const BinaryColumn& words);

  // Memory of all tables, in bytes.
  size_t memory_bytes() const;

  // All words so far, sorted; the counter is empty afterwards, but positions go on.
  WordCounts drain();

 private:
  void count_range(const BinaryColumn& documents, int64_t begin, int64_t end, WordTable* table);

  std::optional<Scan> scan_;
  std::vector<WordTable> tables_;  // one for each thread
  int64_t position_ = 0;           // bytes of everything added
};

}  // namespace beam_bpe
