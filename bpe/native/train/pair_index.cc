#include "train/pair_index.h"

#include "memory/errors.h"

namespace beam_bpe {

void PairIndex::clear() {
  records_.clear();
  slots_.assign(size_t{1} << 12, {0, kNone});
  mask_ = slots_.size() - 1;
  shift_ = 64 - 12;
}

void PairIndex::place(uint64_t hash, uint32_t record) {
  size_t i = hash >> shift_;
  while (slots_[i].record != kNone) i = (i + 1) & mask_;
  slots_[i] = {static_cast<uint32_t>(hash), record};
}

void PairIndex::grow() {
  slots_.assign(slots_.size() * 2, {0, kNone});
  mask_ = slots_.size() - 1;
  --shift_;
  for (uint32_t record = 0; record < size(); ++record) place(mix_key(records_[record].key), record);
}

uint32_t PairIndex::insert(uint64_t key) {
  if (records_.size() * 2 >= slots_.size()) grow();
  if (records_.size() >= kNone) throw InputError("too many distinct pairs for one machine");
  const uint32_t record = size();
  records_.push_back({key, 0, nullptr, 0, 0});
  place(mix_key(key), record);
  return record;
}

uint32_t* SeamArena::allocate(size_t count) {
  live_ += count;
  if (count >= kLong) {
    LargeArray<uint32_t> list(count);
    uint32_t* address = list.data();
    long_lists_.emplace(address, std::move(list));
    return address;
  }
  if (used_ + count > kBlock) {
    blocks_.emplace_back(kBlock);
    used_ = 0;
  }
  uint32_t* list = blocks_.back().data() + used_;
  used_ += count;
  return list;
}

void SeamArena::release(uint32_t* list, size_t count) {
  live_ -= count;
  if (count >= kLong) long_lists_.erase(list);
}

void SeamArena::clear() {
  blocks_.clear();
  long_lists_.clear();
  used_ = kBlock;
  live_ = 0;
}

}  // namespace beam_bpe
