// Distinct words and how often they occur: the hash table of counting.
//
// Words of up to 15 bytes live in the table itself, two entries to a cache line; longer ones in a
// second table, their bytes in an arena. Memory: 32 bytes an entry at a load of 3/8 to 3/4, for
// longer words 56 to 80 bytes and their length.
#pragma once

#include <cstdint>
#include <string_view>
#include <vector>

#include "memory/large_array.h"
#include "scan/pattern_scan.h"

namespace beam_bpe {

// Distinct words in ascending order of their bytes.
struct WordCounts {
  std::vector<char> bytes;       // all words, one after another
  std::vector<int64_t> offsets;  // words + 1: where each word starts in `bytes`
  std::vector<int64_t> counts;   // at least 1
  std::vector<int64_t> firsts;   // smallest byte position of each word
};

class WordTable {
 public:
  // `what` names a word in errors.
  explicit WordTable(const char* what = "a word") : what_(what) { clear(); }

  // Counts the pre-tokens of a document whose first byte has the position `base`.
  // Throws CountTableError if a count exceeds 2^63 - 1, like all that adds.
  void count_document(std::string_view document, int64_t base, const Scan& scan);

  // Adds `count` occurrences of a word, the first of them at `first`.
  void add(std::string_view word, int64_t count, int64_t first);

  // Adds everything that another table holds.
  void add_all(const WordTable& other);

  size_t size() const { return short_words_ + long_words_.size(); }

  // Memory held, in bytes.
  size_t memory_bytes() const;

  // All words, sorted.
  WordCounts sorted() const;

  // Forgets all words, and gives the memory back.
  void clear();

 private:
  static constexpr size_t kLongestShort = 15;
  static constexpr size_t kBatch = 256;  // pre-tokens from scan to table at a time

  // The bytes of a short word, zeros, and the length in the last byte: equal keys, equal words.
  struct Key {
    uint64_t low;
    uint64_t high;
    bool operator==(const Key& other) const { return low == other.low && high == other.high; }
  };
  struct Entry {
    Key key;        // the length byte of no word is 0, so an all-zero key is a free entry
    int64_t count;  // occurrences
    int64_t first;  // smallest position
  };
  struct LongWord {
    uint64_t hash;    // of the bytes
    uint64_t start;   // in the arena
    uint64_t length;  // bytes
    int64_t count;
    int64_t first;
  };
  struct LongSlot {
    uint32_t tag;        // low half of the hash
    uint32_t word;       // index + 1 of a long word; 0: free
  };
  struct Pending {
    Key key;
    size_t slot;     // where the key's probing starts
    int64_t first;   // position of the occurrence
  };

  static Key key_of(const char* bytes, size_t length);
  static Key key_of_padded(const char* bytes, size_t length);
  static void append_short(const Key& key, std::vector<char>* bytes);
  static uint64_t hash_of(const Key& key);
  static uint64_t hash_of(std::string_view word);

  void count_batch(const char* text, size_t readable, const uint32_t* ends, size_t count,
                   int64_t base);
  void add_short(const Key& key, size_t slot, int64_t count, int64_t first);
  void add_long(std::string_view word, uint64_t hash, int64_t count, int64_t first);
  void make_room(size_t added);
  void grow_long_slots();
  std::string_view bytes_of(const LongWord& word) const {
    return {arena_.data() + word.start, word.length};
  }

  const char* what_;
  LargeArray<Entry> entries_;        // short words, open addressing, a power of two
  int shift_ = 0;                    // a hash's top bits are its first slot
  size_t short_words_ = 0;           // entries in use
  std::vector<LongWord> long_words_;
  std::vector<LongSlot> long_slots_;  // open addressing, a power of two, at most half full
  std::vector<char> arena_;           // bytes of long words
};

}  // namespace beam_bpe
