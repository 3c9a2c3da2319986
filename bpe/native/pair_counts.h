// Counts of all pairs of neighbouring ids, for merge rounds over many shards.
#pragma once

#include <cstdint>
#include <vector>

#include "merge_limits.h"
#include "token_sequences.h"

namespace beam_bpe {

// Pairs that occur, ascending by (left, right).
struct PairCounts {
  std::vector<uint32_t> left;    // id
  std::vector<uint32_t> right;   // id
  std::vector<int64_t> counts;   // places that hold the pair, overlaps included, times the weight
};

// Pairs within the sequences, never across two, that `limits` allows; a null pointer allows all,
// else every id must have a token there.
// Memory: 16 bytes for each distinct pair at a load of 3/8 to 3/4, then 48 while they are sorted
// and handed over; for small ids 8 bytes for each possible pair, at most 16 MiB.
// Throws CountTableError if a pair occurs more than 2^63 - 1 times.
template <class Id>
PairCounts count_pairs(const TokenSequences<Id>& sequences, const MergeLimits* limits);

}  // namespace beam_bpe
