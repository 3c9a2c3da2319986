// BPE of long pre-tokens in linear time: longest tokens first, and back where that fails.
//
// The tokens of a BPE encoding are the only sequence for the text in which every two neighbours
// are "valid": encoding the bytes of the two together gives the two again. So the encoding can be
// found from left to right: take the longest token that the rest of the text starts with and that
// is valid after the last one, else the next shorter one; if none is, the last token was wrong,
// and no encoding reaches this position. As each position fails only once, work is linear.
#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "encode/merge_table.h"
#include "encode/prefix_trie.h"

namespace beam_bpe {

class BacktrackingMerger {
 public:
  // Keeps a reference to the table.
  explicit BacktrackingMerger(const MergeTable& table) : table_(table), trie_(table) {}

  // Inner tokens of text[0, size), in place of what `tokens` holds. dead: working memory.
  void encode(const uint8_t* text, size_t size, std::vector<uint32_t>& tokens,
              std::vector<uint64_t>& dead) const;

 private:
  bool are_valid(uint32_t left, uint32_t right) const;

  const MergeTable& table_;
  PrefixTrie trie_;
};

}  // namespace beam_bpe
