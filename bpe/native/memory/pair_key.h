// Pairs of 32-bit numbers as keys of hash tables.
#pragma once

#include <cstdint>

namespace beam_bpe {

// (left, right) as one number; ascending keys are ascending (left, right).
inline uint64_t pair_key(uint32_t left, uint32_t right) { return uint64_t{left} << 32 | right; }

// Spreads a key over all 64 bits.
inline uint64_t mix_key(uint64_t key) {
  key *= 0x9e3779b97f4a7c15;
  key ^= key >> 32;
  return key * 0xd6e8feb86659fd93;
}

}  // namespace beam_bpe
