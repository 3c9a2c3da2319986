#include "rounds/linear_merger.h"

#include <algorithm>
#include <functional>
#include <string>

#include "memory/errors.h"

namespace beam_bpe {

namespace {

constexpr uint64_t kMostUnits = UINT32_MAX - 2;  // with an edge on both sides, 32 bits number them
constexpr size_t kKeptSeams = 64;  // longer lists give their memory back at once

}  // namespace

LinearMerger::LinearMerger(const std::vector<uint32_t>& left, const std::vector<uint32_t>& right,
                           uint32_t first_id, const PairLookup& ranks)
    : left_(left), right_(right), first_id_(first_id), ranks_(ranks), seams_(left.size()) {
  for (size_t i = 0; i < left.size(); ++i) {
    // A token of more units than a sequence can have is never made; its size does not matter.
    const uint64_t units = uint64_t{units_of(left[i])} + units_of(right[i]);
    units_of_made_.push_back(static_cast<uint32_t>(std::min<uint64_t>(units, UINT32_MAX)));
  }
}

template <class Id>
void LinearMerger::start(const Id* ids, size_t length) {
  if (length > kMostUnits) {
    throw InputError("a sequence of " + std::to_string(length) +
                     " tokens is to be merged, at most " + std::to_string(kMostUnits) +
                     " are supported: make smaller shards");
  }
  units_.clear();
  units_.reserve(length + 2);
  units_.push_back(kEdge);
  units_.insert(units_.end(), ids, ids + length);
  units_.push_back(kEdge);
  for (uint32_t seam = 2; seam <= length; ++seam) list(units_[seam - 1], units_[seam], seam);
}

void LinearMerger::list(uint32_t left, uint32_t right, uint32_t seam) {
  const uint32_t rank = ranks_.rank(left, right);
  if (rank == PairLookup::kNone) return;
  if (seams_[rank].empty()) {
    waiting_.push_back(rank);
    std::push_heap(waiting_.begin(), waiting_.end(), std::greater<>());
  }
  seams_[rank].push_back(seam);
}

void LinearMerger::merge_all() {
  while (!waiting_.empty()) {
    std::pop_heap(waiting_.begin(), waiting_.end(), std::greater<>());
    const uint32_t rank = waiting_.back();
    waiting_.pop_back();
    merge(rank);
    if (seams_[rank].capacity() > kKeptSeams) seams_[rank] = {};
    seams_[rank].clear();
  }
}

void LinearMerger::merge(uint32_t rank) {
  const uint32_t left = left_[rank];
  const uint32_t right = right_[rank];
  const uint32_t made = first_id_ + rank;
  for (const uint32_t seam : seams_[rank]) {
    if (units_[seam - 1] != left || units_[seam] != right) continue;  // merged away
    const uint32_t first = seam - units_of(left);
    const uint32_t next = seam + units_of(right);
    units_[seam - 1] = kDead;
    units_[seam] = kDead;
    units_[first] = made;
    units_[next - 1] = made;
    // New pairs hold the new token, so they belong to later merges.
    if (units_[first - 1] != kEdge) list(units_[first - 1], made, first);
    if (units_[next] != kEdge) list(made, units_[next], next);
  }
}

template void LinearMerger::start(const uint16_t*, size_t);
template void LinearMerger::start(const uint32_t*, size_t);

}  // namespace beam_bpe
