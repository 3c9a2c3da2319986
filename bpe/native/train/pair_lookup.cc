#include "train/pair_lookup.h"

#include <algorithm>
#include <string>

#include "memory/errors.h"

namespace beam_bpe {

namespace {

constexpr size_t kDenseSide = 512;   // ids; the table then takes 1 MiB
constexpr unsigned kFilterBits = 3;  // log2 of the filter's bits for each slot

}  // namespace

PairLookup::PairLookup(const std::vector<uint32_t>& left, const std::vector<uint32_t>& right)
    : size_(left.size()) {
  if (left.size() != right.size()) {
    throw InputError("there are " + std::to_string(left.size()) + " left and " +
                     std::to_string(right.size()) + " right ids of pairs: pass as many of each");
  }
  if (left.size() >= kNone) throw InputError("2^32 pairs are too many");
  uint64_t limit = 0;
  for (const auto* ids : {&left, &right}) {
    for (const uint32_t id : *ids) limit = std::max(limit, uint64_t{id} + 1);
  }
  if (limit <= kDenseSide) {
    side_ = static_cast<size_t>(limit);
    index_dense(left, right);
  }
  if (dense_.empty()) index_slots(left, right);
}

void PairLookup::refuse_repeat(uint32_t left, uint32_t right) {
  throw InputError("the pair (" + std::to_string(left) + ", " + std::to_string(right) +
                   ") is listed twice");
}

void PairLookup::index_dense(const std::vector<uint32_t>& left,
                             const std::vector<uint32_t>& right) {
  dense_.assign(side_ * side_, kNone);
  for (uint32_t i = 0; i < left.size(); ++i) {
    uint32_t& rank = dense_[left[i] * side_ + right[i]];
    if (rank != kNone) refuse_repeat(left[i], right[i]);
    rank = i;
  }
}

void PairLookup::index_slots(const std::vector<uint32_t>& left,
                             const std::vector<uint32_t>& right) {
  unsigned bits = 6;
  while ((size_t{1} << bits) < left.size() * 2) ++bits;
  slots_.assign(size_t{1} << bits, {0, kNone});
  slot_mask_ = slots_.size() - 1;
  filter_.assign((size_t{1} << (bits + kFilterBits)) / 64, 0);
  filter_shift_ = 64 - (bits + kFilterBits);
  for (uint32_t i = 0; i < left.size(); ++i) {
    const uint64_t key = pair_key(left[i], right[i]);
    const uint64_t hash = mix_key(key);
    const uint64_t bit = hash >> filter_shift_;
    filter_[bit / 64] |= uint64_t{1} << (bit % 64);
    size_t slot = hash & slot_mask_;
    for (; slots_[slot].rank != kNone; slot = (slot + 1) & slot_mask_) {
      if (slots_[slot].key == key) refuse_repeat(left[i], right[i]);
    }
    slots_[slot] = {key, i};
  }
}

}  // namespace beam_bpe
