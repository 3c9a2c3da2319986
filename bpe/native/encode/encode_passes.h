// The two hot loops between a scan and the ids, for each instruction set.
//
// A batch is a segment of text with the ends of its pre-tokens. The first loop computes where each
// pre-token would be in the cache and prefetches that; the second compares, and emits the ids or
// calls for help. Both treat a pre-token as its bytes padded with zeros to kKeyBytes, so that no
// pre-token of a batch may hold a zero byte. One comparison of keys decides: the last byte is zero
// in all keys that may be equal. It is not in the key of an entry whose ids are elsewhere, nor in
// the key that stands for all longer pre-tokens, whose other bytes are zeros, as no entry's are.
#pragma once

#include <cstddef>
#include <cstdint>

namespace beam_bpe {

inline constexpr size_t kKeyBytes = 32;
inline constexpr size_t kLongestKey = kKeyBytes - 1;  // longest pre-token that an entry holds
inline constexpr size_t kEntryBytes = 64;  // kKeyBytes of key, then the ids and their number

// Ids of an entry; the last lane holds their number.
template <typename Id>
inline constexpr size_t kInlineIds = (kEntryBytes - kKeyBytes) / sizeof(Id) - 1;

template <typename Id>
struct alignas(kEntryBytes) CacheEntry {
  uint8_t key[kKeyBytes];
  Id ids[kInlineIds<Id>];
  Id count;
};

// Pre-tokens of a batch; `text` may be read up to kKeyBytes after the start of the last of them.
struct PassInput {
  const uint8_t* text;
  const uint32_t* ends;  // offsets into `text`, ascending; the first pre-token starts at 0
  size_t count;
  uint32_t* slots;       // of each: byte offset of its entry
  uint8_t* table;        // entries
  uint32_t slot_mask;    // (number of entries - 1) * kEntryBytes
};

// What the second loop calls for a pre-token that is not in its slot, or has many ids. Appends
// its ids at `out`, with room for 64 bytes more, and returns their end; leaves `table` where it is.
template <typename Id>
using MissFunction = Id* (*)(void* owner, const uint8_t* pretoken, size_t size, uint32_t slot,
                             Id* out);

template <typename Id>
using ProbeFunction = Id* (*)(const PassInput& input, MissFunction<Id> miss, void* owner, Id* out);

struct EncodePasses {
  // Fills `slots` and prefetches the entries.
  void (*hash)(const PassInput& input);
  ProbeFunction<uint16_t> probe16;
  ProbeFunction<uint32_t> probe32;
  // Hash of the key of a pre-token of `size` bytes, at most kLongestKey; slot: hash & slot_mask.
  uint32_t (*hash_key)(const uint8_t* key, size_t size);
  bool (*has_zero)(const uint8_t* text, size_t size);
};

// What a caller takes, with best_isa(), is in cpu_dispatch.h.
const EncodePasses& scalar_passes();
const EncodePasses& avx2_passes();

}  // namespace beam_bpe
