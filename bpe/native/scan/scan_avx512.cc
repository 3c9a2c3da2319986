// The scans with AVX-512 instructions (VBMI2 among them).
//
// Compiled with more instructions than the rest of the library: nothing here may have external
// linkage but `avx512_scans`, and no header with inline functions of the standard library is used.
#include <immintrin.h>

#include "scan/block_scan.h"

// GCC 12 takes the undefined operands of its own intrinsics for mistakes.
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#pragma GCC diagnostic ignored "-Wuninitialized"

namespace beam_bpe {
namespace {

struct Avx512 {
  using Block = __m512i;

  static Block load(const uint8_t* bytes) { return _mm512_loadu_si512(bytes); }

  static Block load_first(const uint8_t* bytes, size_t count) {
    return _mm512_maskz_loadu_epi8((uint64_t{1} << count) - 1, bytes);
  }

  static uint64_t high_bits(Block block) { return _mm512_movepi8_mask(block); }

  static uint64_t equal(Block block, char byte) {
    return _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(byte));
  }

  static uint64_t in_range(Block block, char first, char last) {
    return _mm512_cmple_epu8_mask(_mm512_sub_epi8(block, _mm512_set1_epi8(first)),
                                  _mm512_set1_epi8(static_cast<char>(last - first)));
  }

  static uint64_t letters(Block block) {
    return in_range(_mm512_or_si512(block, _mm512_set1_epi8(0x20)), 'a', 'z');
  }

  // Writes base + number of each set bit of `mask`; may overwrite 63 more. Returns the end.
  static uint32_t* write_bits(uint64_t mask, uint32_t base, uint32_t* out) {
    const __m512i numbers = _mm512_set_epi8(
        63, 62, 61, 60, 59, 58, 57, 56, 55, 54, 53, 52, 51, 50, 49, 48, 47, 46, 45, 44, 43, 42, 41,
        40, 39, 38, 37, 36, 35, 34, 33, 32, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21, 20, 19, 18,
        17, 16, 15, 14, 13, 12, 11, 10, 9, 8, 7, 6, 5, 4, 3, 2, 1, 0);
    const __m512i found = _mm512_maskz_compress_epi8(mask, numbers);
    const __m512i offset = _mm512_set1_epi32(static_cast<int>(base));
    const auto write = [offset, out](int quarter, __m128i bytes) {
      _mm512_storeu_si512(out + 16 * quarter,
                          _mm512_add_epi32(_mm512_cvtepu8_epi32(bytes), offset));
    };
    write(0, _mm512_castsi512_si128(found));
    write(1, _mm512_extracti32x4_epi32(found, 1));
    const int count = __builtin_popcountll(mask);
    if (__builtin_expect(count > 32, 0)) {
      write(2, _mm512_extracti32x4_epi32(found, 2));
      write(3, _mm512_extracti32x4_epi32(found, 3));
    }
    return out + count;
  }

  static uint64_t extract(uint64_t mask, uint64_t from) { return _pext_u64(mask, from); }
  static uint64_t deposit(uint64_t bits, uint64_t to) { return _pdep_u64(bits, to); }
};

}  // namespace

const ScanFunctions& avx512_scans() {
  static constexpr ScanFunctions functions = block_scans<Avx512>();
  return functions;
}

}  // namespace beam_bpe
