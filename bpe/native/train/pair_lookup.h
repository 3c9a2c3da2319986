// A fixed list of pairs, and a quick answer to where in it a pair stands.
//
// Memory: 32 to 64 bytes a pair; or 4 for each of up to 2^18 possible pairs of small ids.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "train/pair_index.h"

namespace beam_bpe {

class PairLookup {
 public:
  static constexpr uint32_t kNone = UINT32_MAX;

  // Pair i is (left[i], right[i]). Throws InputError for a pair that stands there twice, and for
  // lists of different lengths.
  PairLookup(const std::vector<uint32_t>& left, const std::vector<uint32_t>& right);

  size_t size() const { return size_; }  // pairs

  // Where the pair stands, kNone if nowhere.
  uint32_t rank(uint32_t left, uint32_t right) const {
    if (!dense_.empty()) {
      return left < side_ && right < side_ ? dense_[left * side_ + right] : kNone;
    }
    const uint64_t hash = mix_key(pair_key(left, right));
    // Most pairs stand nowhere, and the filter is small enough to stay in the processor's cache.
    const uint64_t bit = hash >> filter_shift_;
    if (!(filter_[bit / 64] >> (bit % 64) & 1)) return kNone;
    for (size_t slot = hash & slot_mask_;; slot = (slot + 1) & slot_mask_) {
      const Slot& found = slots_[slot];
      if (found.rank == kNone || found.key == pair_key(left, right)) return found.rank;
    }
  }

  // Writes the rank of (ids[i], ids[i + 1]) to ranks[i], for i below `count`.
  template <class Id>
  void ranks_of(const Id* ids, size_t count, uint32_t* ranks) const {
    for (size_t i = 0; i < count; ++i) ranks[i] = rank(ids[i], ids[i + 1]);
  }

 private:
  struct Slot {
    uint64_t key;
    uint32_t rank;  // kNone: free
  };

  void index_dense(const std::vector<uint32_t>& left, const std::vector<uint32_t>& right);
  void index_slots(const std::vector<uint32_t>& left, const std::vector<uint32_t>& right);
  [[noreturn]] static void refuse_repeat(uint32_t left, uint32_t right);

  size_t size_;                   // pairs
  size_t side_ = 0;               // ids below it are in `dense_`
  std::vector<uint32_t> dense_;   // rank by left * side + right; empty: use the slots
  std::vector<Slot> slots_;       // open addressing, a power of two, at most half full
  size_t slot_mask_ = 0;
  std::vector<uint64_t> filter_;  // a bit by the upper bits of the hash of each pair
  unsigned filter_shift_ = 0;
};

}  // namespace beam_bpe
