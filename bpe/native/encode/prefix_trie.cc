#include "encode/prefix_trie.h"

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

// A plain trie, and what is to be known of its nodes. Children are found by hash, as the nodes of
// short prefixes have many, and listed in the order in which they came.
class PlainTrie {
 public:
  struct Node {
    uint32_t first_child = kNoToken;
    uint32_t last_child = kNoToken;
    uint32_t next_sibling = kNoToken;
    uint32_t token = kNoToken;
    uint8_t byte = 0;  // that leads here
  };

  // Holds every token of the table. The halves of a token's pair have lower numbers: a token is
  // found from where its left half ends.
  explicit PlainTrie(const MergeTable& table) : nodes_(1), slots_(size_t{1} << 12) {
    const std::vector<std::string> bytes = spell_tokens(table);
    std::vector<uint32_t> ends(bytes.size());
    for (uint32_t token = 0; token < bytes.size(); ++token) {
      const MergeTable::Pair pair = table.split(token);
      uint32_t node = token < 256 ? 0 : ends[pair.left];
      for (const char byte : token < 256 ? bytes[token] : bytes[pair.right]) {
        node = find_or_add(node, static_cast<uint8_t>(byte));
      }
      nodes_[node].token = token;
      ends[token] = node;
    }
  }

  size_t size() const { return nodes_.size(); }
  const Node& operator[](uint32_t node) const { return nodes_[node]; }

  // Calls visit(child) for each child of a node, as long as it returns true; false if it did not.
  template <class Visit>
  bool for_children(uint32_t node, const Visit& visit) const {
    for (uint32_t child = nodes_[node].first_child; child != kNoToken;
         child = nodes_[child].next_sibling) {
      if (!visit(child)) return false;
    }
    return true;
  }

 private:
  struct Slot {
    uint64_t key = 0;  // node << 8 | byte
    uint32_t child = 0;  // 0: free
  };

  Slot& slot_of(uint64_t key) {
    const size_t mask = slots_.size() - 1;
    size_t at = (key * 0x9E3779B97F4A7C15u >> 32) & mask;
    while (slots_[at].child != 0 && slots_[at].key != key) at = (at + 1) & mask;
    return slots_[at];
  }

  uint32_t find_or_add(uint32_t node, uint8_t byte) {
    const uint64_t key = uint64_t{node} << 8 | byte;
    if (Slot& known = slot_of(key); known.child != 0) return known.child;
    if (nodes_.size() * 2 >= slots_.size()) grow();
    const auto added = static_cast<uint32_t>(nodes_.size());
    slot_of(key) = {key, added};
    uint32_t& link = nodes_[node].first_child == kNoToken
                         ? nodes_[node].first_child
                         : nodes_[nodes_[node].last_child].next_sibling;
    link = added;
    nodes_[node].last_child = added;
    nodes_.emplace_back();
    nodes_.back().byte = byte;
    return added;
  }

  void grow() {
    std::vector<Slot> old(slots_.size() * 2);
    old.swap(slots_);
    for (const Slot& moved : old) {
      if (moved.child != 0) slot_of(moved.key) = moved;
    }
  }

  std::vector<Node> nodes_;
  std::vector<Slot> slots_;  // open addressing, at most half full
};

}  // namespace

PrefixTrie::PrefixTrie(const MergeTable& table)
    : starts_(size_t{1} << 16), next_shorter_(table.token_count(), kNoToken) {
  const PlainTrie plain(table);
  // Places the children of each node, breadth first, at the first base where all of them fit.
  nodes_.resize(plain.size() * 2 + 1024);
  std::vector<uint32_t> place(plain.size(), 0);
  std::vector<uint32_t> longest(plain.size(), kNoToken);  // token of a node or of those above it
  std::vector<uint32_t> order{0};
  nodes_[0].parent = 0;
  size_t lowest_free = 1;
  for (size_t i = 0; i < order.size(); ++i) {
    const uint32_t node = order[i];
    if (plain[node].first_child == kNoToken) continue;
    const uint32_t state = place[node];
    const auto fits = [&](size_t base) {
      if (base + 256 > nodes_.size()) nodes_.resize(nodes_.size() * 2);
      return plain.for_children(node, [&](uint32_t child) {
        return nodes_[base + plain[child].byte].parent == kNoState;
      });
    };
    uint8_t lowest = 255;
    plain.for_children(node, [&](uint32_t child) {
      lowest = std::min(lowest, plain[child].byte);
      return true;
    });
    size_t base = lowest_free > lowest ? lowest_free - lowest : 1;
    size_t tries = 0;
    while (!fits(base)) {
      ++base;
      ++tries;
    }
    // Where much was tried in vain the array is nearly full: later searches begin after it.
    if (tries > kMostTries) lowest_free = std::max(lowest_free, base);
    nodes_[state].base = static_cast<uint32_t>(base);
    plain.for_children(node, [&](uint32_t child) {
      const auto next = static_cast<uint32_t>(base + plain[child].byte);
      const uint32_t token = plain[child].token;
      nodes_[next].parent = state;
      nodes_[next].token = token;
      place[child] = next;
      longest[child] = token == kNoToken ? longest[node] : token;
      if (token != kNoToken) next_shorter_[token] = longest[node];
      order.push_back(child);
      return true;
    });
    while (lowest_free < nodes_.size() && nodes_[lowest_free].parent != kNoState) ++lowest_free;
  }
  nodes_.resize(nodes_.size() + 256);
  plain.for_children(0, [&](uint32_t first) {
    return plain.for_children(first, [&](uint32_t second) {
      starts_[static_cast<size_t>(plain[first].byte) << 8 | plain[second].byte] = {
          place[second], plain[second].token};
      return true;
    });
  });
}

}  // namespace beam_bpe
