#include "train/pair_sketch.h"

#include <array>

namespace beam_bpe {

namespace {

// Counts in classes of an eighth of a power of two, in ascending order.
int class_of(uint32_t count) {
  if (count < 8) return static_cast<int>(count);
  const int exponent = 31 - __builtin_clz(count);
  return (exponent - 2) * 8 + static_cast<int>((count >> (exponent - 3)) & 7);
}

int64_t smallest_of_class(int index) {
  if (index < 8) return index;
  const int exponent = index / 8 + 2;
  return (int64_t{8} + index % 8) << (exponent - 3);
}

}  // namespace

int64_t PairSketch::count_covering(double share) const {
  std::array<uint64_t, 256> occurrences{};
  uint64_t total = 0;
  int highest = 0;
  for (size_t i = 0; i < cells_.size(); ++i) {
    const int index = class_of(cells_[i]);
    occurrences[index] += cells_[i];
    total += cells_[i];
    highest = std::max(highest, index);
  }
  const auto allowed = static_cast<uint64_t>(static_cast<double>(total) * share);
  uint64_t covered = occurrences[highest];
  int index = highest;
  while (index > 1 && covered + occurrences[index - 1] <= allowed) covered += occurrences[--index];
  return smallest_of_class(index);
}

}  // namespace beam_bpe
