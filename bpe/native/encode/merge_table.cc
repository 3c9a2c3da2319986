#include "encode/merge_table.h"

#include <algorithm>
#include "memory/errors.h"
#include <string>
#include <unordered_map>

namespace beam_bpe {
MergeTable::MergeTable(const EncodingModel& model, const MergeList& merges,
                       const std::vector<uint32_t>& last_merges) {
  std::unordered_map<uint32_t, uint32_t> inner;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    pairs_.push_back({byte, byte});
    outer_.push_back(merges.byte_id(static_cast<uint8_t>(byte)));
    sizes_.push_back(1);
    inner.emplace(outer_.back(), byte);
  }
  std::vector<bool> happens(model.merges.size(), false);
  for (const uint32_t rank : last_merges) {
    if (rank != kNoToken) happens[rank] = true;
  }
  for (size_t rank = 0; rank < model.merges.size(); ++rank) {
    if (!happens[rank]) continue;
    const Merge& merge = model.merges[rank];
    inner.emplace(merge.result, static_cast<uint32_t>(pairs_.size()));
    pairs_.push_back({inner.at(merge.left), inner.at(merge.right)});
    outer_.push_back(merge.result);
    sizes_.push_back(static_cast<uint32_t>(merges.bytes(merge.result).size()));
    longest_ = std::max(longest_, sizes_.back());
  }
  if (pairs_.size() > (size_t{1} << 21)) {
    throw VocabularyError("the model has " + std::to_string(pairs_.size() - 256) +
                                " merges, 2^21 - 256 are supported");
  }
  index_pairs();
}

void MergeTable::index_pairs() {
  unsigned bits = 9;
  while ((size_t{1} << bits) < pairs_.size() * 2) ++bits;
  filter_shift_ = 64 - (bits + 2);
  filter_.assign((size_t{1} << (bits + 2)) / 64, 0);
  slot_mask_ = (size_t{1} << bits) - 1;
  slots_.assign(slot_mask_ + 1, kEmpty);
  byte_pairs_.assign(size_t{1} << 16, kNoToken);
  for (uint32_t token = 256; token < pairs_.size(); ++token) {
    const Pair pair = pairs_[token];
    const uint64_t key = pack(pair.left, pair.right);
    const uint64_t hash = hash_of(key);
    const uint64_t bit = hash >> filter_shift_;
    filter_[bit / 64] |= uint64_t{1} << (bit % 64);
    size_t slot = hash & slot_mask_;
    while (slots_[slot] != kEmpty) slot = (slot + 1) & slot_mask_;
    slots_[slot] = key << kValueBits | token;
    if (pair.left < 256 && pair.right < 256) byte_pairs_[pair.left << 8 | pair.right] = token;
  }
}

}  // namespace beam_bpe
