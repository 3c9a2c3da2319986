// Pairs of neighbouring symbols under training: how often each occurs, and where.
#pragma once

#include <cstdint>
#include <memory>
#include <unordered_map>
#include <vector>

#include "memory/large_array.h"
#include "memory/pair_key.h"
#include "train/symbol_sequence.h"

namespace beam_bpe {

// The two of a `pair_key`.
inline Symbol left_of(uint64_t key) { return static_cast<Symbol>(key >> 32); }
inline Symbol right_of(uint64_t key) { return static_cast<Symbol>(key); }

struct PairRecord {
  uint64_t key;         // the pair
  int64_t count;        // occurrences in the current text; 0 once it is merged
  uint32_t* seams;      // ascending positions of the right token's first unit, some out of date
  uint32_t seam_count;  // elements of `seams`
  uint32_t head;        // elements at the front of `seams` known to be out of date
};

// Records by insertion order, and an open-addressing table from key to record.
class PairIndex {
 public:
  static constexpr uint32_t kNone = 0xffffffff;

  PairIndex() { clear(); }

  void clear();
  uint32_t size() const { return static_cast<uint32_t>(records_.size()); }
  PairRecord& operator[](uint32_t record) { return records_[record]; }

  // The record of a pair; kNone if there is none.
  uint32_t find(uint64_t key) const {
    const uint64_t hash = mix_key(key);
    for (size_t i = hash >> shift_;; i = (i + 1) & mask_) {
      const Slot slot = slots_[i];
      if (slot.record == kNone) return kNone;
      if (slot.tag == static_cast<uint32_t>(hash) && records_[slot.record].key == key) {
        return slot.record;
      }
    }
  }

  void prefetch(uint64_t key) const { __builtin_prefetch(&slots_[mix_key(key) >> shift_]); }

  // Adds an empty record for a pair that has none; returns it.
  uint32_t insert(uint64_t key);

 private:
  struct Slot {
    uint32_t tag;     // low half of the key's hash
    uint32_t record;  // kNone: the slot is free
  };

  void place(uint64_t hash, uint32_t record);
  void grow();

  std::vector<PairRecord> records_;
  std::vector<Slot> slots_;  // a power of two, at most half full
  size_t mask_ = 0;          // slots - 1
  int shift_ = 0;            // a hash's top bits are its first slot
};

// Memory for the lists of seams: bump allocation, long lists apart so that they can be given back.
class SeamArena {
 public:
  uint32_t* allocate(size_t count);
  // The list is no longer needed.
  void release(uint32_t* list, size_t count);
  void clear();
  // Elements in lists that were not released.
  size_t live() const { return live_; }

 private:
  static constexpr size_t kBlock = size_t{1} << 18;
  static constexpr size_t kLong = size_t{1} << 14;

  std::vector<LargeArray<uint32_t>> blocks_;                      // short lists
  size_t used_ = kBlock;                                          // elements of the last block
  std::unordered_map<uint32_t*, LargeArray<uint32_t>> long_lists_;  // by their address
  size_t live_ = 0;
};

}  // namespace beam_bpe
