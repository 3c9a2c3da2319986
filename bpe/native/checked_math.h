// 64-bit counts that raise instead of wrapping: a wrapped count would silently lose the most
// frequent merges of a large corpus.
#pragma once

#include <cstdint>

#include "errors.h"

namespace beam_bpe {

// The sum of two counts; throws CountTableError beyond 2^63 - 1. `what` names the counted thing.
inline int64_t checked_add(int64_t a, int64_t b, const char* what) {
  int64_t sum;
  if (__builtin_add_overflow(a, b, &sum)) {
    throw CountTableError(std::string("the count of ") + what +
                          " exceeds 2^63 - 1; divide all counts by a common factor");
  }
  return sum;
}

}  // namespace beam_bpe
