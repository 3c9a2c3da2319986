#include "encode/pretoken_cache.h"

#include <algorithm>
#include <cstring>

#include "memory/page_pool.h"

namespace beam_bpe {
namespace {

constexpr size_t kFewestEntries = size_t{1} << 13;
constexpr size_t kMostEntries = size_t{1} << 25;  // slots are 32-bit byte offsets
constexpr size_t kSparseEntries = size_t{1} << 19;
constexpr size_t kMostOtherBytes = size_t{1} << 31;  // offsets are 32-bit; a batch may add to it
constexpr size_t kFewestLongEntries = size_t{1} << 10;

// An entry farther than this from its slot is not found, nor one put there: no input can make the
// searches long.
constexpr size_t kMostSteps = 16;

// Text for one distinct pre-token, roughly, in a large document.
constexpr size_t kBytesPerPretoken = 256;

// Above this many entries searches become long.
size_t most_used(size_t entries) { return entries / 2 + entries / 8; }

size_t power_of_two_up_to(size_t value) {
  size_t power = 1;
  while (power <= value / 2) power *= 2;
  return power;
}

bool is_empty(const uint8_t* key) { return !key[0]; }

// The last byte does not count: it says where an entry's ids are.
bool are_equal(const uint8_t* key, const uint8_t* other) {
  uint64_t a[3];
  uint64_t b[3];
  std::memcpy(a, key, sizeof a);
  std::memcpy(b, other, sizeof b);
  uint64_t last = 0;
  std::memcpy(&last, key + 24, kLongestKey - 24);
  uint64_t other_last = 0;
  std::memcpy(&other_last, other + 24, kLongestKey - 24);
  return !((a[0] ^ b[0]) | (a[1] ^ b[1]) | (a[2] ^ b[2]) | (last ^ other_last));
}

size_t size_of(const uint8_t* key) {
  const void* end = std::memchr(key, 0, kLongestKey);
  return end ? static_cast<size_t>(static_cast<const uint8_t*>(end) - key) : kLongestKey;
}

}  // namespace

template <typename Id>
PretokenCache<Id>::PretokenCache(const EncodePasses& passes, size_t bytes,
                                 const std::vector<AddedToken>& added)
    : passes_(passes),
      added_(added),
      most_entries_(
          std::clamp(power_of_two_up_to(bytes / kEntryBytes), kFewestEntries, kMostEntries)),
      most_other_bytes_(std::min(bytes / 4, kMostOtherBytes)),
      long_entries_(kFewestLongEntries, LongEntry{}) {}

template <typename Id>
PretokenCache<Id>::~PretokenCache() {
  free_zeroed(table_, table_bytes(entries_));
}

template <typename Id>
void PretokenCache<Id>::allocate(size_t entries) {
  table_ = allocate_zeroed(table_bytes(entries));
  entries_ = entries;
  slot_mask_ = static_cast<uint32_t>((entries - 1) * kEntryBytes);
  for (size_t number = 0; has_added_slot(number); ++number) {
    const AddedToken& token = added_[number];
    Entry* const added = entry(added_slot(number));
    std::memcpy(added->key, token.text.data(), std::min(token.text.size(), kLongestKey));
    added->ids[0] = static_cast<Id>(token.id);
    added->count = 1;
  }
  used_ = 0;
  seen_bytes_ = 0;
  // In a sparse table few entries are out of their slots, and it needs hardly more of the
  // processor's caches; but the pages of a large one have to be cleared first.
  limit_ = entries <= kSparseEntries ? entries / 4 : most_used(entries);
}

template <typename Id>
void PretokenCache<Id>::make_room(size_t pretokens, size_t expected_bytes) {
  // A table twice as large has to be cleared first, and that is worth it for enough text alone.
  const bool is_crowded = used_ + pretokens > most_used(entries_);
  if (!is_crowded && other_bytes() <= most_other_bytes_ &&
      seen_bytes_ + expected_bytes < entries_ * kEntryBytes) {
    // Asked again a little later, when there may have been enough.
    limit_ = std::min(used_ + pretokens + entries_ / 16, most_used(entries_));
    return;
  }
  // Entries may refer to ids_, so that both tables are emptied together.
  const bool keep = other_bytes() <= most_other_bytes_ && entries_ < most_entries_;
  if (!keep) forget_long();
  size_t wanted = std::max(keep ? entries_ * 2 : entries_, kFewestEntries);
  if (!entries_) wanted = std::max(wanted, power_of_two_up_to(expected_bytes / kBytesPerPretoken));
  while (wanted / 4 < pretokens) wanted *= 2;
  rehash(std::max(std::min(wanted, most_entries_), kFewestEntries), keep);
}

template <typename Id>
void PretokenCache<Id>::rehash(size_t entries, bool keep) {
  uint8_t* const old_table = table_;
  const size_t old_entries = entries_;
  allocate(entries);
  for (size_t i = 0; keep && i < old_entries; ++i) {
    const Entry& moved = reinterpret_cast<const Entry*>(old_table)[i];
    if (!is_empty(moved.key)) place(moved);
  }
  free_zeroed(old_table, table_bytes(old_entries));
}

template <typename Id>
void PretokenCache<Id>::place(const Entry& moved) {
  const uint32_t slot = slot_of(moved.key, size_of(moved.key));
  for (size_t step = 0; step < kMostSteps; ++step) {
    Entry* const free = entry((slot + static_cast<uint32_t>(step * kEntryBytes)) & slot_mask_);
    if (!is_empty(free->key)) continue;
    *free = moved;
    ++used_;
    return;
  }
}

template <typename Id>
typename PretokenCache<Id>::Ids PretokenCache<Id>::ids_of(const Entry& found) const {
  if (found.key[kLongestKey] != kElsewhere) return {found.ids, found.count};
  Elsewhere place;
  std::memcpy(&place, found.ids, sizeof place);
  return {&ids_[place.offset], place.count};
}

template <typename Id>
typename PretokenCache<Id>::Ids PretokenCache<Id>::find(const uint8_t* key, uint32_t slot) {
  Entry* const home = entry(slot);
  for (size_t step = 0; step < kMostSteps; ++step) {
    Entry* const found = entry((slot + static_cast<uint32_t>(step * kEntryBytes)) & slot_mask_);
    if (are_equal(found->key, key)) {
      if (found == home) return ids_of(*found);
      std::swap(*found, *home);
      return ids_of(*home);
    }
    if (is_empty(found->key)) break;
  }
  return {nullptr, 0};
}

template <typename Id>
void PretokenCache<Id>::insert(const uint8_t* key, uint32_t slot, const uint32_t* ids,
                               size_t count) {
  for (size_t step = 0; step < kMostSteps; ++step) {
    Entry* const added = entry((slot + static_cast<uint32_t>(step * kEntryBytes)) & slot_mask_);
    if (!is_empty(added->key)) continue;
    std::memcpy(added->key, key, kKeyBytes);
    if (count <= kInlineIds<Id>) {
      for (size_t i = 0; i < count; ++i) added->ids[i] = static_cast<Id>(ids[i]);
      added->count = static_cast<Id>(count);
    } else {
      const Elsewhere place = {keep_ids(ids, count), static_cast<uint32_t>(count)};
      std::memcpy(added->ids, &place, sizeof place);
      added->key[kLongestKey] = kElsewhere;
    }
    ++used_;
    return;
  }
}

template <typename Id>
uint32_t PretokenCache<Id>::keep_ids(const uint32_t* ids, size_t count) {
  const size_t offset = ids_.size();
  for (size_t i = 0; i < count; ++i) ids_.push_back(static_cast<Id>(ids[i]));
  return static_cast<uint32_t>(offset);
}

template <typename Id>
uint64_t PretokenCache<Id>::long_hash(const uint8_t* pretoken, size_t size) {
  uint64_t hash = size * 0x9E3779B97F4A7C15u;
  const auto mix = [&hash](uint64_t word) {
    hash = (hash ^ word) * 0xFF51AFD7ED558CCDu;
    hash ^= hash >> 32;
  };
  size_t i = 0;
  for (; i + 8 <= size; i += 8) {
    uint64_t word;
    std::memcpy(&word, pretoken + i, 8);
    mix(word);
  }
  if (i < size) {
    uint64_t word = 0;
    std::memcpy(&word, pretoken + i, size - i);
    mix(word);
  }
  return hash | 1;
}

template <typename Id>
typename PretokenCache<Id>::Ids PretokenCache<Id>::find_long(const uint8_t* pretoken, size_t size,
                                                             uint64_t hash) const {
  const size_t mask = long_entries_.size() - 1;
  for (size_t slot = (hash >> 1) & mask;; slot = (slot + 1) & mask) {
    const LongEntry& found = long_entries_[slot];
    if (!found.hash) return {nullptr, 0};
    if (found.hash == hash && found.size == size &&
        std::memcmp(&texts_[found.text], pretoken, size) == 0) {
      return {&ids_[found.ids], found.count};
    }
  }
}

template <typename Id>
void PretokenCache<Id>::insert_long(const uint8_t* pretoken, size_t size, uint64_t hash,
                                    const uint32_t* ids, size_t count) {
  if ((long_used_ + 1) * 2 > long_entries_.size()) grow_long();
  const size_t mask = long_entries_.size() - 1;
  size_t slot = (hash >> 1) & mask;
  while (long_entries_[slot].hash) slot = (slot + 1) & mask;
  long_entries_[slot] = {hash, static_cast<uint32_t>(texts_.size()), static_cast<uint32_t>(size),
                         keep_ids(ids, count), static_cast<uint32_t>(count)};
  texts_.insert(texts_.end(), pretoken, pretoken + size);
  ++long_used_;
}

template <typename Id>
void PretokenCache<Id>::forget_long() {
  std::vector<LongEntry>(kFewestLongEntries, LongEntry{}).swap(long_entries_);
  long_used_ = 0;
  texts_.clear();
  ids_.clear();
}

template <typename Id>
void PretokenCache<Id>::grow_long() {
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

template class PretokenCache<uint16_t>;
template class PretokenCache<uint32_t>;

}  // namespace beam_bpe
