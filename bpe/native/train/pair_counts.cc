#include "train/pair_counts.h"

#include <algorithm>

#include "memory/checked_math.h"
#include "memory/large_array.h"

namespace beam_bpe {

namespace {

constexpr uint64_t kDenseCells = uint64_t{1} << 21;  // possible pairs that get a cell each
constexpr const char* kWhat = "a pair";

// Takes pairs in ascending order, and keeps those that are allowed.
class PairCollector {
 public:
  explicit PairCollector(const MergeLimits& limits) : limits_(limits) {}

  void add(size_t left, size_t right, int64_t count) {
    const auto l = static_cast<Symbol>(left);
    const auto r = static_cast<Symbol>(right);
    if (!limits_.allows_containing(l + kFirstToken, r + kFirstToken)) return;
    pairs_.left.push_back(l);
    pairs_.right.push_back(r);
    pairs_.counts.push_back(count);
  }

  PairCounts take() { return std::move(pairs_); }

 private:
  const MergeLimits& limits_;
  PairCounts pairs_;
};

// Calls visit(left, right, weight) for all neighbours.
template <class Id, class Visit>
void visit_pairs(const TokenSequences<Id>& sequences, Visit visit) {
  for (int64_t sequence = 0; sequence < sequences.count; ++sequence) {
    const Id* ids = sequences.begin(sequence);
    const int64_t weight = sequences.weight(sequence);
    for (size_t i = 1; i < sequences.length(sequence); ++i) visit(ids[i - 1], ids[i], weight);
  }
}

// With a cell for every possible pair.
template <class Id>
void count_in_cells(const TokenSequences<Id>& sequences, size_t side, PairCollector* pairs) {
  LargeArray<int64_t> cells(side * side);
  std::fill(cells.data(), cells.data() + cells.size(), 0);
  visit_pairs(sequences, [&](Id left, Id right, int64_t weight) {
    int64_t& cell = cells[left * side + right];
    cell = checked_add(cell, weight, kWhat);
  });
  for (size_t left = 0; left < side; ++left) {
    for (size_t right = 0; right < side; ++right) {
      const int64_t count = cells[left * side + right];
      if (count != 0) pairs->add(left, right, count);
    }
  }
}

// The right side of an adjacency: an id, with its weight where there are weights.
template <class Id>
struct WeightedRight {
  Id right;
  int64_t weight;
};
template <class Id>
Id right_id(Id right) {
  return right;
}
template <class Id>
Id right_id(const WeightedRight<Id>& right) {
  return right.right;
}
template <class Id>
int64_t weight_of(Id) {
  return 1;
}
template <class Id>
int64_t weight_of(const WeightedRight<Id>& right) {
  return right.weight;
}

// Adds up the rights of one left id after another.
class RightCounter {
 public:
  explicit RightCounter(size_t side) : cells_(side) {}

  template <class Right>
  void count(size_t left, const Right* begin, const Right* end, PairCollector* pairs) {
    for (const Right* each = begin; each != end; ++each) {
      int64_t& cell = cells_[right_id(*each)];
      if (cell == 0) met_.push_back(right_id(*each));
      cell = checked_add(cell, weight_of(*each), kWhat);
    }
    if (met_.size() * 8 < cells_.size()) {
      std::sort(met_.begin(), met_.end());
      for (const uint32_t right : met_) add(left, right, pairs);
    } else {
      for (size_t right = 0; right < cells_.size(); ++right) {
        if (cells_[right] != 0) add(left, right, pairs);
      }
    }
    met_.clear();
  }

 private:
  void add(size_t left, size_t right, PairCollector* pairs) {
    pairs->add(left, right, cells_[right]);
    cells_[right] = 0;
  }

  std::vector<int64_t> cells_;  // by right id
  std::vector<uint32_t> met_;   // right ids whose cells are in use
};

// By sorting all places by their left id first: what is counted together then fits the cache,
// which a table of all pairs would not.
template <class Right, class Id, class MakeRight>
void count_by_left(const TokenSequences<Id>& sequences, size_t side, MakeRight make_right,
                   PairCollector* pairs) {
  std::vector<size_t> ends(side + 1);  // places of each left id; then where they start …
  size_t total = 0;
  visit_pairs(sequences, [&](Id left, Id, int64_t) { ++ends[left]; });
  for (size_t& end : ends) {
    const size_t count = end;
    end = total;
    total += count;
  }
  LargeArray<Right> rights(total);
  visit_pairs(sequences, [&](Id left, Id right, int64_t weight) {
    rights[ends[left]++] = make_right(right, weight);  // … and where they end
  });
  RightCounter counter(side);
  const Right* begin = rights.data();
  for (size_t left = 0; left < side; ++left) {
    const Right* const end = rights.data() + ends[left];
    if (begin != end) counter.count(left, begin, end, pairs);
    begin = end;
  }
}

}  // namespace

template <class Id>
PairCounts count_pairs(const TokenSequences<Id>& sequences, size_t token_count,
                       const MergeLimits& limits) {
  PairCollector pairs(limits);
  // Cells are worth their clearing only where there is enough to count.
  if (token_count * token_count <= std::min<uint64_t>(kDenseCells, 4 * sequences.total())) {
    count_in_cells(sequences, token_count, &pairs);
  } else if (sequences.weights == nullptr) {
    count_by_left<Id>(sequences, token_count, [](Id right, int64_t) { return right; }, &pairs);
  } else {
    const auto make_right = [](Id right, int64_t weight) {
      return WeightedRight<Id>{right, weight};
    };
    count_by_left<WeightedRight<Id>>(sequences, token_count, make_right, &pairs);
  }
  return pairs.take();
}

template PairCounts count_pairs(const TokenSequences<uint16_t>&, size_t, const MergeLimits&);
template PairCounts count_pairs(const TokenSequences<uint32_t>&, size_t, const MergeLimits&);

std::vector<OwnedColumn> to_columns(PairCounts pairs) {
  const auto length = static_cast<int64_t>(pairs.counts.size());
  std::vector<OwnedColumn> columns;
  columns.push_back({"I", length, {own_buffer(std::move(pairs.left))}, {}});
  columns.push_back({"I", length, {own_buffer(std::move(pairs.right))}, {}});
  columns.push_back({"l", length, {own_buffer(std::move(pairs.counts))}, {}});
  return columns;
}

}  // namespace beam_bpe
