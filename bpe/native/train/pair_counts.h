// Counts of all pairs of neighbouring ids, for merge rounds over many shards.
#pragma once

#include <cstdint>
#include <vector>

#include "train/merge_limits.h"
#include "rounds/token_sequences.h"

namespace beam_bpe {

// Pairs that occur, ascending by (left, right).
struct PairCounts {
  std::vector<uint32_t> left;    // id
  std::vector<uint32_t> right;   // id
  std::vector<int64_t> counts;   // places that hold the pair, overlaps included, times the weight
};

// uint32 left ids, uint32 right ids, int64 counts.
std::vector<OwnedColumn> to_columns(PairCounts pairs);

// Pairs within the sequences, never across two, that a token may contain. `token_count`: ids are
// below it.
// Memory beside the result: 2 bytes for each token (4 if ids are uint32), 16 if sequences have
// weights, and 16 for each id; for few ids 8 bytes for each possible pair, at most 16 MiB.
// Throws CountTableError if a pair occurs more than 2^63 - 1 times.
template <class Id>
PairCounts count_pairs(const TokenSequences<Id>& sequences, size_t token_count,
                       const MergeLimits& limits);

}  // namespace beam_bpe
