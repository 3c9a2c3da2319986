#include "encode/recover_merges.h"

#include <algorithm>
#include <array>
#include <string>
#include <string_view>

#include "memory/errors.h"
#include "encode/heap_merge.h"
#include "train/pair_index.h"

namespace beam_bpe {
namespace {

constexpr uint32_t kNone = UINT32_MAX;

// Merges of pairs, as they become known.
class KnownMerges {
 public:
  // The token that the pair makes, which is its rank too; kNone if it makes none.
  uint32_t find(uint32_t left, uint32_t right) const {
    const uint32_t found = pairs_.find(pair_key(left, right));
    return found == PairIndex::kNone ? kNone : made_[found];
  }

  void add(uint32_t left, uint32_t right, uint32_t made) {
    pairs_.insert(pair_key(left, right));
    made_.push_back(made);
  }

  void write_to(RecoveredMerges& found) {
    std::vector<uint32_t> order(made_.size());
    for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
    std::sort(order.begin(), order.end(),
              [this](uint32_t a, uint32_t b) { return made_[a] < made_[b]; });
    for (const uint32_t i : order) {
      found.left.push_back(left_of(pairs_[i].key));
      found.right.push_back(right_of(pairs_[i].key));
      found.made.push_back(made_[i]);
    }
  }

 private:
  PairIndex pairs_;
  std::vector<uint32_t> made_;  // by record of the pair
};

std::array<uint32_t, 256> find_bytes(const BinaryColumn& tokens) {
  std::array<uint32_t, 256> bytes;
  bytes.fill(kNone);
  for (int64_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].size() == 1) {
      bytes[static_cast<uint8_t>(tokens[i][0])] = static_cast<uint32_t>(i);
    }
  }
  return bytes;
}

// Tokens of two bytes and more, the shortest ones first.
std::vector<uint32_t> order_by_size(const BinaryColumn& tokens) {
  std::vector<uint32_t> order;
  for (int64_t i = 0; i < tokens.size(); ++i) {
    if (tokens[i].size() > 1) order.push_back(static_cast<uint32_t>(i));
  }
  std::stable_sort(order.begin(), order.end(), [&](uint32_t a, uint32_t b) {
    return tokens[a].size() < tokens[b].size();
  });
  return order;
}

}  // namespace

RecoveredMerges recover_merges(const BinaryColumn& tokens) {
  if (tokens.size() >= kNone) throw VocabularyError("a table holds at most 2^32 - 2 tokens");
  const std::array<uint32_t, 256> bytes = find_bytes(tokens);
  KnownMerges merges;
  RecoveredMerges found;
  std::vector<uint32_t> parts;
  HeapMergeScratch scratch;
  // Merges within a token make shorter tokens, whose own merges are known by then.
  for (const uint32_t token : order_by_size(tokens)) {
    parts.clear();
    for (const char byte : tokens[token]) {
      parts.push_back(bytes[static_cast<uint8_t>(byte)]);
      if (parts.back() != kNone) continue;
      throw VocabularyError("token " + std::to_string(token) +
                            " by rank holds a byte that is no token: a vocabulary needs all of them");
    }
    heap_merge(
        parts, scratch, [&](uint32_t left, uint32_t right) { return merges.find(left, right); },
        [](uint32_t made) { return made; });
    if (parts.size() == 2) {
      merges.add(parts[0], parts[1], token);
    } else {
      found.unmerged.push_back(token);
    }
  }
  std::sort(found.unmerged.begin(), found.unmerged.end());
  merges.write_to(found);
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
