// Upper bounds of all pair counts in little memory: one saturating counter for each hash of a pair.
// Exact as long as every pair has a counter of its own, which holds for small vocabularies.
#pragma once

#include <algorithm>
#include <cstdint>
#include <limits>
#include <vector>

#include "train/pair_index.h"

namespace beam_bpe {

class PairSketch {
 public:
  // For a text of `units` units over symbols below `symbols`.
  PairSketch(uint64_t units, Symbol symbols) : symbols_(symbols) {
    while (bits_ < 25 && (uint64_t{1} << bits_) < units / 4) ++bits_;
    direct_ = uint64_t{symbols} * symbols <= uint64_t{1} << bits_;
    cells_ = LargeArray<uint32_t>(size_t{1} << bits_);
    std::fill(cells_.data(), cells_.data() + cells_.size(), 0);
  }

  size_t cell_of(Symbol left, Symbol right) const {
    if (direct_) return size_t{left} * symbols_ + right;
    return mix_key(pair_key(left, right)) >> (64 - bits_);
  }

  void prefetch(size_t cell) const { __builtin_prefetch(&cells_[cell]); }

  void add(size_t cell, int64_t weight) {
    const uint64_t sum = cells_[cell] + static_cast<uint64_t>(weight);
    cells_[cell] = static_cast<uint32_t>(std::min<uint64_t>(sum, kSaturated));
  }

  // False only if no pair of this cell occurs `count` times.
  bool reaches(size_t cell, int64_t count) const {
    return (cells_[cell] == kSaturated) | (static_cast<int64_t>(cells_[cell]) >= count);
  }

  // The smallest count such that the cells that reach it hold at most `share` of all occurrences,
  // rounded to an eighth of a power of two; never above the largest cell.
  int64_t count_covering(double share) const;

  // The largest cell; INT64_MAX if it is saturated.
  int64_t largest() const {
    const uint32_t most = *std::max_element(cells_.data(), cells_.data() + cells_.size());
    return most == kSaturated ? std::numeric_limits<int64_t>::max() : most;
  }

 private:
  static constexpr uint32_t kSaturated = std::numeric_limits<uint32_t>::max();

  LargeArray<uint32_t> cells_;
  Symbol symbols_;
  int bits_ = 16;        // log2 of the number of cells
  bool direct_ = false;  // every pair has its own cell
};

}  // namespace beam_bpe
