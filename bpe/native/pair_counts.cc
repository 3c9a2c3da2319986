#include "pair_counts.h"

#include <algorithm>

#include "errors.h"
#include "large_array.h"
#include "pair_index.h"

namespace beam_bpe {

namespace {

constexpr size_t kChunk = 256;  // pairs whose slots are fetched together

// Pair to count, by open addressing.
class PairTable {
 public:
  PairTable() : slots_(size_t{1} << 16) { clear(&slots_); }

  void add(const uint64_t* keys, size_t count) {
    while ((used_ + count) * 4 > slots_.size() * 3) grow();
    for (size_t i = 0; i < count; ++i) __builtin_prefetch(&slots_[first_slot(keys[i])], 1);
    for (size_t i = 0; i < count; ++i) {
      Slot& slot = slots_[slot_of(keys[i])];
      used_ += slot.count == 0;
      slot.key = keys[i];
      ++slot.count;
    }
  }

  PairCounts sorted() const {
    std::vector<Slot> found;
    found.reserve(used_);
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].count != 0) found.push_back(slots_[i]);
    }
    std::sort(found.begin(), found.end(),
              [](const Slot& a, const Slot& b) { return a.key < b.key; });
    PairCounts pairs;
    pairs.left.reserve(used_);
    pairs.right.reserve(used_);
    pairs.counts.reserve(used_);
    for (const Slot& slot : found) {
      pairs.left.push_back(left_of(slot.key));
      pairs.right.push_back(right_of(slot.key));
      pairs.counts.push_back(slot.count);
    }
    return pairs;
  }

 private:
  struct Slot {
    uint64_t key;
    int64_t count;  // 0: free
  };

  static void clear(LargeArray<Slot>* slots) {
    std::fill(slots->data(), slots->data() + slots->size(), Slot{0, 0});
  }

  size_t first_slot(uint64_t key) const { return mix_key(key) >> shift_; }

  // Where the pair is, or the free slot where it goes.
  size_t slot_of(uint64_t key) const {
    size_t i = first_slot(key);
    while (slots_[i].count != 0 && slots_[i].key != key) i = (i + 1) & (slots_.size() - 1);
    return i;
  }

  void grow() {
    LargeArray<Slot> old(slots_.size() * 2);
    clear(&old);
    old.swap(slots_);
    --shift_;
    for (size_t i = 0; i < old.size(); ++i) {
      if (old[i].count != 0) slots_[slot_of(old[i].key)] = old[i];
    }
  }

  LargeArray<Slot> slots_;  // a power of two
  int shift_ = 64 - 16;     // a hash's top bits are its first slot
  size_t used_ = 0;         // distinct pairs
};

}  // namespace

template <class Id>
PairCounts count_pairs(const Id* ids, int64_t id_count, const Int64Column& offsets) {
  if (offsets.length < 1 || offsets.values[0] < 0 ||
      offsets.values[offsets.length - 1] > id_count ||
      !std::is_sorted(offsets.values, offsets.values + offsets.length)) {
    throw InputError("offsets must ascend within the ids, one more than there are lists");
  }
  PairTable table;
  uint64_t keys[kChunk];
  size_t waiting = 0;
  for (int64_t list = 0; list + 1 < offsets.length; ++list) {
    for (int64_t i = offsets.values[list] + 1; i < offsets.values[list + 1]; ++i) {
      keys[waiting++] = pair_key(ids[i - 1], ids[i]);
      if (waiting == kChunk) {
        table.add(keys, waiting);
        waiting = 0;
      }
    }
  }
  table.add(keys, waiting);
  return table.sorted();
}

template PairCounts count_pairs(const uint16_t*, int64_t, const Int64Column&);
template PairCounts count_pairs(const uint32_t*, int64_t, const Int64Column&);

std::vector<OwnedColumn> to_columns(PairCounts pairs) {
  const auto length = static_cast<int64_t>(pairs.counts.size());
  std::vector<OwnedColumn> columns;
  columns.push_back({"I", length, {own_buffer(std::move(pairs.left))}, {}});
  columns.push_back({"I", length, {own_buffer(std::move(pairs.right))}, {}});
  columns.push_back({"l", length, {own_buffer(std::move(pairs.counts))}, {}});
  return columns;
}

}  // namespace beam_bpe
