// The state of a shard between merge rounds: sequences of token ids, some of them many times.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>

#include "python/arrow_columns.h"
#include "memory/errors.h"

namespace beam_bpe {

// Sequence i is ids[offsets[i]] to ids[offsets[i + 1] - 1]; borrows everything.
template <class Id>
struct TokenSequences {
  const Id* ids;
  const int64_t* offsets;
  int64_t count;           // sequences
  const int64_t* weights;  // occurrences of each sequence; null: all occur once

  const Id* begin(int64_t i) const { return ids + offsets[i]; }
  size_t length(int64_t i) const { return static_cast<size_t>(offsets[i + 1] - offsets[i]); }
  size_t total() const { return static_cast<size_t>(offsets[count] - offsets[0]); }
  int64_t weight(int64_t i) const { return weights == nullptr ? 1 : weights[i]; }

  // One more than the largest id; 0 if there are no ids.
  uint64_t id_limit() const {
    const Id* const first = ids + offsets[0];
    Id largest = 0;
    for (size_t i = 0; i < total(); ++i) largest = std::max(largest, first[i]);
    return total() == 0 ? 0 : uint64_t{largest} + 1;
  }

  // Throws InputError unless all ids are below `limit`. `remedy` says what such an id means.
  void check_ids(uint64_t limit, const char* remedy) const {
    if (id_limit() <= limit) return;
    for (int64_t i = 0; i < count; ++i) {
      for (size_t at = 0; at < length(i); ++at) {
        if (begin(i)[at] < limit) continue;
        throw InputError("sequence " + std::to_string(i) + " holds the id " +
                         std::to_string(begin(i)[at]) + " at place " + std::to_string(at) +
                         ", but ids end at " + std::to_string(limit) + ": " + remedy);
      }
    }
  }
};

// The same as columns. Throws InputError for offsets that do not ascend within the ids, and
// CountTableError for weights below 1. `weights`: null if all sequences occur once.
template <class Id>
TokenSequences<Id> make_sequences(const Id* ids, int64_t id_count, const Int64Column& offsets,
                                  const Int64Column* weights) {
  if (offsets.length < 1 || offsets.values[0] < 0 ||
      offsets.values[offsets.length - 1] > id_count ||
      !std::is_sorted(offsets.values, offsets.values + offsets.length)) {
    throw InputError("offsets must ascend within the ids, one more than there are lists");
  }
  const int64_t count = offsets.length - 1;
  if (weights != nullptr && weights->length != count) {
    throw InputError("there are " + std::to_string(count) + " sequences and " +
                     std::to_string(weights->length) + " weights: pass one for each");
  }
  for (int64_t i = 0; weights != nullptr && i < count; ++i) {
    if (weights->values[i] >= 1) continue;
    throw CountTableError("sequence " + std::to_string(i) + " has the weight " +
                          std::to_string(weights->values[i]) + ": weights start at 1");
  }
  return {ids, offsets.values, count, weights == nullptr ? nullptr : weights->values};
}

}  // namespace beam_bpe
