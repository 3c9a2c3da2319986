// The merges that a table of ranked tokens stands for; bpe/reference/ranks.py is the specification.
#pragma once

#include <cstdint>
#include <vector>

#include "python/arrow_columns.h"

namespace beam_bpe {

// Positions of tokens in a table that is sorted by rank.
struct RecoveredMerges {
  std::vector<uint32_t> left;
  std::vector<uint32_t> right;
  std::vector<uint32_t> made;      // ascending
  std::vector<uint32_t> unmerged;  // tokens of two bytes and more that no merge makes, ascending
};

// `tokens`: distinct, by ascending rank. Throws VocabularyError for more than 2^32 - 2 tokens, and
// where a token holds a byte that is no token. Time and memory: those of the tokens' bytes.
RecoveredMerges recover_merges(const BinaryColumn& tokens);

// uint32 left, right and made; uint32 unmerged.
std::vector<OwnedColumn> to_columns(RecoveredMerges merges);

}  // namespace beam_bpe
