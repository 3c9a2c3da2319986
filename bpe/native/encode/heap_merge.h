// BPE of one pre-token by a heap of candidate pairs: O(n log n), for any merges.
//
// The oracle of the tests, and what the normal form of the merges is computed with.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

namespace beam_bpe {

// Positions are 32-bit, and UINT32_MAX is none.
inline constexpr size_t kLongestHeapPretoken = UINT32_MAX - 1;

struct HeapMergeScratch {
  std::vector<uint32_t> next;
  std::vector<uint32_t> previous;
  std::vector<uint64_t> heap;  // rank << 32 | position of the left token
};

// Merges `tokens` in place. rank(left, right) is the pair's rank, UINT32_MAX for none; result(rank)
// the token that it makes; at equal rank the leftmost pair goes first. At most
// kLongestHeapPretoken tokens. Returns the rank of the last merge, UINT32_MAX if there was none.
template <typename Rank, typename Result>
uint32_t heap_merge(std::vector<uint32_t>& tokens, HeapMergeScratch& scratch, const Rank& rank,
                    const Result& result) {
  constexpr uint32_t kNone = UINT32_MAX;
  const auto size = static_cast<uint32_t>(tokens.size());
  scratch.next.resize(size);
  scratch.previous.resize(size);
  scratch.heap.clear();
  std::vector<uint64_t>& heap = scratch.heap;
  for (uint32_t i = 0; i < size; ++i) {
    scratch.next[i] = i + 1;
    scratch.previous[i] = i - 1;
    const uint32_t first = i + 1 < size ? rank(tokens[i], tokens[i + 1]) : kNone;
    if (first != kNone) heap.push_back(static_cast<uint64_t>(first) << 32 | i);
  }
  std::make_heap(heap.begin(), heap.end(), std::greater<>());
  const auto offer = [&](uint32_t left, uint32_t right) {
    const uint32_t found = rank(tokens[left], tokens[right]);
    if (found == kNone) return;
    heap.push_back(static_cast<uint64_t>(found) << 32 | left);
    std::push_heap(heap.begin(), heap.end(), std::greater<>());
  };
  uint32_t last = kNone;
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end(), std::greater<>());
    const auto found = static_cast<uint32_t>(heap.back() >> 32);
    const auto left = static_cast<uint32_t>(heap.back());
    heap.pop_back();
    // Entries of pairs that are gone: the left token was swallowed, or one of both has changed.
    if (tokens[left] == kNone) continue;
    const uint32_t right = scratch.next[left];
    if (right >= size || rank(tokens[left], tokens[right]) != found) continue;
    tokens[left] = result(found);
    tokens[right] = kNone;
    last = found;
    const uint32_t after = scratch.next[left] = scratch.next[right];
    if (after < size) {
      scratch.previous[after] = left;
      offer(left, after);
    }
    if (left > 0) offer(scratch.previous[left], left);
  }
  tokens.erase(std::remove(tokens.begin(), tokens.end(), kNone), tokens.end());
  return last;
}

}  // namespace beam_bpe
