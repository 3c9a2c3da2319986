#include "merge_table.h"

#include <algorithm>
#include "errors.h"
#include <string>
#include <unordered_map>

namespace beam_bpe {
namespace {

// By merge: whether it is the one that makes its token when the token's bytes stand alone.
std::vector<bool> find_happening(const EncodingModel& model, const RankedMerges& merges) {
  std::vector<bool> happens(model.merges.size(), false);
  std::vector<uint32_t> ids;
  HeapMergeScratch scratch;
  for (size_t i = 0; i < model.ids.size(); ++i) {
    const std::string& bytes = model.tokens[i];
    const uint32_t rank =
        merges.encode(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), ids, scratch);
    if (rank != kNoToken && ids.size() == 1 && ids[0] == model.ids[i]) happens[rank] = true;
  }
  return happens;
}

}  // namespace

MergeTable::MergeTable(const EncodingModel& model, const RankedMerges& merges) {
  std::unordered_map<uint32_t, uint32_t> inner;
  for (uint32_t byte = 0; byte < 256; ++byte) {
    pairs_.push_back({byte, byte});
    outer_.push_back(merges.byte_id(static_cast<uint8_t>(byte)));
    sizes_.push_back(1);
    inner.emplace(outer_.back(), byte);
  }
  const std::vector<bool> happens = find_happening(model, merges);
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
