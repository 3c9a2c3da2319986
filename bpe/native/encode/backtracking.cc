#include "encode/backtracking.h"

namespace beam_bpe {

// Undoes the merges of both tokens from the last one back, and asks at each step whether a merge
// across the border would have come before the merge just undone.
bool BacktrackingMerger::are_valid(uint32_t left, uint32_t right) const {
  uint32_t limit = kNoToken;
  while (true) {
    const uint32_t across = table_.merged(left, right);
    if (across < limit) return false;
    if (left > right) {
      limit = left;
      left = table_.split(left).right;
      if (left != limit) continue;
      // A single byte: only the right one is left to undo.
      limit = right + 1;
      right = table_.split(right).left;
      if (right + 1 == limit) return true;
    } else {
      limit = right + 1;
      right = table_.split(right).left;
      if (right + 1 != limit) continue;
      limit = left;
      left = table_.split(left).right;
      if (left == limit) return true;
    }
  }
}

void BacktrackingMerger::encode(const uint8_t* text, size_t size, std::vector<uint32_t>& tokens,
                                std::vector<uint64_t>& dead) const {
  tokens.clear();
  dead.assign(size / 64 + 1, 0);
  size_t position = 0;
  uint32_t next = trie_.longest(text, size);
  while (true) {
    const size_t end = position + table_.token_size(next);
    const bool is_dead = dead[end / 64] >> (end % 64) & 1;
    if (!is_dead && (tokens.empty() || are_valid(tokens.back(), next))) {
      tokens.push_back(next);
      position = end;
      if (position == size) return;
      next = trie_.longest(text + position, size - position);
      continue;
    }
    next = trie_.next_shorter(next);
    if (next != kNoToken) continue;
    // No encoding ends a token here, so the last one goes too; its end being dead, the loop tries
    // shorter ones in its place. (Not at the text's start: the encoding begins there.)
    dead[position / 64] |= uint64_t{1} << (position % 64);
    next = tokens.back();
    tokens.pop_back();
    position -= table_.token_size(next);
  }
}

}  // namespace beam_bpe
