#include "encode/substring_finder.h"

#include <algorithm>
#include <numeric>

namespace beam_bpe {

void SubstringFinder::add(const std::string& string) {
  uint32_t node = kRoot;
  for (const char character : string) {
    if (nodes_[node].is_end) return;  // contains a string that is there already
    const auto byte = static_cast<uint8_t>(character);
    uint32_t& child = node == kRoot ? first_[byte] : children_[edge(node, byte)];
    if (child == kRoot) {
      child = static_cast<uint32_t>(nodes_.size());
      nodes_.push_back({node, kRoot, byte, false});
    }
    node = child;
  }
  nodes_[node].is_end = true;
}

void SubstringFinder::link() {
  // A node's suffix is shorter than its string: shorter strings are linked first.
  std::vector<uint32_t> depths(nodes_.size(), 0);
  for (uint32_t node = 1; node < nodes_.size(); ++node) {
    depths[node] = depths[nodes_[node].parent] + 1;
  }
  std::vector<uint32_t> order(nodes_.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](uint32_t a, uint32_t b) { return depths[a] < depths[b]; });
  for (const uint32_t node : order) {
    Node& linked = nodes_[node];
    if (depths[node] > 1) linked.suffix = next(nodes_[linked.parent].suffix, linked.byte);
    linked.is_end = linked.is_end || nodes_[linked.suffix].is_end;
  }
}

}  // namespace beam_bpe
