#include "pair_counts.h"

#include <algorithm>

#include "checked_math.h"
#include "large_array.h"
#include "pair_index.h"

namespace beam_bpe {

namespace {

constexpr size_t kChunk = 256;                       // pairs whose slots are fetched together
constexpr uint64_t kDenseCells = uint64_t{1} << 21;  // possible pairs that get a cell each
constexpr const char* kWhat = "a pair";

struct CountedPair {
  uint64_t key;
  int64_t count;  // 0 in a table: a free slot
};

// Sorts by key: 11 bits at a time, the lowest first.
void sort_by_key(std::vector<CountedPair>* pairs) {
  constexpr int kDigitBits = 11;
  constexpr uint64_t kDigitMask = (1 << kDigitBits) - 1;
  uint64_t differing = 0;
  for (const CountedPair& pair : *pairs) differing |= pair.key ^ pairs->front().key;
  std::vector<CountedPair> sorted(pairs->size());
  for (int shift = 0; shift < 64; shift += kDigitBits) {
    if ((differing >> shift & kDigitMask) == 0) continue;
    std::vector<size_t> starts(kDigitMask + 2);  // where the next pair of each digit goes
    for (const CountedPair& pair : *pairs) ++starts[(pair.key >> shift & kDigitMask) + 1];
    for (size_t digit = 1; digit < starts.size(); ++digit) starts[digit] += starts[digit - 1];
    for (const CountedPair& pair : *pairs) {
      sorted[starts[pair.key >> shift & kDigitMask]++] = pair;
    }
    pairs->swap(sorted);
  }
}

// Pair to count, by open addressing.
class PairTable {
 public:
  PairTable() : slots_(size_t{1} << 16) { clear(&slots_); }

  // Makes room for so many more pairs, and sends for their slots.
  void prepare(const uint64_t* keys, size_t count) {
    while ((used_ + count) * 4 > slots_.size() * 3) grow();
    for (size_t i = 0; i < count; ++i) __builtin_prefetch(&slots_[first_slot(keys[i])], 1);
  }

  // Adds occurrences of a pair that there is room for.
  void add(uint64_t key, int64_t weight) {
    CountedPair& slot = slots_[slot_of(key)];
    used_ += slot.count == 0;
    slot.key = key;
    slot.count = checked_add(slot.count, weight, kWhat);
  }

  // All pairs in any order; the table is gone afterwards.
  std::vector<CountedPair> drain() {
    std::vector<CountedPair> found;
    found.reserve(used_);
    for (size_t i = 0; i < slots_.size(); ++i) {
      if (slots_[i].count != 0) found.push_back(slots_[i]);
    }
    slots_ = {};
    return found;
  }

 private:
  static void clear(LargeArray<CountedPair>* slots) {
    std::fill(slots->data(), slots->data() + slots->size(), CountedPair{0, 0});
  }

  size_t first_slot(uint64_t key) const { return mix_key(key) >> shift_; }

  // Where the pair is, or the free slot where it goes.
  size_t slot_of(uint64_t key) const {
    size_t i = first_slot(key);
    while (slots_[i].count != 0 && slots_[i].key != key) i = (i + 1) & (slots_.size() - 1);
    return i;
  }

  void grow() {
    LargeArray<CountedPair> old(slots_.size() * 2);
    clear(&old);
    old.swap(slots_);
    --shift_;
    for (size_t i = 0; i < old.size(); ++i) {
      if (old[i].count != 0) slots_[slot_of(old[i].key)] = old[i];
    }
  }

  LargeArray<CountedPair> slots_;  // a power of two
  int shift_ = 64 - 16;            // a hash's top bits are its first slot
  size_t used_ = 0;                // distinct pairs
};

template <class Id>
std::vector<CountedPair> count_in_table(const TokenSequences<Id>& sequences) {
  PairTable table;
  uint64_t keys[kChunk];
  int64_t weights[kChunk];
  size_t waiting = 0;
  const auto flush = [&] {
    table.prepare(keys, waiting);
    for (size_t i = 0; i < waiting; ++i) table.add(keys[i], weights[i]);
    waiting = 0;
  };
  for (int64_t sequence = 0; sequence < sequences.count; ++sequence) {
    const Id* ids = sequences.begin(sequence);
    const int64_t weight = sequences.weight(sequence);
    for (size_t i = 1; i < sequences.length(sequence); ++i) {
      keys[waiting] = pair_key(ids[i - 1], ids[i]);
      weights[waiting] = weight;
      if (++waiting == kChunk) flush();
    }
  }
  flush();
  std::vector<CountedPair> found = table.drain();
  sort_by_key(&found);
  return found;
}

// The same with a cell for every pair of ids below `side`.
template <class Id>
std::vector<CountedPair> count_in_cells(const TokenSequences<Id>& sequences, size_t side) {
  LargeArray<int64_t> cells(side * side);
  std::fill(cells.data(), cells.data() + cells.size(), 0);
  for (int64_t sequence = 0; sequence < sequences.count; ++sequence) {
    const Id* ids = sequences.begin(sequence);
    const int64_t weight = sequences.weight(sequence);
    for (size_t i = 1; i < sequences.length(sequence); ++i) {
      int64_t& cell = cells[ids[i - 1] * side + ids[i]];
      cell = checked_add(cell, weight, kWhat);
    }
  }
  std::vector<CountedPair> found;
  for (size_t left = 0; left < side; ++left) {
    for (size_t right = 0; right < side; ++right) {
      const int64_t count = cells[left * side + right];
      if (count == 0) continue;
      found.push_back({pair_key(static_cast<Symbol>(left), static_cast<Symbol>(right)), count});
    }
  }
  return found;
}

}  // namespace

template <class Id>
PairCounts count_pairs(const TokenSequences<Id>& sequences, const MergeLimits* limits) {
  const uint64_t side = sequences.id_limit();
  // Cells are worth their clearing only where there is enough to count.
  const bool dense = side < (uint64_t{1} << 16) &&
                     side * side <= std::min<uint64_t>(kDenseCells, 4 * sequences.total());
  const std::vector<CountedPair> found =
      dense ? count_in_cells(sequences, side) : count_in_table(sequences);
  PairCounts pairs;
  pairs.left.reserve(found.size());
  pairs.right.reserve(found.size());
  pairs.counts.reserve(found.size());
  for (const CountedPair& pair : found) {
    const Symbol left = left_of(pair.key);
    const Symbol right = right_of(pair.key);
    if (limits != nullptr && !limits->allows_containing(left + kFirstToken, right + kFirstToken)) {
      continue;
    }
    pairs.left.push_back(left);
    pairs.right.push_back(right);
    pairs.counts.push_back(pair.count);
  }
  return pairs;
}

template PairCounts count_pairs(const TokenSequences<uint16_t>&, const MergeLimits*);
template PairCounts count_pairs(const TokenSequences<uint32_t>&, const MergeLimits*);

}  // namespace beam_bpe
