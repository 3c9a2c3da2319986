// Whether a text contains one of several strings, in one pass over it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <vector>

namespace beam_bpe {

// Aho and Corasick's automaton: a trie of the strings, and for each node the node of the longest
// proper suffix of its string that is in the trie too.
class SubstringFinder {
 public:
  // Adds a string of at least one byte.
  void add(const std::string& string);

  // To be called when all strings are there, before the first search.
  void link();

  bool empty() const { return nodes_.size() == 1; }

  bool is_in(const uint8_t* text, size_t size) const {
    uint32_t node = kRoot;
    for (size_t i = 0; i < size; ++i) {
      node = next(node, text[i]);
      if (nodes_[node].is_end) return true;
    }
    return false;
  }

 private:
  static constexpr uint32_t kRoot = 0;

  struct Node {
    uint32_t parent = kRoot;
    uint32_t suffix = kRoot;
    uint8_t byte = 0;     // that leads here from the parent
    bool is_end = false;  // one of the strings ends here
  };

  static uint64_t edge(uint32_t node, uint8_t byte) { return uint64_t{node} << 8 | byte; }

  // The node of the longest suffix that is in the trie, of a node's string and one byte more.
  uint32_t next(uint32_t node, uint8_t byte) const {
    while (node != kRoot) {
      const auto found = children_.find(edge(node, byte));
      if (found != children_.end()) return found->second;
      node = nodes_[node].suffix;
    }
    return first_[byte];
  }

  std::vector<Node> nodes_ = std::vector<Node>(1);
  std::unordered_map<uint64_t, uint32_t> children_;  // by edge, but for those of the root
  std::array<uint32_t, 256> first_{};                // the root's children; the root for none
};

}  // namespace beam_bpe
