// The AVX-512 intrinsics of scan_avx512.cc in plain C++, for processors without them.
//
// Included before the file under test (g++ -include), which then compiles for AVX2 machines: the
// same source lines run, instruction by instruction, on emulated vectors.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

namespace emulated {

struct Vector {
  uint8_t bytes[64];
};

inline Vector splat(char byte) {
  Vector result;
  std::memset(result.bytes, byte, 64);
  return result;
}

inline Vector splat32(int value) {
  Vector result;
  for (int i = 0; i < 16; ++i) std::memcpy(result.bytes + 4 * i, &value, 4);
  return result;
}

inline Vector load(const void* from) {
  Vector result;
  std::memcpy(result.bytes, from, 64);
  return result;
}

inline Vector load_some(uint64_t mask, const void* from) {
  Vector result;
  for (int i = 0; i < 64; ++i) {
    result.bytes[i] = mask >> i & 1 ? static_cast<const uint8_t*>(from)[i] : 0;
  }
  return result;
}

inline void store(void* to, const Vector& vector) { std::memcpy(to, vector.bytes, 64); }

inline uint64_t high_bits(const Vector& a) {
  uint64_t mask = 0;
  for (int i = 0; i < 64; ++i) mask |= static_cast<uint64_t>(a.bytes[i] >> 7) << i;
  return mask;
}

inline uint64_t equal(const Vector& a, const Vector& b) {
  uint64_t mask = 0;
  for (int i = 0; i < 64; ++i) mask |= static_cast<uint64_t>(a.bytes[i] == b.bytes[i]) << i;
  return mask;
}

inline uint64_t at_most(const Vector& a, const Vector& b) {
  uint64_t mask = 0;
  for (int i = 0; i < 64; ++i) mask |= static_cast<uint64_t>(a.bytes[i] <= b.bytes[i]) << i;
  return mask;
}

inline Vector subtract(const Vector& a, const Vector& b) {
  Vector result;
  for (int i = 0; i < 64; ++i) result.bytes[i] = static_cast<uint8_t>(a.bytes[i] - b.bytes[i]);
  return result;
}

inline Vector either(const Vector& a, const Vector& b) {
  Vector result;
  for (int i = 0; i < 64; ++i) result.bytes[i] = a.bytes[i] | b.bytes[i];
  return result;
}

inline Vector compress(uint64_t mask, const Vector& a) {
  Vector result = {};
  for (int i = 0, count = 0; i < 64; ++i) {
    if (mask >> i & 1) result.bytes[count++] = a.bytes[i];
  }
  return result;
}

// The arguments of _mm512_set_epi8 come highest byte first.
template <typename... Bytes>
Vector set(Bytes... bytes) {
  const int values[] = {bytes...};
  Vector result;
  for (int i = 0; i < 64; ++i) result.bytes[i] = static_cast<uint8_t>(values[63 - i]);
  return result;
}

inline __m128i quarter(const Vector& a, int index) {
  __m128i result;
  std::memcpy(&result, a.bytes + 16 * index, 16);
  return result;
}

inline Vector widen(__m128i bytes) {
  uint8_t narrow[16];
  std::memcpy(narrow, &bytes, 16);
  Vector result;
  for (int i = 0; i < 16; ++i) {
    const uint32_t value = narrow[i];
    std::memcpy(result.bytes + 4 * i, &value, 4);
  }
  return result;
}

inline Vector add32(const Vector& a, const Vector& b) {
  Vector result;
  for (int i = 0; i < 16; ++i) {
    uint32_t left;
    uint32_t right;
    std::memcpy(&left, a.bytes + 4 * i, 4);
    std::memcpy(&right, b.bytes + 4 * i, 4);
    left += right;
    std::memcpy(result.bytes + 4 * i, &left, 4);
  }
  return result;
}

}  // namespace emulated

#define __m512i emulated::Vector
#define _mm512_loadu_si512 emulated::load
#define _mm512_maskz_loadu_epi8 emulated::load_some
#define _mm512_storeu_si512 emulated::store
#define _mm512_movepi8_mask emulated::high_bits
#define _mm512_cmpeq_epi8_mask emulated::equal
#define _mm512_cmple_epu8_mask emulated::at_most
#define _mm512_sub_epi8 emulated::subtract
#define _mm512_or_si512 emulated::either
#define _mm512_set1_epi8(byte) emulated::splat(static_cast<char>(byte))
#define _mm512_set1_epi32 emulated::splat32
#define _mm512_set_epi8 emulated::set
#define _mm512_maskz_compress_epi8 emulated::compress
#define _mm512_castsi512_si128(vector) emulated::quarter(vector, 0)
#define _mm512_extracti32x4_epi32 emulated::quarter
#define _mm512_cvtepu8_epi32 emulated::widen
#define _mm512_add_epi32 emulated::add32
