#include "encode/merge_list.h"

#include <algorithm>

#include "memory/errors.h"
#include "memory/pair_key.h"

namespace beam_bpe {
namespace {

// Such a byte may have no id; texts that hold one are refused before they come here.
bool is_never_in_utf8(size_t byte) { return byte == 0xC0 || byte == 0xC1 || byte >= 0xF5; }

}  // namespace

MergeList::MergeList(const EncodingModel& model) : model_(model) {
  if (model.ids.size() != model.tokens.size()) {
    throw VocabularyError("the model has " + std::to_string(model.ids.size()) + " ids for " +
                                std::to_string(model.tokens.size()) + " tokens");
  }
  index_tokens();
  index_merges();
}

void MergeList::index_tokens() {
  std::fill(byte_ids_, byte_ids_ + 256, kNoToken);
  for (size_t i = 0; i < model_.ids.size(); ++i) {
    const uint32_t id = model_.ids[i];
    if (id >= kMaxIds) {
      throw VocabularyError("token id " + std::to_string(id) + " is above " +
                                  std::to_string(kMaxIds - 1) + ", the largest supported");
    }
    if (id >= index_.size()) index_.resize(id + 1, kNoToken);
    if (index_[id] != kNoToken) {
      throw VocabularyError("token id " + std::to_string(id) + " is used twice");
    }
    index_[id] = static_cast<uint32_t>(i);
    const std::string& bytes = model_.tokens[i];
    if (bytes.size() == 1) byte_ids_[static_cast<uint8_t>(bytes[0])] = id;
  }
  for (size_t byte = 0; byte < 256; ++byte) {
    if (byte_ids_[byte] == kNoToken && !is_never_in_utf8(byte)) {
      throw VocabularyError("byte " + std::to_string(byte) +
                                  " has no id: a vocabulary needs every single byte");
    }
  }
}

void MergeList::index_merges() {
  size_t slots = 16;
  while (slots < model_.merges.size() * 2) slots *= 2;
  ranks_.assign(slots, Slot{});
  for (size_t rank = 0; rank < model_.merges.size(); ++rank) {
    const Merge& merge = model_.merges[rank];
    if (!has_id(merge.left) || !has_id(merge.right) || !has_id(merge.result) ||
        bytes(merge.left) + bytes(merge.right) != bytes(merge.result) ||
        bytes(merge.left).empty() || bytes(merge.right).empty()) {
      throw VocabularyError("merge " + std::to_string(rank) + " (" +
                                  std::to_string(merge.left) + ", " + std::to_string(merge.right) +
                                  ") does not spell token " + std::to_string(merge.result));
    }
    // Of a pair given twice the last merge counts.
    Slot& slot = slot_of(pair_key(merge.left, merge.right));
    slot = {pair_key(merge.left, merge.right), static_cast<uint32_t>(rank)};
  }
}

MergeList::Slot& MergeList::slot_of(uint64_t pair) {
  size_t at = mix_key(pair) & (ranks_.size() - 1);
  while (ranks_[at].pair != pair && ranks_[at].pair != kEmpty) at = (at + 1) & (ranks_.size() - 1);
  return ranks_[at];
}

uint32_t MergeList::rank(uint32_t left, uint32_t right) const {
  const uint64_t pair = pair_key(left, right);
  for (size_t at = mix_key(pair) & (ranks_.size() - 1);; at = (at + 1) & (ranks_.size() - 1)) {
    if (ranks_[at].pair == pair) return ranks_[at].rank;
    if (ranks_[at].pair == kEmpty) return kNoToken;
  }
}

std::vector<uint32_t> MergeList::last_merges() const {
  std::vector<uint32_t> found(model_.ids.size(), kNoToken);
  std::vector<uint32_t> ids;
  HeapMergeScratch scratch;
  for (size_t i = 0; i < model_.ids.size(); ++i) {
    const std::string& bytes = model_.tokens[i];
    const uint32_t last =
        encode(reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size(), ids, scratch);
    if (ids.size() == 1 && ids[0] == model_.ids[i]) found[i] = last;
  }
  return found;
}

std::vector<size_t> MergeList::early_tokens(const std::vector<uint32_t>& last_merges) const {
  std::vector<size_t> found;
  for (size_t i = 0; i < last_merges.size(); ++i) {
    const uint32_t rank = last_merges[i];
    if (rank == kNoToken) continue;
    const auto comes_later = [&](uint32_t half) {
      const uint32_t last = last_merges[index_[half]];
      return last != kNoToken && last > rank;
    };
    const Merge& merge = model_.merges[rank];
    if (comes_later(merge.left) || comes_later(merge.right)) found.push_back(i);
  }
  return found;
}

uint32_t MergeList::encode(const uint8_t* pretoken, size_t size, std::vector<uint32_t>& ids,
                           HeapMergeScratch& scratch) const {
  if (size > kLongestHeapPretoken) {
    throw InputError("a pre-token of " + std::to_string(size) + " bytes: with a token that merges "
                     "earlier than its halves at most " + std::to_string(kLongestHeapPretoken) +
                     " are supported; split the document");
  }
  ids.resize(size);
  for (size_t i = 0; i < size; ++i) ids[i] = byte_ids_[pretoken[i]];
  return heap_merge(
      ids, scratch, [this](uint32_t left, uint32_t right) { return rank(left, right); },
      [this](uint32_t found) { return model_.merges[found].result; });
}

}  // namespace beam_bpe
