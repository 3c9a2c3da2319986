// 64-bit counts that raise instead of wrapping: a wrapped count would silently lose the most
// frequent merges of a large corpus.
#pragma once

#include <cstdint>
#include <limits>
#include <string>

#include "memory/errors.h"

namespace beam_bpe {

// The sum of two counts; throws CountTableError beyond 2^63 - 1. `what` is what occurs so often.
inline int64_t checked_add(int64_t a, int64_t b, const char* what) {
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) {
    throw CountTableError(std::string(what) + " occurs more than " +
                          std::to_string(std::numeric_limits<int64_t>::max()) +
                          " times: train on a sample, or divide the counts");
  }
  return sum;
}

}  // namespace beam_bpe
