// The scans with AVX2 instructions.
//
// Compiled with more instructions than the rest of the library: nothing here may have external
// linkage but `avx2_scans`, and no header with inline functions of the standard library is used.
#include <immintrin.h>

#include "scan/block_scan.h"

namespace beam_bpe {
namespace {

struct BitOffsets {
  alignas(8) uint8_t of[256][8] = {};  // of each byte, the numbers of its set bits in order

  constexpr BitOffsets() {
    for (unsigned byte = 0; byte < 256; ++byte) {
      for (unsigned bit = 0, count = 0; bit < 8; ++bit) {
        if (byte >> bit & 1) of[byte][count++] = static_cast<uint8_t>(bit);
      }
    }
  }
};

constexpr BitOffsets kBitOffsets;

struct FirstBytes {
  uint8_t of[2 * kBlock] = {};  // from kBlock - n on: the mask of the first n bytes of a block

  constexpr FirstBytes() {
    for (size_t i = 0; i < kBlock; ++i) of[i] = 0xFF;
  }
};

constexpr FirstBytes kFirstBytes;

struct Avx2 {
  struct Block {
    __m256i low, high;
  };

  static Block load(const uint8_t* bytes) {
    const auto* halves = reinterpret_cast<const __m256i*>(bytes);
    return {_mm256_loadu_si256(halves), _mm256_loadu_si256(halves + 1)};
  }

  // A whole block is read; what is not among the first `count` bytes counts as zero.
  static Block load_first(const uint8_t* bytes, size_t count) {
    const Block block = load(bytes);
    const Block mask = load(kFirstBytes.of + kBlock - count);
    return {_mm256_and_si256(block.low, mask.low), _mm256_and_si256(block.high, mask.high)};
  }

  static uint64_t bits(__m256i low, __m256i high) {
    return static_cast<uint32_t>(_mm256_movemask_epi8(low)) |
           static_cast<uint64_t>(static_cast<uint32_t>(_mm256_movemask_epi8(high))) << 32;
  }

  static uint64_t high_bits(const Block& block) { return bits(block.low, block.high); }

  static uint64_t equal(const Block& block, char byte) {
    const __m256i wanted = _mm256_set1_epi8(byte);
    return bits(_mm256_cmpeq_epi8(block.low, wanted), _mm256_cmpeq_epi8(block.high, wanted));
  }

  // Bytes first..last, unsigned: shifted to the top of the signed range, one comparison is enough.
  static uint64_t in_range(const Block& block, char first, char last) {
    const __m256i shift = _mm256_set1_epi8(static_cast<char>(0x7F - last));
    const __m256i below = _mm256_set1_epi8(static_cast<char>(0x7F - (last - first) - 1));
    return bits(_mm256_cmpgt_epi8(_mm256_add_epi8(block.low, shift), below),
                _mm256_cmpgt_epi8(_mm256_add_epi8(block.high, shift), below));
  }

  static uint64_t letters(const Block& block) {
    const __m256i case_bit = _mm256_set1_epi8(0x20);
    return in_range({_mm256_or_si256(block.low, case_bit), _mm256_or_si256(block.high, case_bit)},
                    'a', 'z');
  }

  // Writes base + number of each set bit of `mask`; may overwrite 8 more. Returns the end.
  static uint32_t* write_bits(uint64_t mask, uint32_t base, uint32_t* out) {
    __m256i offset = _mm256_set1_epi32(static_cast<int>(base));
    const __m256i step = _mm256_set1_epi32(8);
    for (int i = 0; i < 8; ++i) {
      const auto byte = static_cast<uint8_t>(mask >> (8 * i));
      const __m128i numbers =
          _mm_loadl_epi64(reinterpret_cast<const __m128i*>(kBitOffsets.of[byte]));
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out),
                          _mm256_add_epi32(_mm256_cvtepu8_epi32(numbers), offset));
      offset = _mm256_add_epi32(offset, step);
      out += __builtin_popcount(byte);
    }
    return out;
  }

  static uint64_t extract(uint64_t mask, uint64_t from) { return _pext_u64(mask, from); }
  static uint64_t deposit(uint64_t bits, uint64_t to) { return _pdep_u64(bits, to); }
};

}  // namespace

const ScanFunctions& avx2_scans() {
  static constexpr ScanFunctions functions = block_scans<Avx2>();
  return functions;
}

}  // namespace beam_bpe
