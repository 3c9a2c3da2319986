#include "piece_cache.h"

#include <algorithm>
#include <cstring>

#include "page_pool.h"

namespace beam_bpe {
namespace {

constexpr size_t kFewestEntries = size_t{1} << 13;
constexpr size_t kMostEntries = size_t{1} << 25;  // slots are 32-bit byte offsets
constexpr size_t kFewestLongEntries = size_t{1} << 10;

// Text behind one distinct pre-token, roughly, in a large document.
constexpr size_t kBytesPerPiece = 512;

size_t power_of_two_up_to(size_t value) {
  size_t power = 1;
  while (power <= value / 2) power *= 2;
  return power;
}

bool is_empty(const uint8_t* key) { return !key[0]; }

// The passes look for pieces that have no key under the key of zeros. The entry there must hold
// something that equals no key at all: a zero byte that is not padding.
void poison(uint8_t* key) {
  std::memset(key, 0xFF, kKeyBytes);
  key[1] = 0;
}

bool is_poison(const uint8_t* key) { return key[0] == 0xFF && !key[1] && key[2]; }

}  // namespace

template <typename Id>
PieceCache<Id>::PieceCache(const EncodePasses& passes, size_t bytes)
    : passes_(passes),
      most_entries_(std::clamp(power_of_two_up_to(bytes / 4 * 3 / kEntryBytes), kFewestEntries,
                               kMostEntries)),
      most_long_bytes_(bytes > most_entries_ * kEntryBytes ? bytes - most_entries_ * kEntryBytes
                                                           : 0),
      long_entries_(kFewestLongEntries, LongEntry{}) {}

template <typename Id>
PieceCache<Id>::~PieceCache() {
  free_zeroed(table_, entries_ * kEntryBytes);
}

template <typename Id>
void PieceCache<Id>::allocate(size_t entries) {
  table_ = allocate_zeroed(entries * kEntryBytes);
  entries_ = entries;
  slot_mask_ = static_cast<uint32_t>((entries - 1) * kEntryBytes);
  used_ = 0;
  limit_ = entries / 2 + entries / 8;
  const uint8_t no_key[kKeyBytes] = {};
  poison(entry(slot_of(no_key))->key);
}

template <typename Id>
void PieceCache<Id>::make_room(size_t pieces, size_t expected_bytes) {
  size_t wanted = std::max(entries_ * 2, kFewestEntries);
  if (!entries_) wanted = std::max(wanted, power_of_two_up_to(expected_bytes / kBytesPerPiece));
  while (wanted / 2 < pieces) wanted *= 2;
  wanted = std::max(std::min(wanted, most_entries_), kFewestEntries);
  rehash(wanted);
}

// Moves to a table of another size; to one of the same size nothing is taken along.
template <typename Id>
void PieceCache<Id>::rehash(size_t entries) {
  uint8_t* const old_table = table_;
  const size_t old_entries = entries_;
  allocate(entries);
  if (entries > old_entries) {
    for (size_t i = 0; i < old_entries; ++i) {
      const Entry& old = reinterpret_cast<const Entry*>(old_table)[i];
      if (is_empty(old.key) || is_poison(old.key)) continue;
      uint32_t slot = slot_of(old.key);
      while (!is_empty(entry(slot)->key)) slot = (slot + kEntryBytes) & slot_mask_;
      *entry(slot) = old;
      ++used_;
    }
  }
  free_zeroed(old_table, old_entries * kEntryBytes);
}

template <typename Id>
const CacheEntry<Id>* PieceCache<Id>::find(const uint8_t* key, uint32_t slot) {
  Entry* const home = entry(slot);
  for (uint32_t at = slot;; at = (at + kEntryBytes) & slot_mask_) {
    Entry* const found = entry(at);
    if (std::memcmp(found->key, key, kKeyBytes) == 0) {
      if (found == home || is_poison(home->key)) return found;
      std::swap(*found, *home);
      return home;
    }
    if (is_empty(found->key)) return nullptr;
  }
}

template <typename Id>
void PieceCache<Id>::insert(const uint8_t* key, uint32_t slot, const uint32_t* ids, size_t count) {
  while (!is_empty(entry(slot)->key)) slot = (slot + kEntryBytes) & slot_mask_;
  Entry* const added = entry(slot);
  std::memcpy(added->key, key, kKeyBytes);
  for (size_t i = 0; i < count; ++i) added->ids[i] = static_cast<Id>(ids[i]);
  added->count = static_cast<Id>(count);
  ++used_;
}

template <typename Id>
uint64_t PieceCache<Id>::long_hash(const uint8_t* piece, size_t size) {
  uint64_t hash = size * 0x9E3779B97F4A7C15u;
  const auto mix = [&hash](uint64_t word) {
    hash = (hash ^ word) * 0xFF51AFD7ED558CCDu;
    hash ^= hash >> 32;
  };
  size_t i = 0;
  for (; i + 8 <= size; i += 8) {
    uint64_t word;
    std::memcpy(&word, piece + i, 8);
    mix(word);
  }
  if (i < size) {
    uint64_t word = 0;
    std::memcpy(&word, piece + i, size - i);
    mix(word);
  }
  return hash | 1;
}

template <typename Id>
typename PieceCache<Id>::Ids PieceCache<Id>::find_long(const uint8_t* piece, size_t size,
                                                       uint64_t hash) const {
  const size_t mask = long_entries_.size() - 1;
  for (size_t slot = (hash >> 1) & mask;; slot = (slot + 1) & mask) {
    const LongEntry& found = long_entries_[slot];
    if (!found.hash) return {nullptr, 0};
    if (found.hash == hash && found.size == size &&
        std::memcmp(&texts_[found.text], piece, size) == 0) {
      return {&ids_[found.ids], found.count};
    }
  }
}

template <typename Id>
void PieceCache<Id>::insert_long(const uint8_t* piece, size_t size, uint64_t hash,
                                 const uint32_t* ids, size_t count) {
  if (long_bytes() + size + count * sizeof(Id) > most_long_bytes_) {
    std::vector<LongEntry>(kFewestLongEntries, LongEntry{}).swap(long_entries_);
    long_used_ = 0;
    texts_.clear();
    ids_.clear();
  }
  if ((long_used_ + 1) * 2 > long_entries_.size()) grow_long();
  const size_t mask = long_entries_.size() - 1;
  size_t slot = (hash >> 1) & mask;
  while (long_entries_[slot].hash) slot = (slot + 1) & mask;
  long_entries_[slot] = {hash, static_cast<uint32_t>(texts_.size()), static_cast<uint32_t>(size),
                         static_cast<uint32_t>(ids_.size()), static_cast<uint32_t>(count)};
  texts_.insert(texts_.end(), piece, piece + size);
  for (size_t i = 0; i < count; ++i) ids_.push_back(static_cast<Id>(ids[i]));
  ++long_used_;
}

template <typename Id>
void PieceCache<Id>::grow_long() {
  std::vector<LongEntry> old(long_entries_.size() * 2, LongEntry{});
  old.swap(long_entries_);
  const size_t mask = long_entries_.size() - 1;
  for (const LongEntry& moved : old) {
    if (!moved.hash) continue;
    size_t slot = (moved.hash >> 1) & mask;
    while (long_entries_[slot].hash) slot = (slot + 1) & mask;
    long_entries_[slot] = moved;
  }
}

template class PieceCache<uint16_t>;
template class PieceCache<uint32_t>;

}  // namespace beam_bpe
