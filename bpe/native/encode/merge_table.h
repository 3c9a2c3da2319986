// The merges of a model in normal form: one merge per token, numbered by rank.
//
// Inside the encoder tokens have "inner" numbers: byte b is b, and the results of the merges that
// can happen follow in rank order from 256. So the inner number of a merge's result also is its
// priority, which is all that the merge loops compare. `outer_id` gives the model's ids back.
//
// Of the merges that make one token only one can happen. Until the token is there no merge crosses
// its ends, so that the merges within it are those of its bytes on their own, whatever stands
// around it and whatever the ranks are. The merge that comes last then is kept, the others are
// dropped; and all are dropped for tokens that merges do not reach, which only a look-up of whole
// pre-tokens gives.
//
// The table holds no early tokens (see merge_list.h), nor tokens whose bytes contain those of one.
// In a pre-token that contains none either, none of the merges left out can happen.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "encode/merge_list.h"

namespace beam_bpe {

class MergeTable {
 public:
  struct Pair {
    uint32_t left;
    uint32_t right;
  };

  // last_merges: as `merges` gives it, kNoToken also for tokens that the table is not to hold.
  // Throws VocabularyError for more than 2^21 - 256 merges.
  MergeTable(const EncodingModel& model, const MergeList& merges,
             const std::vector<uint32_t>& last_merges);

  size_t token_count() const { return pairs_.size(); }  // inner numbers, bytes included
  uint32_t outer_id(uint32_t token) const { return outer_[token]; }
  uint32_t token_size(uint32_t token) const { return sizes_[token]; }
  uint32_t longest_token() const { return longest_; }

  // The pair that `token` is made from; of a byte, the byte itself twice.
  Pair split(uint32_t token) const { return pairs_[token]; }

  // Inner number of what the pair merges into, kNoToken if it does not merge.
  uint32_t merged(uint32_t left, uint32_t right) const {
    const uint64_t key = pack(left, right);
    const uint64_t hash = hash_of(key);
    // Most pairs do not merge, and the filter is small enough to stay in the processor's cache.
    const uint64_t bit = hash >> filter_shift_;
    if (!(filter_[bit / 64] >> (bit % 64) & 1)) return kNoToken;
    for (size_t slot = hash & slot_mask_;; slot = (slot + 1) & slot_mask_) {
      const uint64_t entry = slots_[slot];
      if (entry >> kValueBits == key) return static_cast<uint32_t>(entry & kValueMask);
      if (entry == kEmpty) return kNoToken;
    }
  }

  // The same for a pair of bytes, by direct index.
  uint32_t merged_bytes(uint8_t left, uint8_t right) const {
    return byte_pairs_[static_cast<size_t>(left) << 8 | right];
  }

 private:
  static constexpr unsigned kValueBits = 22;
  static constexpr uint64_t kValueMask = (uint64_t{1} << kValueBits) - 1;
  static constexpr uint64_t kEmpty = UINT64_MAX;

  static uint64_t pack(uint32_t left, uint32_t right) {
    return static_cast<uint64_t>(left) << 21 | right;
  }
  static uint64_t hash_of(uint64_t key) {
    key *= 0x9E3779B97F4A7C15u;
    return key ^ key >> 32;
  }
  void index_pairs();

  std::vector<Pair> pairs_;
  std::vector<uint32_t> outer_;
  std::vector<uint32_t> sizes_;
  uint32_t longest_ = 1;
  std::vector<uint64_t> slots_;  // left:21 right:21 result:22 bits, open addressing
  size_t slot_mask_ = 0;
  std::vector<uint64_t> filter_;  // a bit by the upper bits of the hash of each pair
  unsigned filter_shift_ = 0;
  std::vector<uint32_t> byte_pairs_;
};

}  // namespace beam_bpe
