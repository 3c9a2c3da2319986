#include "prefix_trie.h"

#include <algorithm>
#include <string>
#include <utility>

namespace beam_bpe {
namespace {

// Bytes of all tokens, from their pairs: a pair's halves have lower numbers.
std::vector<std::string> spell_tokens(const MergeTable& table) {
  std::vector<std::string> bytes(table.token_count());
  for (uint32_t token = 0; token < bytes.size(); ++token) {
    const MergeTable::Pair pair = table.split(token);
    bytes[token] = token < 256 ? std::string(1, static_cast<char>(token))
                               : bytes[pair.left] + bytes[pair.right];
  }
  return bytes;
}

constexpr size_t kMostTries = 256;

// A plain trie as sorted child lists, and what is to be known of its nodes.
struct PlainTrie {
  struct Node {
    std::vector<std::pair<uint8_t, uint32_t>> children;
    uint32_t token = kNoToken;
  };
  std::vector<Node> nodes{1};

  uint32_t child(uint32_t node, uint8_t byte) const {
    for (const auto& [found, next] : nodes[node].children) {
      if (found == byte) return next;
    }
    return kNoToken;
  }

  void add(const std::string& bytes, uint32_t token) {
    uint32_t node = 0;
    for (const char byte : bytes) {
      uint32_t next = child(node, static_cast<uint8_t>(byte));
      if (next == kNoToken) {
        next = static_cast<uint32_t>(nodes.size());
        nodes[node].children.emplace_back(static_cast<uint8_t>(byte), next);
        nodes.emplace_back();
      }
      node = next;
    }
    nodes[node].token = token;
  }

  uint32_t longest_proper_prefix(const std::string& bytes) const {
    uint32_t best = kNoToken;
    uint32_t node = 0;
    for (size_t i = 0; i + 1 < bytes.size(); ++i) {
      node = child(node, static_cast<uint8_t>(bytes[i]));
      if (nodes[node].token != kNoToken) best = nodes[node].token;
    }
    return best;
  }
};

}  // namespace

PrefixTrie::PrefixTrie(const MergeTable& table) : starts_(size_t{1} << 16) {
  const std::vector<std::string> tokens = spell_tokens(table);
  PlainTrie plain;
  for (uint32_t token = 0; token < tokens.size(); ++token) plain.add(tokens[token], token);
  for (const std::string& bytes : tokens) {
    next_shorter_.push_back(plain.longest_proper_prefix(bytes));
  }
  // Places the children of each node, breadth first, at the first base where all of them fit.
  nodes_.resize(plain.nodes.size() * 2 + 1024);
  std::vector<uint32_t> place(plain.nodes.size(), 0);
  std::vector<uint32_t> order{0};
  nodes_[0].parent = 0;
  size_t lowest_free = 1;
  for (size_t i = 0; i < order.size(); ++i) {
    const PlainTrie::Node& node = plain.nodes[order[i]];
    if (node.children.empty()) continue;
    const uint32_t state = place[order[i]];
    const auto fits = [&](size_t base) {
      if (base + 256 > nodes_.size()) nodes_.resize(nodes_.size() * 2);
      return std::all_of(node.children.begin(), node.children.end(), [&](const auto& child) {
        return nodes_[base + child.first].parent == kNoState;
      });
    };
    const uint8_t lowest = std::min_element(node.children.begin(), node.children.end())->first;
    size_t base = lowest_free > lowest ? lowest_free - lowest : 1;
    size_t tries = 0;
    while (!fits(base)) {
      ++base;
      ++tries;
    }
    // Where much was tried in vain the array is nearly full: later searches begin behind it.
    if (tries > kMostTries) lowest_free = std::max(lowest_free, base);
    nodes_[state].base = static_cast<uint32_t>(base);
    for (const auto& [byte, child] : node.children) {
      const auto next = static_cast<uint32_t>(base + byte);
      nodes_[next].parent = state;
      nodes_[next].token = plain.nodes[child].token;
      place[child] = next;
      order.push_back(child);
    }
    while (lowest_free < nodes_.size() && nodes_[lowest_free].parent != kNoState) ++lowest_free;
  }
  nodes_.resize(nodes_.size() + 256);
  for (size_t first = 0; first < 256; ++first) {
    const uint32_t node = plain.child(0, static_cast<uint8_t>(first));
    for (const auto& [second, child] : plain.nodes[node].children) {
      starts_[first << 8 | second] = {place[child], plain.nodes[child].token};
    }
  }
}

}  // namespace beam_bpe
