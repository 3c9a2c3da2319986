// What one thread remembers of the pre-tokens that it has encoded, in bounded memory.
//
// Two tables. Short pre-tokens sit in 64-byte entries, key and ids side by side, so that a hit
// costs one cache line; the passes of encode_passes.h read them directly. Long ones sit in a table
// of hashes over an array of bytes; their ids, and those of short ones that have many, are in one
// array. A table that is full is emptied and filled again: that costs less than keeping track of
// what is in use.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "encode/added_tokens.h"
#include "encode/encode_passes.h"

namespace beam_bpe {

template <typename Id>
class PretokenCache {
 public:
  using Entry = CacheEntry<Id>;

  struct Ids {
    const Id* data;  // null if not found
    size_t count;
  };

  // Pre-tokens above this many bytes are not remembered.
  static constexpr size_t kLongestPretoken = 256;

  // bytes: bound of the table of entries; everything else is bounded by a quarter of it. Less than
  // the smallest table does not work, so that is used even if it is larger.
  // added: found by slots of their own; must stay where they are.
  PretokenCache(const EncodePasses& passes, size_t bytes, const std::vector<AddedToken>& added);
  ~PretokenCache();
  PretokenCache(const PretokenCache&) = delete;
  PretokenCache& operator=(const PretokenCache&) = delete;

  // Makes room for `pretokens` insertions. Until the next call the table of entries stays where it
  // is. bytes: of text that they are of; expected_bytes: of text still to come, theirs included.
  void prepare(size_t pretokens, size_t bytes, size_t expected_bytes) {
    seen_bytes_ += bytes;
    if (used_ + pretokens > limit_ || other_bytes() > most_other_bytes_) {
      make_room(pretokens, expected_bytes);
    }
  }
  uint8_t* table() const { return table_; }
  uint32_t slot_mask() const { return slot_mask_; }

  // Slots of added tokens lie after those of pre-tokens, and say all: an entry holds the first
  // bytes of the token's text, so that the passes find its id; where they are not what stands in
  // the document, as with white space that the token takes, the caller looks at the slot.
  bool has_added_slot(size_t number) const { return number < std::min(added_.size(), kMostAdded); }
  uint32_t added_slot(size_t number) const {
    return slot_mask_ + static_cast<uint32_t>((number + 1) * kEntryBytes);
  }
  bool is_added_slot(uint32_t slot) const { return slot > slot_mask_; }
  Id added_id(uint32_t slot) const { return entry(slot)->ids[0]; }

  uint32_t slot_of(const uint8_t* key, size_t size) const {
    return passes_.hash_key(key, size) & slot_mask_;
  }

  // Ids of a key of `size` bytes, none of them zero, padded with zeros. An entry found elsewhere
  // than in its slot changes places with the one that is there: what is asked for again and again
  // then needs no search.
  Ids find(const uint8_t* key, uint32_t slot);

  // Remembers a key that `find` has not found.
  void insert(const uint8_t* key, uint32_t slot, const uint32_t* ids, size_t count);

  // The same for any pre-token of at most kLongestPretoken bytes.
  static uint64_t long_hash(const uint8_t* pretoken, size_t size);
  Ids find_long(const uint8_t* pretoken, size_t size, uint64_t hash) const;
  void insert_long(const uint8_t* pretoken, size_t size, uint64_t hash, const uint32_t* ids,
                   size_t count);

 private:
  struct LongEntry {
    uint64_t hash;  // 0 in an empty entry
    uint32_t text;  // offset in texts_
    uint32_t size;
    uint32_t ids;   // offset in ids_
    uint32_t count;
  };

  // In place of the ids of an entry whose key ends with kElsewhere: where they are in ids_.
  struct Elsewhere {
    uint32_t offset;
    uint32_t count;
  };
  static constexpr uint8_t kElsewhere = 1;
  static constexpr size_t kMostAdded = size_t{1} << 16;

  Ids ids_of(const Entry& found) const;
  uint32_t keep_ids(const uint32_t* ids, size_t count);
  Entry* entry(uint32_t slot) const { return reinterpret_cast<Entry*>(table_ + slot); }
  size_t table_bytes(size_t entries) const {
    return (entries + std::min(added_.size(), kMostAdded)) * kEntryBytes;
  }
  void make_room(size_t pretokens, size_t expected_bytes);
  void allocate(size_t entries);
  void place(const Entry& moved);
  void rehash(size_t entries, bool keep);
  size_t other_bytes() const {
    return long_used_ * 2 * sizeof(LongEntry) + texts_.size() + ids_.size() * sizeof(Id);
  }
  void forget_long();
  void grow_long();

  const EncodePasses& passes_;
  const std::vector<AddedToken>& added_;
  size_t most_entries_;
  size_t most_other_bytes_;
  uint8_t* table_ = nullptr;
  size_t entries_ = 0;
  uint32_t slot_mask_ = 0;
  size_t used_ = 0;
  size_t limit_ = 0;
  size_t seen_bytes_ = 0;  // of text, with this table
  std::vector<LongEntry> long_entries_;
  size_t long_used_ = 0;
  std::vector<uint8_t> texts_;
  std::vector<Id> ids_;
};

extern template class PretokenCache<uint16_t>;
extern template class PretokenCache<uint32_t>;

}  // namespace beam_bpe
