// Ids to bytes at the speed of memory.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
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
    uint8_t length;  // kLong: see long_tokens_, by the index in `bytes`; kNone: no such id
  };
  static constexpr uint8_t kLong = 254;
  static constexpr uint8_t kNone = 255;

  const std::string& long_token(const Entry& entry) const;

  std::vector<Entry> entries_;            // by id
  std::vector<std::string> long_tokens_;  // tokens of more than 15 bytes
};

}  // namespace beam_bpe
