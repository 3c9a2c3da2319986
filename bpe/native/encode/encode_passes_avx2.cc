// The encode passes with AVX2 instructions.
//
// Compiled with more instructions than the rest of the library: nothing here may have external
// linkage but `avx2_passes`, and no header with inline functions of the standard library is used.
#include <immintrin.h>

#include "encode/encode_passes.h"

namespace beam_bpe {
namespace {

// Batches of longer segments clamp the index.
constexpr size_t kMaskRows = 4096;

// Constant-initialized: code of this file must not run before the processor has been asked.
struct alignas(64) KeyMasks {
  uint8_t rows[kMaskRows][kKeyBytes] = {};

  constexpr KeyMasks() {
    for (size_t size = 0; size < kMaskRows; ++size) {
      for (size_t i = 0; i < size && size <= kLongestKey; ++i) rows[size][i] = 0xFF;
      if (size > kLongestKey) rows[size][kLongestKey] = 0xFF;
    }
  }
};

constexpr KeyMasks kKeyMasks;

// The first two words of a key and its length are what is hashed; pre-tokens that share 16 bytes
// and their length are rare.
struct alignas(64) WordMasks {
  uint64_t first[kMaskRows] = {};
  uint64_t second[kMaskRows] = {};

  constexpr WordMasks() {
    for (size_t size = 1; size <= kLongestKey; ++size) {
      first[size] = size < 8 ? (uint64_t{1} << (8 * size)) - 1 : ~uint64_t{0};
      if (size > 8) second[size] = size < 16 ? (uint64_t{1} << (8 * size - 64)) - 1 : ~uint64_t{0};
    }
  }
};

constexpr WordMasks kWordMasks;

inline uint64_t load_word(const uint8_t* bytes) {
  uint64_t word;
  __builtin_memcpy(&word, bytes, sizeof word);
  return word;
}

inline uint32_t hash(uint64_t first, uint64_t second, uint64_t size) {
  return static_cast<uint32_t>(_mm_crc32_u64(_mm_crc32_u64(size, first), second));
}

template <bool clamp>
inline size_t mask_row(size_t size) {
  return clamp && size > kLongestKey ? kLongestKey + 1 : size;
}

template <bool clamp>
__attribute__((noinline)) void hash_pretokens(const PassInput& input) {
  const uint8_t* const text = input.text;
  const uint32_t* const ends = input.ends;
  const uint8_t* const table = input.table;
  uint32_t* const slots = input.slots;
  const uint32_t slot_mask = input.slot_mask;
  size_t start = 0;
#pragma GCC unroll 4
  for (size_t i = 0, count = input.count; i < count; ++i) {
    const size_t end = ends[i];
    const size_t row = mask_row<clamp>(end - start);
    const uint64_t first = load_word(text + start) & kWordMasks.first[row];
    const uint64_t second = load_word(text + start + 8) & kWordMasks.second[row];
    const uint32_t slot = hash(first, second, row) & slot_mask;
    _mm_prefetch(reinterpret_cast<const char*>(table + slot), _MM_HINT_T0);
    slots[i] = slot;
    start = end;
  }
}

template <typename Id, bool clamp>
__attribute__((noinline)) Id* probe_pretokens(const PassInput& input, MissFunction<Id> miss,
                                              void* owner, Id* out) {
  const uint8_t* const text = input.text;
  const uint32_t* const ends = input.ends;
  const uint8_t* const table = input.table;
  const uint32_t* const slots = input.slots;
  size_t start = 0;
#pragma GCC unroll 4
  for (size_t i = 0, count = input.count; i < count; ++i) {
    const size_t end = ends[i];
    const auto* entry = reinterpret_cast<const CacheEntry<Id>*>(table + slots[i]);
    const auto* mask =
        reinterpret_cast<const __m256i*>(kKeyMasks.rows[mask_row<clamp>(end - start)]);
    const __m256i bytes = _mm256_loadu_si256(reinterpret_cast<const __m256i*>(text + start));
    const __m256i key = _mm256_and_si256(bytes, _mm256_load_si256(mask));
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
  needs_clamp(input) ? hash_pretokens<true>(input) : hash_pretokens<false>(input);
}

template <typename Id>
Id* probe_batch(const PassInput& input, MissFunction<Id> miss, void* owner, Id* out) {
  return needs_clamp(input) ? probe_pretokens<Id, true>(input, miss, owner, out)
                            : probe_pretokens<Id, false>(input, miss, owner, out);
}

uint32_t hash_key(const uint8_t* key, size_t size) {
  return hash(load_word(key), load_word(key + 8), size);
}

bool has_zero(const uint8_t* text, size_t size) {
  const auto load = [text](size_t i) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(text + i));
  };
  __m256i least = _mm256_set1_epi8(-1);
  size_t i = 0;
  for (; i + 128 <= size; i += 128) {
    const __m256i first = _mm256_min_epu8(load(i), load(i + 32));
    const __m256i second = _mm256_min_epu8(load(i + 64), load(i + 96));
    least = _mm256_min_epu8(least, _mm256_min_epu8(first, second));
  }
  for (; i + 32 <= size; i += 32) least = _mm256_min_epu8(least, load(i));
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
