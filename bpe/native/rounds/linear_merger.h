// Merges in one long sequence of tokens, in linear time: the places of each merge are listed when
// they come into being, which is from left to right, and taken merge by merge.
#pragma once

#include <cstdint>
#include <vector>

#include "train/pair_lookup.h"

namespace beam_bpe {

class LinearMerger {
 public:
  // Merge i makes token first_id + i of left[i] and right[i], which are made before; `ranks` finds
  // i by the pair. All must outlive this.
  LinearMerger(const std::vector<uint32_t>& left, const std::vector<uint32_t>& right,
               uint32_t first_id, const PairLookup& ranks);

  // Takes a sequence of 1 to 2^32 - 3 tokens below first_id; throws InputError for a longer one.
  template <class Id>
  void start(const Id* ids, size_t length);

  // Applies all merges, in their order.
  void merge_all();

  // Writes the tokens; returns where they end.
  template <class Out>
  Out* write(Out* out) const {
    for (size_t at = 1; units_[at] != kEdge; at += units_of(units_[at])) {
      *out++ = static_cast<Out>(units_[at]);
    }
    return out;
  }

 private:
  // No token ids: those are below 2^32 - 2.
  static constexpr uint32_t kEdge = UINT32_MAX;      // before and after the sequence
  static constexpr uint32_t kDead = UINT32_MAX - 1;  // inside a token

  // Old tokens that a token takes.
  uint32_t units_of(uint32_t token) const {
    return token < first_id_ ? 1 : units_of_made_[token - first_id_];
  }
  void list(uint32_t left, uint32_t right, uint32_t seam);
  void merge(uint32_t rank);

  const std::vector<uint32_t>& left_;
  const std::vector<uint32_t>& right_;
  uint32_t first_id_;
  const PairLookup& ranks_;
  std::vector<uint32_t> units_of_made_;       // by merge
  std::vector<uint32_t> units_;               // a token stands at its first and its last unit
  std::vector<std::vector<uint32_t>> seams_;  // by merge: first units of right parts, ascending
  std::vector<uint32_t> waiting_;             // heap: merges whose lists are not empty
};

}  // namespace beam_bpe
