// How much a merge raises the likelihood of the text: pairs / (lefts · rights), compared exactly.
#pragma once

#include <cstdint>

namespace beam_bpe {

// The counts of a pair and of its parts, none of them negative.
struct LikelihoodScore {
  int64_t pairs;
  int64_t lefts;
  int64_t rights;

  bool operator==(const LikelihoodScore& other) const {
    return pairs == other.pairs && lefts == other.lefts && rights == other.rights;
  }
};

// Below, at or above 0 as a's fraction is less than, equal to or greater than b's: the numerator of
// each (63 bits) times the denominator of the other (126 bits), in three limbs.
inline int compare_scores(const LikelihoodScore& a, const LikelihoodScore& b) {
  using Wide = unsigned __int128;
  struct Product {
    Wide high;
    uint64_t low;
  };
  const auto product = [](int64_t numerator, const LikelihoodScore& other) {
    const Wide denominator = static_cast<Wide>(other.lefts) * static_cast<uint64_t>(other.rights);
    const Wide low = static_cast<Wide>(numerator) * static_cast<uint64_t>(denominator);
    const Wide high = static_cast<Wide>(numerator) * static_cast<uint64_t>(denominator >> 64);
    return Product{high + (low >> 64), static_cast<uint64_t>(low)};
  };
  const Product left = product(a.pairs, b);
  const Product right = product(b.pairs, a);
  if (left.high != right.high) return left.high < right.high ? -1 : 1;
  if (left.low != right.low) return left.low < right.low ? -1 : 1;
  return 0;
}

}  // namespace beam_bpe
