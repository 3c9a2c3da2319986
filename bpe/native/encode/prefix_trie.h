// Tokens by their prefixes: the longest token that a text starts with, and all shorter ones.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "encode/merge_table.h"

namespace beam_bpe {

class PrefixTrie {
 public:
  // Holds every token of the table.
  explicit PrefixTrie(const MergeTable& table);

  // Inner number of the longest token that text[0, size) starts with; size >= 1.
  uint32_t longest(const uint8_t* text, size_t size) const {
    uint32_t best = text[0];
    if (size == 1) return best;
    const Start start = starts_[static_cast<size_t>(text[0]) << 8 | text[1]];
    if (start.token != kNoToken) best = start.token;
    uint32_t state = start.state;
    for (size_t i = 2; i < size && state != kNoState; ++i) {
      const Node& parent = nodes_[state];
      if (!parent.base) break;
      const uint32_t next = parent.base + text[i];
      if (nodes_[next].parent != state) break;
      state = next;
      if (nodes_[next].token != kNoToken) best = nodes_[next].token;
    }
    return best;
  }

  // The longest token that is a proper prefix of `token`; kNoToken for a byte.
  uint32_t next_shorter(uint32_t token) const { return next_shorter_[token]; }

 private:
  static constexpr uint32_t kNoState = UINT32_MAX;

  // A double array: the child of a state for a byte is at base + byte, if that names it as parent.
  struct Node {
    uint32_t base = 0;  // 0: no children
    uint32_t parent = kNoState;
    uint32_t token = kNoToken;
  };
  // Where the first two bytes lead.
  struct Start {
    uint32_t state = kNoState;
    uint32_t token = kNoToken;
  };

  std::vector<Node> nodes_;
  std::vector<Start> starts_;
  std::vector<uint32_t> next_shorter_;
};

}  // namespace beam_bpe
