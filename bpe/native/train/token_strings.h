// The bytes of every token, by id, in one block of memory.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace beam_bpe {

class TokenStrings {
 public:
  TokenStrings() = default;

  // Starts with the 256 single bytes: id i spells `bytes[i]`.
  explicit TokenStrings(const std::array<uint8_t, 256>& bytes) {
    for (const uint8_t byte : bytes) {
      text_.push_back(static_cast<char>(byte));
      ends_.push_back(text_.size());
    }
  }

  void append(std::string_view token) {
    text_.append(token);
    ends_.push_back(text_.size());
  }

  size_t size() const { return ends_.size(); }

  // Valid until the next append.
  std::string_view operator[](size_t id) const {
    const size_t start = id == 0 ? 0 : ends_[id - 1];
    return {text_.data() + start, ends_[id] - start};
  }

  size_t length(size_t id) const { return ends_[id] - (id == 0 ? 0 : ends_[id - 1]); }

  // Appends the token whose bytes are those of `left`, then those of `right`.
  void append_joined(size_t left, size_t right) {
    const size_t added = length(left) + length(right);
    if (text_.capacity() < text_.size() + added) text_.reserve(2 * (text_.size() + added));
    text_.append((*this)[left]);
    text_.append((*this)[right]);
    ends_.push_back(text_.size());
  }

 private:
  std::string text_;           // the bytes of all tokens, one after another
  std::vector<size_t> ends_;   // where each token ends in `text_`
};

}  // namespace beam_bpe
