// BPE of a short pre-token: repeated scans of an array of pair ranks.
#pragma once

#include <cstddef>
#include <cstdint>

#include "encode/merge_table.h"

namespace beam_bpe {

// Quadratic, but faster than anything else up to about this many bytes.
inline constexpr size_t kShortPretoken = 24;

// Writes the inner tokens of pretoken[0, size), 1 <= size <= kKeyBytes, to `tokens` (room for size)
// and returns their number.
inline size_t short_merge(const MergeTable& table, const uint8_t* pretoken, size_t size,
                          uint32_t* tokens) {
  uint32_t ranks[64];  // of the pair that starts at each token
  for (size_t i = 0; i + 1 < size; ++i) {
    tokens[i] = pretoken[i];
    ranks[i] = table.merged_bytes(pretoken[i], pretoken[i + 1]);
  }
  tokens[size - 1] = pretoken[size - 1];
  while (size > 1) {
    uint32_t best = kNoToken;
    size_t at = 0;
    for (size_t i = 0; i + 1 < size; ++i) {
      at = ranks[i] < best ? i : at;
      best = ranks[i] < best ? ranks[i] : best;
    }
    if (best == kNoToken) break;
    tokens[at] = best;
    --size;
    for (size_t i = at + 1; i < size; ++i) {
      tokens[i] = tokens[i + 1];
      ranks[i] = ranks[i + 1];
    }
    if (at + 1 < size) ranks[at] = table.merged(tokens[at], tokens[at + 1]);
    if (at > 0) ranks[at - 1] = table.merged(tokens[at - 1], tokens[at]);
  }
  return size;
}

}  // namespace beam_bpe
