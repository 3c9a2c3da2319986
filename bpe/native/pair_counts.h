// Counts of all pairs of neighbouring ids, for merge rounds over many shards.
#pragma once

#include <cstdint>
#include <vector>

#include "arrow_columns.h"

namespace beam_bpe {

// All pairs that occur, ascending by (left, right).
struct PairCounts {
  std::vector<uint32_t> left;    // id
  std::vector<uint32_t> right;   // id
  std::vector<int64_t> counts;   // adjacent places that hold the pair, overlaps included
};

// uint32 left ids, uint32 right ids, int64 counts.
std::vector<OwnedColumn> to_columns(PairCounts pairs);

// Pairs within the lists ids[offsets[i]] to ids[offsets[i + 1] - 1]; never across two lists.
// Memory: 16 bytes for each distinct pair at a load of 3/8 to 3/4, and 16 for the result.
// Throws InputError for offsets that do not ascend within the ids.
template <class Id>
PairCounts count_pairs(const Id* ids, int64_t id_count, const Int64Column& offsets);

}  // namespace beam_bpe
