#include "decoder.h"

#include <algorithm>
#include <cstring>

namespace beam_bpe {

Decoder::Decoder(const EncodingModel& model) {
  const uint32_t largest = *std::max_element(model.ids.begin(), model.ids.end());
  Slot unknown = {};
  unknown.size = kUnknown;
  slots_.assign(size_t{largest} + 1, unknown);
  for (size_t i = 0; i < model.ids.size(); ++i) {
    const uint32_t id = model.ids[i];
    const std::string& token = model.tokens[i];
    if (token.size() <= kInline) {
      std::memcpy(slots_[id].bytes, token.data(), token.size());
      slots_[id].size = static_cast<uint8_t>(token.size());
    } else {
      slots_[id].size = kLong;
      if (long_index_.empty()) long_index_.assign(slots_.size(), 0);
      long_index_[id] = static_cast<uint32_t>(long_tokens_.size());
      long_tokens_.push_back(token);
    }
  }
}

size_t Decoder::size(const uint32_t* ids, size_t count) const {
  size_t total = 0;
  for (size_t i = 0; i < count; ++i) {
    if (ids[i] >= slots_.size()) return SIZE_MAX;
    const uint8_t size = slots_[ids[i]].size;
    if (size <= kInline) {
      total += size;
    } else if (size == kLong) {
      total += long_token(ids[i]).size();
    } else {
      return SIZE_MAX;
    }
  }
  return total;
}

void Decoder::decode(const uint32_t* ids, size_t count, uint8_t* out) const {
  for (size_t i = 0; i < count; ++i) {
    const Slot& slot = slots_[ids[i]];
    // One fixed-size copy, of which the next token overwrites what is too much.
    std::memcpy(out, &slot, sizeof slot);
    if (__builtin_expect(slot.size <= kInline, 1)) {
      out += slot.size;
    } else {
      const std::string& token = long_token(ids[i]);
      std::memcpy(out, token.data(), token.size());
      out += token.size();
    }
  }
}

}  // namespace beam_bpe
