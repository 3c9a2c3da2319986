#include "encode/pretoken_merger.h"

#include <algorithm>

#include "encode/short_merge.h"

namespace beam_bpe {

PretokenMerger::PretokenMerger(std::shared_ptr<const EncodingModel> model)
    : model_(std::move(model)) {
  auto merges = std::make_unique<MergeList>(*model_);
  std::vector<uint32_t> last_merges = merges->last_merges();
  if (model_->whole_pretoken) find_unreachable(*merges, last_merges);
  find_early(*merges, last_merges);
  table_ = std::make_unique<MergeTable>(*model_, *merges, last_merges);
  backtracking_ = std::make_unique<BacktrackingMerger>(*table_);
  if (!early_.empty()) merges_ = std::move(merges);
}

// Keeps early tokens and all that contain them out of the table; see merge_table.h.
void PretokenMerger::find_early(const MergeList& merges, std::vector<uint32_t>& last_merges) {
  for (const size_t i : merges.early_tokens(last_merges)) early_.add(model_->tokens[i]);
  if (early_.empty()) return;
  early_.link();
  for (size_t i = 0; i < last_merges.size(); ++i) {
    const std::string& bytes = model_->tokens[i];
    if (last_merges[i] == kNoToken) continue;
    if (early_.is_in(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size())) {
      last_merges[i] = kNoToken;
    }
  }
}

void PretokenMerger::find_unreachable(const MergeList& merges,
                                      const std::vector<uint32_t>& last_merges) {
  for (size_t i = 0; i < model_->ids.size(); ++i) {
    const std::string& bytes = model_->tokens[i];
    if (bytes.empty()) continue;
    const bool is_byte = bytes.size() == 1 &&
                         merges.byte_id(static_cast<uint8_t>(bytes[0])) == model_->ids[i];
    // Of tokens with the same bytes the last one counts.
    if (last_merges[i] != kNoToken || is_byte) {
      unreachable_.erase(bytes);
    } else {
      unreachable_[bytes] = model_->ids[i];
      longest_unreachable_ = std::max(longest_unreachable_, bytes.size());
    }
  }
}

uint32_t PretokenMerger::unreachable_pretoken(const uint8_t* pretoken, size_t size) const {
  if (size > longest_unreachable_) return kNoToken;
  const auto found = unreachable_.find(std::string(reinterpret_cast<const char*>(pretoken), size));
  return found == unreachable_.end() ? kNoToken : found->second;
}

void PretokenMerger::encode(const uint8_t* pretoken, size_t size, std::vector<uint32_t>& ids,
                            MergeScratch& scratch) const {
  const uint32_t whole = unreachable_pretoken(pretoken, size);
  if (whole != kNoToken) {
    ids.assign(1, whole);
    return;
  }
  if (has_early(pretoken, size)) {
    merges_->encode(pretoken, size, ids, scratch.heap);
    return;
  }
  if (size <= kShortPretoken) {
    ids.resize(size);
    ids.resize(short_merge(*table_, pretoken, size, ids.data()));
  } else {
    backtracking_->encode(pretoken, size, ids, scratch.dead);
  }
  for (uint32_t& id : ids) id = table_->outer_id(id);
}

size_t PretokenMerger::encode_short(const uint8_t* pretoken, size_t size, uint32_t* ids,
                                    MergeScratch& scratch) const {
  const uint32_t whole = unreachable_pretoken(pretoken, size);
  if (whole != kNoToken) {
    ids[0] = whole;
    return 1;
  }
  if (size > kShortPretoken || has_early(pretoken, size)) {
    std::vector<uint32_t> found;
    encode(pretoken, size, found, scratch);
    std::copy(found.begin(), found.end(), ids);
    return found.size();
  }
  const size_t count = short_merge(*table_, pretoken, size, ids);
  for (size_t i = 0; i < count; ++i) ids[i] = table_->outer_id(ids[i]);
  return count;
}

}  // namespace beam_bpe
