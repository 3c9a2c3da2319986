// Candidates for the next merge, best first. Entries may be out of date: counts only fall and first
// occurrences only move on, so an entry that turns out true when it is taken is the best of all.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string_view>
#include <vector>

#include "train/pair_index.h"
#include "train/tie_order.h"
#include "train/token_strings.h"

namespace beam_bpe {

struct QueueEntry {
  int64_t count;    // occurrences when it was queued
  uint64_t order;   // smaller wins among equal counts: the pair's key, or its first position
  uint32_t record;  // the pair's record
};

class PairQueue {
 public:
  // `tokens` must outlive the queue; it spells the symbols for the order by bytes.
  PairQueue(TieOrder tie_order, const TokenStrings& tokens)
      : by_bytes_(tie_order == TieOrder::kBytes), by_greatest_(tie_order == TieOrder::kGreatest),
        tokens_(tokens) {}

  bool empty() const { return heap_.empty(); }
  void clear() { heap_.clear(); }
  const QueueEntry& top() const { return heap_.front(); }

  void push(const QueueEntry& entry) {
    heap_.push_back(entry);
    std::push_heap(heap_.begin(), heap_.end(), [this](auto& a, auto& b) { return before(b, a); });
  }

  void pop() {
    std::pop_heap(heap_.begin(), heap_.end(), [this](auto& a, auto& b) { return before(b, a); });
    heap_.pop_back();
  }

 private:
  // True if `a` is merged before `b`.
  bool before(const QueueEntry& a, const QueueEntry& b) const {
    if (a.count != b.count) return a.count > b.count;
    if (by_greatest_) return bytes_before(b.order, a.order);
    return by_bytes_ ? bytes_before(a.order, b.order) : a.order < b.order;
  }

  bool bytes_before(uint64_t a, uint64_t b) const {
    if (left_of(a) != left_of(b)) return spelling(left_of(a)) < spelling(left_of(b));
    if (right_of(a) != right_of(b)) return spelling(right_of(a)) < spelling(right_of(b));
    return false;
  }

  std::string_view spelling(Symbol symbol) const { return tokens_[symbol - kFirstToken]; }

  std::vector<QueueEntry> heap_;
  bool by_bytes_;
  bool by_greatest_;
  const TokenStrings& tokens_;
};

}  // namespace beam_bpe
