// The encode passes with AVX2 and AES instructions.
//
// Compiled with more instructions than the rest of the library: nothing here may have external
// linkage but `avx2_passes`, and no header with inline functions of the standard library is used.
#include <immintrin.h>

#include "encode_passes.h"

namespace beam_bpe {
namespace {

// Batches of longer stretches clamp the index; rows beyond kKeyBytes are zero.
constexpr size_t kMaskRows = 2048;

// Constant-initialized: code of this file must not run before the processor has been asked.
struct alignas(64) MaskTable {
  uint8_t rows[kMaskRows][kKeyBytes] = {};

  constexpr MaskTable() {
    for (size_t size = 0; size <= kKeyBytes; ++size) {
      for (size_t i = 0; i < size; ++i) rows[size][i] = 0xFF;
    }
  }
};

constexpr MaskTable mask_table;

inline __m256i load_key(const uint8_t* piece, size_t mask_offset) {
  const auto* mask = reinterpret_cast<const __m256i*>(&mask_table.rows[0][0] + mask_offset);
  const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(piece));
  return _mm256_and_si256(bytes, _mm256_load_si256(mask));
}

// Three rounds of AES mix every byte into the 32 bits that are used.
inline uint32_t hash(__m256i key) {
  const __m128i round_key = _mm_setr_epi32(0x243F6A88, 0x05A308D3, 0x13198A2E, 0x03707344);
  __m128i mixed = _mm_aesenc_si128(_mm256_castsi256_si128(key), _mm256_extracti128_si256(key, 1));
  mixed = _mm_aesenc_si128(mixed, round_key);
  mixed = _mm_aesenc_si128(mixed, round_key);
  return static_cast<uint32_t>(_mm_cvtsi128_si32(mixed));
}

template <bool clamp>
inline size_t mask_offset(size_t size) {
  if (clamp && size >= kMaskRows) size = 0;
  return size * kKeyBytes;
}

template <bool clamp>
__attribute__((noinline)) void hash_pieces(const PassInput& input) {
  const uint8_t* const text = input.text;
  const uint32_t* const ends = input.ends;
  const uint8_t* const table = input.table;
  uint32_t* const slots = input.slots;
  const uint32_t slot_mask = input.slot_mask;
  size_t start = 0;
  for (size_t i = 0, count = input.count; i < count; ++i) {
    const size_t end = ends[i];
    const __m256i key = load_key(text + start, mask_offset<clamp>(end - start));
    const uint32_t slot = hash(key) & slot_mask;
    _mm_prefetch(reinterpret_cast<const char*>(table + slot), _MM_HINT_T0);
    slots[i] = slot;
    start = end;
  }
}

template <typename Id, bool clamp>
__attribute__((noinline)) Id* probe_pieces(const PassInput& input, MissFunction<Id> miss,
                                           void* owner, Id* out) {
  const uint8_t* const text = input.text;
  const uint32_t* const ends = input.ends;
  const uint8_t* const table = input.table;
  const uint32_t* const slots = input.slots;
  size_t start = 0;
  for (size_t i = 0, count = input.count; i < count; ++i) {
    const size_t end = ends[i];
    const __m256i key = load_key(text + start, mask_offset<clamp>(end - start));
    const auto* entry = reinterpret_cast<const CacheEntry<Id>*>(table + slots[i]);
    const __m256i difference =
        _mm256_xor_si256(key, *reinterpret_cast<const __m256i*>(entry->key));
    if (__builtin_expect(_mm256_testz_si256(difference, difference), 1)) {
      const __m256i ids = *reinterpret_cast<const __m256i*>(entry->ids);
      _mm256_storeu_si256(reinterpret_cast<__m256i*>(out), ids);
      out += entry->count;
    } else {
      out = miss(owner, text + start, end - start, slots[i], out);
    }
    start = end;
  }
  return out;
}

bool needs_clamp(const PassInput& input) {
  return input.count && input.ends[input.count - 1] >= kMaskRows;
}

void hash_batch(const PassInput& input) {
  needs_clamp(input) ? hash_pieces<true>(input) : hash_pieces<false>(input);
}

template <typename Id>
Id* probe_batch(const PassInput& input, MissFunction<Id> miss, void* owner, Id* out) {
  return needs_clamp(input) ? probe_pieces<Id, true>(input, miss, owner, out)
                            : probe_pieces<Id, false>(input, miss, owner, out);
}

uint32_t hash_key(const uint8_t* key) {
  return hash(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(key)));
}

bool has_zero(const uint8_t* text, size_t size) {
  __m256i least = _mm256_set1_epi8(-1);
  size_t i = 0;
  for (; i + 32 <= size; i += 32) {
    least = _mm256_min_epu8(least,
                            _mm256_loadu_si256(reinterpret_cast<const __m256i*>(text + i)));
  }
  if (_mm256_movemask_epi8(_mm256_cmpeq_epi8(least, _mm256_setzero_si256()))) return true;
  for (; i < size; ++i) {
    if (!text[i]) return true;
  }
  return false;
}

}  // namespace

const EncodePasses& avx2_passes() {
  static const EncodePasses passes = {hash_batch, probe_batch<uint16_t>, probe_batch<uint32_t>,
                                      hash_key, has_zero};
  return passes;
}

}  // namespace beam_bpe
