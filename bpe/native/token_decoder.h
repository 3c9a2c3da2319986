// Ids to bytes at the speed of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "arrow_columns.h"

namespace beam_bpe {

// Immutable; used from many threads at once.
class TokenDecoder {
 public:
  // `tokens`: the bytes of each id of `ids`, which are distinct.
  TokenDecoder(const std::vector<uint32_t>& ids, const std::vector<std::string>& tokens);

  // Number of bytes that the ids spell. Throws InputError that names the first id without token.
  template <class Id>
  size_t decoded_size(const Id* ids, size_t count) const;

  // Writes the bytes of ids that decoded_size has checked to `out`, which has room for exactly
  // `size` bytes, the number that it gave.
  template <class Id>
  void decode(const Id* ids, size_t count, char* out, size_t size) const;

  // Bytes of each list, as a large_binary column: list i is ids[offsets[i]] to
  // ids[offsets[i + 1] - 1]. `threads`: at least 1.
  template <class Id>
  OwnedColumn decode_lists(const Id* ids, int64_t id_count, const Int64Column& offsets,
                           size_t threads) const;

 private:
  static constexpr size_t kInline = 15;

  // A token of up to 15 bytes, copied as a whole whatever its length.
  struct Entry {
    char bytes[kInline];
    uint8_t length;  // kOther: a longer token, or none
  };
  static constexpr uint8_t kOther = 255;
  static constexpr size_t kBlock = 4096;  // ids that are looked at together

  template <class Id>
  size_t index_of(Id id) const;
  std::string_view token_of(size_t index) const;
  template <class Id>
  size_t careful_size(const Id* ids, size_t begin, size_t end) const;

  size_t limit_ = 0;              // ids are below it; the entries from it on are empty
  std::vector<Entry> entries_;    // by id, at least 2^16 + 1
  std::vector<uint8_t> lengths_;  // the same by id alone: a table that stays in the cache
  std::unordered_map<uint32_t, std::string> long_tokens_;  // of more than 15 bytes, by id
};

}  // namespace beam_bpe
