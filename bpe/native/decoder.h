// Ids to bytes.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "encoding_model.h"

namespace beam_bpe {

class Decoder {
 public:
  // Bytes that `decode` may write past the end of what it returns.
  static constexpr size_t kSlack = 16;

  explicit Decoder(const EncodingModel& model);

  // Bytes of all ids together; SIZE_MAX if one of them is no token of the model.
  size_t size(const uint32_t* ids, size_t count) const;

  // Writes them to `out`, which has room for `size` bytes and kSlack more; every id is known.
  void decode(const uint32_t* ids, size_t count, uint8_t* out) const;

 private:
  static constexpr size_t kInline = 15;

  // The token's bytes themselves if there are at most kInline of them.
  struct alignas(16) Slot {
    uint8_t bytes[kInline];
    uint8_t size;  // kLong or kUnknown
  };
  static constexpr uint8_t kLong = 0xFE;
  static constexpr uint8_t kUnknown = 0xFF;

  const std::string& long_token(uint32_t id) const { return long_tokens_[long_index_[id]]; }

  std::vector<Slot> slots_;
  std::vector<std::string> long_tokens_;
  std::vector<uint32_t> long_index_;
};

}  // namespace beam_bpe
