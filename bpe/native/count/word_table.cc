#include "count/word_table.h"

#include <algorithm>
#include <array>
#include <cstring>

#include "memory/checked_math.h"
#include "memory/errors.h"

namespace beam_bpe {

namespace {

constexpr int kFirstBits = 14;      // log2 of the entries of an empty table
constexpr size_t kReadPast = 16;    // bytes that a padded key reads from a word's start

// Bytes are numbered from the low end of a register.
uint64_t load_little_endian(const char* bytes) {
  uint64_t value;
  std::memcpy(&value, bytes, sizeof value);
#if __BYTE_ORDER__ == __ORDER_BIG_ENDIAN__
  value = __builtin_bswap64(value);
#endif
  return value;
}

struct KeyMask {
  uint64_t low;
  uint64_t high;
};

constexpr std::array<KeyMask, 16> make_masks() {
  std::array<KeyMask, 16> masks{};
  for (size_t length = 0; length < 16; ++length) {
    const size_t low_bytes = length < 8 ? length : 8;
    const size_t high_bytes = length - low_bytes;
    masks[length].low = low_bytes == 8 ? ~uint64_t{0} : (uint64_t{1} << low_bytes * 8) - 1;
    masks[length].high = (uint64_t{1} << high_bytes * 8) - 1;
  }
  return masks;
}

constexpr std::array<KeyMask, 16> kMasks = make_masks();

}  // namespace

// For a word with at least 16 readable bytes from its start.
inline WordTable::Key WordTable::key_of(const char* bytes, size_t length) {
  const KeyMask& mask = kMasks[length];
  return {load_little_endian(bytes) & mask.low,
          (load_little_endian(bytes + 8) & mask.high) | uint64_t{length} << 56};
}

WordTable::Key WordTable::key_of_padded(const char* bytes, size_t length) {
  char padded[kReadPast] = {};
  std::memcpy(padded, bytes, length);
  return key_of(padded, length);
}

inline uint64_t WordTable::hash_of(const Key& key) {
  uint64_t hash = key.low * 0x9e3779b97f4a7c15 ^ key.high * 0xc2b2ae3d27d4eb4f;
  hash ^= hash >> 32;
  return hash * 0xd6e8feb86659fd93;
}

uint64_t WordTable::hash_of(std::string_view word) {
  uint64_t hash = word.size() * 0x9e3779b97f4a7c15;
  const char* bytes = word.data();
  const char* last = bytes + word.size() - 8;
  for (; bytes < last; bytes += 8) {
    hash = (hash ^ load_little_endian(bytes)) * 0xd6e8feb86659fd93;
    hash ^= hash >> 29;
  }
  hash = (hash ^ load_little_endian(last)) * 0x9e3779b97f4a7c15;
  return hash ^ hash >> 32;
}

void WordTable::clear() {
  entries_ = LargeArray<Entry>(size_t{1} << kFirstBits);
  std::memset(static_cast<void*>(entries_.data()), 0, entries_.size() * sizeof(Entry));
  shift_ = 64 - kFirstBits;
  short_words_ = 0;
  long_words_ = {};
  long_slots_ = std::vector<LongSlot>(size_t{1} << 12);
  arena_ = {};
}

size_t WordTable::memory_bytes() const {
  return entries_.size() * sizeof(Entry) + long_words_.capacity() * sizeof(LongWord) +
         long_slots_.size() * sizeof(LongSlot) + arena_.capacity();
}

// Makes sure that so many short words can be added without moving entries.
void WordTable::make_room(size_t added) {
  while ((short_words_ + added) * 4 > entries_.size() * 3) {
    LargeArray<Entry> old(entries_.size() * 2);
    std::memset(static_cast<void*>(old.data()), 0, old.size() * sizeof(Entry));
    old.swap(entries_);
    --shift_;
    const size_t mask = entries_.size() - 1;
    for (size_t i = 0; i < old.size(); ++i) {
      if (old[i].count == 0) continue;
      size_t slot = hash_of(old[i].key) >> shift_;
      while (entries_[slot].count != 0) slot = (slot + 1) & mask;
      entries_[slot] = old[i];
    }
  }
}

// Needs room; `slot` is where the key's probing starts.
inline void WordTable::add_short(const Key& key, size_t slot, int64_t count, int64_t first) {
  const size_t mask = entries_.size() - 1;
  while (true) {
    Entry& entry = entries_[slot];
    if (entry.key == key) {
      entry.count = checked_add(entry.count, count, what_);
      entry.first = std::min(entry.first, first);
      return;
    }
    if (entry.count == 0) {
      entry = {key, count, first};
      ++short_words_;
      return;
    }
    slot = (slot + 1) & mask;
  }
}

void WordTable::grow_long_slots() {
  std::vector<LongSlot> grown(long_slots_.size() * 2);
  const size_t mask = grown.size() - 1;
  for (size_t i = 0; i < long_words_.size(); ++i) {
    const uint64_t hash = long_words_[i].hash;
    size_t slot = hash >> 32 & mask;
    while (grown[slot].word != 0) slot = (slot + 1) & mask;
    grown[slot] = {static_cast<uint32_t>(hash), static_cast<uint32_t>(i + 1)};
  }
  long_slots_.swap(grown);
}

void WordTable::add_long(std::string_view word, uint64_t hash, int64_t count, int64_t first) {
  if ((long_words_.size() + 1) * 2 > long_slots_.size()) grow_long_slots();
  const size_t mask = long_slots_.size() - 1;
  size_t slot = hash >> 32 & mask;
  for (; long_slots_[slot].word != 0; slot = (slot + 1) & mask) {
    if (long_slots_[slot].tag != static_cast<uint32_t>(hash)) continue;
    LongWord& known = long_words_[long_slots_[slot].word - 1];
    if (known.hash == hash && bytes_of(known) == word) {
      known.count = checked_add(known.count, count, what_);
      known.first = std::min(known.first, first);
      return;
    }
  }
  if (long_words_.size() >= 0xfffffffe) throw CountTableError("too many distinct words in memory");
  long_words_.push_back({hash, arena_.size(), word.size(), count, first});
  arena_.insert(arena_.end(), word.begin(), word.end());
  long_slots_[slot] = {static_cast<uint32_t>(hash), static_cast<uint32_t>(long_words_.size())};
}

void WordTable::add(std::string_view word, int64_t count, int64_t first) {
  if (word.empty()) return;
  if (word.size() > kLongestShort) return add_long(word, hash_of(word), count, first);
  make_room(1);
  const Key key = key_of_padded(word.data(), word.size());
  add_short(key, hash_of(key) >> shift_, count, first);
}

void WordTable::add_all(const WordTable& other) {
  for (size_t i = 0; i < other.entries_.size(); ++i) {
    const Entry& entry = other.entries_[i];
    if (entry.count == 0) continue;
    make_room(1);
    add_short(entry.key, hash_of(entry.key) >> shift_, entry.count, entry.first);
  }
  for (const LongWord& word : other.long_words_) {
    add_long(other.bytes_of(word), word.hash, word.count, word.first);
  }
}

void WordTable::count_document(std::string_view document, int64_t base, const Scan& scan) {
  const auto* text = reinterpret_cast<const uint8_t*>(document.data());
  uint32_t ends[kBatch + kScanSlack];
  size_t position = 0;
  while (position < document.size()) {
    const ScanResult found = scan({text, document.size(), document.size()}, position, ends, kBatch);
    if (found.position - position > 0xffffffff) {
      // Only the last pre-token of a call can be so long, and its end does not fit `ends`.
      const size_t before = found.count == 1 ? 0 : ends[found.count - 2];
      count_batch(document.data() + position, document.size() - position, ends, found.count - 1,
                  base + static_cast<int64_t>(position));
      add(document.substr(position + before, found.position - position - before), 1,
          base + static_cast<int64_t>(position + before));
    } else {
      count_batch(document.data() + position, document.size() - position, ends, found.count,
                  base + static_cast<int64_t>(position));
    }
    position = found.position;
  }
}

// Counts `count` pre-tokens that start at `text`, of which `readable` bytes may be read.
void WordTable::count_batch(const char* text, size_t readable, const uint32_t* ends, size_t count,
                            int64_t base) {
  make_room(count);
  Pending pending[kBatch];
  size_t waiting = 0;
  size_t start = 0;
  for (size_t i = 0; i < count; ++i) {
    const size_t length = ends[i] - start;
    if (length > kLongestShort) {
      const std::string_view word(text + start, length);
      add_long(word, hash_of(word), 1, base + static_cast<int64_t>(start));
    } else {
      Pending& next = pending[waiting++];
      next.key = start + kReadPast <= readable ? key_of(text + start, length)
                                               : key_of_padded(text + start, length);
      next.slot = hash_of(next.key) >> shift_;
      next.first = base + static_cast<int64_t>(start);
      __builtin_prefetch(&entries_[next.slot], 1);
    }
    start = ends[i];
  }
  for (size_t i = 0; i < waiting; ++i) {
    const Pending& next = pending[i];
    Entry& entry = entries_[next.slot];
    // Positions rise within a table, so the first occurrence is the one that made the entry. A
    // single table cannot count to 2^63 one by one.
    if (entry.key == next.key) {
      ++entry.count;
    } else {
      add_short(next.key, next.slot, 1, next.first);
    }
  }
}

void WordTable::append_short(const Key& key, std::vector<char>* bytes) {
  char spelled[sizeof(Key)];
  for (size_t i = 0; i < 8; ++i) {
    spelled[i] = static_cast<char>(key.low >> i * 8);
    spelled[i + 8] = static_cast<char>(key.high >> i * 8);
  }
  bytes->insert(bytes->end(), spelled, spelled + (key.high >> 56));
}

WordCounts WordTable::sorted() const {
  struct Sorted {
    uint64_t high;   // the first 15 bytes as one big-endian number, then a length byte …
    uint64_t low;    // … that is 16 for every long word, which keeps prefixes before their words
    size_t index;    // entry, or entries + long word
  };
  std::vector<Sorted> order;
  order.reserve(size());
  for (size_t i = 0; i < entries_.size(); ++i) {
    const Key& key = entries_[i].key;
    if (entries_[i].count == 0) continue;
    order.push_back({__builtin_bswap64(key.low), __builtin_bswap64(key.high), i});
  }
  for (size_t i = 0; i < long_words_.size(); ++i) {
    Key key = key_of(arena_.data() + long_words_[i].start, kLongestShort);
    key.high = (key.high & kMasks[kLongestShort].high) | uint64_t{kLongestShort + 1} << 56;
    order.push_back({__builtin_bswap64(key.low), __builtin_bswap64(key.high), entries_.size() + i});
  }
  const auto long_word = [this](size_t index) { return long_words_[index - entries_.size()]; };
  std::sort(order.begin(), order.end(), [&](const Sorted& a, const Sorted& b) {
    if (a.high != b.high) return a.high < b.high;
    if (a.low != b.low) return a.low < b.low;
    // Only long words share both numbers.
    return a.index != b.index && bytes_of(long_word(a.index)) < bytes_of(long_word(b.index));
  });
  WordCounts words;
  words.offsets.reserve(order.size() + 1);
  words.counts.reserve(order.size());
  words.firsts.reserve(order.size());
  words.bytes.reserve(arena_.size() + short_words_ * sizeof(Key));
  words.offsets.push_back(0);
  for (const Sorted& next : order) {
    if (next.index < entries_.size()) {
      const Entry& entry = entries_[next.index];
      append_short(entry.key, &words.bytes);
      words.counts.push_back(entry.count);
      words.firsts.push_back(entry.first);
    } else {
      const LongWord& word = long_words_[next.index - entries_.size()];
      const std::string_view bytes = bytes_of(word);
      words.bytes.insert(words.bytes.end(), bytes.begin(), bytes.end());
      words.counts.push_back(word.count);
      words.firsts.push_back(word.first);
    }
    words.offsets.push_back(static_cast<int64_t>(words.bytes.size()));
  }
  return words;
}

}  // namespace beam_bpe
