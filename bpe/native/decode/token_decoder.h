// Ids to bytes at the speed of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "python/arrow_columns.h"

namespace beam_bpe {

// Immutable; used from many threads at once. Id is any of uint16_t, uint32_t, uint64_t, int32_t
// and int64_t.
class TokenDecoder {
 public:
  // `tokens`: the bytes of each id of `ids`, which are distinct; special tokens among them.
  TokenDecoder(const std::vector<uint32_t>& ids, const std::vector<std::string>& tokens);

  // How far a decoding has come.
  struct Progress {
    size_t ids = 0;
    size_t bytes = 0;
  };

  // Room that is enough to go on with, whatever the ids are.
  size_t least_room() const { return kGroup * sizeof(Entry) + longest_; }

  // About the number of bytes that the ids spell, from a sample of them where they are many.
  template <class Id>
  size_t estimate_size(const Id* ids, size_t count) const;

  // Writes the bytes of ids[done.ids] to ids[count - 1] to `out`, from out[done.bytes] on, until
  // all are written or fewer than least_room() bytes of the `size` of `out` are left. What lies
  // after the bytes written may be overwritten with anything. Throws UnknownId.
  template <class Id>
  Progress decode(const Id* ids, size_t count, Progress done, char* out, size_t size) const;

  // Bytes of each list, as a large_binary column: list i is ids[offsets[i]] to
  // ids[offsets[i + 1] - 1]. `threads`: at least 1. Throws InputError, for ids that are none with
  // the place of the first.
  template <class Id>
  OwnedColumn decode_lists(const Id* ids, int64_t id_count, const Int64Column& offsets,
                           size_t threads) const;

  // Says that an id at a place (`ids[7]`) has no token.
  std::string describe_unknown(const std::string& place, const std::string& id) const;

 private:
  static constexpr size_t kInline = 15;
  static constexpr size_t kGroup = 4;  // ids that are copied together

  // A token of 1 to 15 bytes, copied as a whole whatever its length.
  struct Entry {
    char bytes[kInline];
    uint8_t length;  // kOther: look in other_tokens_
  };
  static constexpr uint8_t kOther = 0;

  struct FreeEntries {
    size_t bytes;
    void operator()(Entry* entries) const noexcept;
  };

  template <class Id>
  std::string_view token_of(Id id) const;
  template <class Id>
  size_t total_size(const Id* ids, size_t count) const;
  template <class Id>
  class ListDecoder;

  size_t mask_ = 0;  // entries - 1, a power of two less one
  std::unique_ptr<Entry[], FreeEntries> entries_{nullptr, FreeEntries{0}};  // by id, for ids up to mask_
  std::unordered_map<uint32_t, std::string> other_tokens_;  // longer ones, and those beyond mask_
  size_t id_count_ = 0;
  uint32_t largest_id_ = 0;
  size_t longest_ = 0;  // bytes of the longest token
};

// An id without token; `position` counts from the first of the ids that were handed in.
struct UnknownId {
  size_t position;
  std::string id;
};

}  // namespace beam_bpe
