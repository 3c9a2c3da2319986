// The encode passes without vector instructions.
#include <cstring>

#include "encode/encode_passes.h"

namespace beam_bpe {
namespace {

struct Key {
  uint64_t words[kKeyBytes / 8];
};

// Reads kKeyBytes at `pretoken`. The key of one that no entry holds has but its last byte set.
inline Key load_key(const uint8_t* pretoken, size_t size) {
  Key key;
  std::memcpy(&key, pretoken, sizeof key);
  if (size > kLongestKey) return {{0, 0, 0, uint64_t{0xFF} << 56}};
  for (size_t i = 0; i < kKeyBytes / 8; ++i) {
    const size_t left = size > i * 8 ? size - i * 8 : 0;
    if (left < 8) key.words[i] &= (uint64_t{1} << (left * 8)) - 1;
  }
  return key;
}

inline uint32_t hash(const Key& key, size_t size) {
  uint64_t mixed = size;
  for (const uint64_t word : key.words) {
    mixed = (mixed ^ word) * 0x9E3779B97F4A7C15u;
    mixed ^= mixed >> 29;
  }
  return static_cast<uint32_t>((mixed * 0xBF58476D1CE4E5B9u) >> 32);
}

void hash_batch(const PassInput& input) {
  size_t start = 0;
  for (size_t i = 0; i < input.count; ++i) {
    const size_t end = input.ends[i];
    const size_t size = end - start;
    const uint32_t slot = hash(load_key(input.text + start, size), size) & input.slot_mask;
    __builtin_prefetch(input.table + slot);
    input.slots[i] = slot;
    start = end;
  }
}

template <typename Id>
Id* probe_batch(const PassInput& input, MissFunction<Id> miss, void* owner, Id* out) {
  size_t start = 0;
  for (size_t i = 0; i < input.count; ++i) {
    const size_t end = input.ends[i];
    const Key key = load_key(input.text + start, end - start);
    const auto& entry = *reinterpret_cast<const CacheEntry<Id>*>(input.table + input.slots[i]);
    if (std::memcmp(&key, entry.key, sizeof key) == 0) {
      std::memcpy(out, entry.ids, sizeof entry.ids);
      out += entry.count;
    } else {
      out = miss(owner, input.text + start, end - start, input.slots[i], out);
    }
    start = end;
  }
  return out;
}

uint32_t hash_key(const uint8_t* key, size_t size) {
  return hash(load_key(key, kLongestKey), size);
}

bool has_zero(const uint8_t* text, size_t size) { return std::memchr(text, 0, size) != nullptr; }

}  // namespace

const EncodePasses& scalar_passes() {
  static const EncodePasses passes = {hash_batch, probe_batch<uint16_t>, probe_batch<uint32_t>,
                                      hash_key, has_zero};
  return passes;
}

}  // namespace beam_bpe
