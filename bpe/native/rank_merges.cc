#include "rank_merges.h"

#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>

#include "errors.h"

namespace beam_bpe {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

// Tokens by their bytes, open addressing.
class TokenIndex {
 public:
  explicit TokenIndex(const BinaryColumn& tokens) : tokens_(tokens) {
    size_t slots = 16;
    while (slots < static_cast<size_t>(tokens.size()) * 2) slots *= 2;
    slots_.assign(slots, kNone);
    for (int64_t i = 0; i < tokens.size(); ++i) {
      size_t at = hash_of(tokens[i]) & (slots - 1);
      while (slots_[at] != kNone) at = (at + 1) & (slots - 1);
      slots_[at] = static_cast<uint32_t>(i);
    }
  }

  // The token of these bytes; kNone if there is none.
  uint32_t find(std::string_view bytes) const {
    for (size_t at = hash_of(bytes) & (slots_.size() - 1);; at = (at + 1) & (slots_.size() - 1)) {
      if (slots_[at] == kNone || tokens_[slots_[at]] == bytes) return slots_[at];
    }
  }

 private:
  static size_t hash_of(std::string_view bytes) {
    uint64_t hash = bytes.size();
    size_t i = 0;
    for (; i + 8 <= bytes.size(); i += 8) {
      uint64_t word;
      std::memcpy(&word, bytes.data() + i, 8);
      hash = (hash ^ word) * 0x9E3779B97F4A7C15u;
      hash ^= hash >> 32;
    }
    uint64_t rest = 0;
    std::memcpy(&rest, bytes.data() + i, bytes.size() - i);
    hash = (hash ^ rest) * 0x9E3779B97F4A7C15u;
    return hash ^ hash >> 32;
  }

  const BinaryColumn& tokens_;
  std::vector<uint32_t> slots_;
};

// Merges the bytes of one token after another as far as what ranks below it goes.
class PartMerger {
 public:
  explicit PartMerger(const TokenIndex& index) : index_(index) {}

  // Where the second of the two parts that remain of a token starts; 0 where more than two do.
  size_t last_border(std::string_view token, uint32_t rank) {
    borders_.resize(token.size() + 1);
    joined_.resize(token.size());
    for (size_t i = 0; i <= token.size(); ++i) borders_[i] = i;
    for (size_t i = 0; i + 1 < token.size(); ++i) joined_[i] = join(token, i);
    joined_.pop_back();  // of the last part, which has no right neighbour
    while (borders_.size() > 3) {
      // The leftmost of the lowest rank.
      const auto best = std::min_element(joined_.begin(), joined_.end());
      if (*best >= rank) return 0;
      const auto at = static_cast<size_t>(best - joined_.begin());
      borders_.erase(borders_.begin() + static_cast<std::ptrdiff_t>(at) + 1);
      joined_.erase(best);
      if (at < joined_.size()) joined_[at] = join(token, at);
      if (at > 0) joined_[at - 1] = join(token, at - 1);
    }
    return borders_[1];
  }

 private:
  // Rank of the token that part i and the one behind it spell.
  uint32_t join(std::string_view token, size_t i) const {
    return index_.find(token.substr(borders_[i], borders_[i + 2] - borders_[i]));
  }

  const TokenIndex& index_;
  std::vector<size_t> borders_;   // of the parts, both ends included
  std::vector<uint32_t> joined_;  // for each part but the last
};

uint32_t find_part(const TokenIndex& index, std::string_view part, uint32_t rank) {
  const uint32_t found = index.find(part);
  if (found != kNone) return found;
  throw VocabularyError("token " + std::to_string(rank) +
                        " by rank holds a byte that is no token: a vocabulary needs all of them");
}

}  // namespace

RecoveredMerges recover_merges(const BinaryColumn& tokens) {
  if (tokens.size() >= kNone) throw VocabularyError("a table holds at most 2^32 - 2 tokens");
  const TokenIndex index(tokens);
  PartMerger merger(index);
  RecoveredMerges found;
  for (uint32_t rank = 0; rank < tokens.size(); ++rank) {
    const std::string_view token = tokens[rank];
    if (token.size() < 2) continue;
    const size_t border = merger.last_border(token, rank);
    if (border == 0) {
      found.unmerged.push_back(rank);
      continue;
    }
    found.left.push_back(find_part(index, token.substr(0, border), rank));
    found.right.push_back(find_part(index, token.substr(border), rank));
    found.made.push_back(rank);
  }
  return found;
}

std::vector<OwnedColumn> to_columns(RecoveredMerges merges) {
  std::vector<OwnedColumn> columns;
  for (auto* part : {&merges.left, &merges.right, &merges.made, &merges.unmerged}) {
    const auto length = static_cast<int64_t>(part->size());
    columns.push_back({"I", length, {own_buffer(std::move(*part))}, {}});
  }
  return columns;
}

}  // namespace beam_bpe
