#include "train/pair_trainer.h"

#include <chrono>
#include <limits>

#include "memory/checked_math.h"
#include "memory/errors.h"

namespace beam_bpe {

namespace {

constexpr uint32_t kAhead = 16;                 // elements between a prefetch and its use
constexpr size_t kChunk = 256;                  // seams that are looked at together
constexpr double kTrackedShare = 0.5;           // of an unweighted text's seams, at a stage's start
constexpr int64_t kFloorRatio = 64;             // of the best count to the floor, at most

}  // namespace

template <class Unit>
PairTrainer<Unit>::PairTrainer(SymbolSequence<Unit> text, TokenStrings tokens,
                               const TrainingRules& rules)
    : text_(std::move(text)), rules_(rules),
      learned_{{}, {}, {}, std::move(tokens), StopReason::kVocabSize},
      limits_(rules.limits, learned_.tokens), queue_(rules.tie_order, learned_.tokens),
      units_of_(kFirstToken + learned_.tokens.size(), 1), lefts_(units_of_.size()),
      rights_(units_of_.size()) {
  if (rules.min_frequency < 1) throw SettingsError("min_frequency must be at least 1");
  if (rules.max_merges < 0) throw SettingsError("max_merges must be at least 0");
}

template <class Unit>
LearnedMerges PairTrainer<Unit>::train(const TrainingProgress& progress, const StopBefore* stop) {
  using Clock = std::chrono::steady_clock;
  auto next_report = Clock::now();
  const auto made = [this] { return static_cast<int64_t>(learned_.left.size()); };
  bool more = (stop == nullptr || heed_stop(*stop)) && start_stage(false);
  while (more && made() < rules_.max_merges) {
    if (progress && Clock::now() >= next_report) {
      progress(made(), rules_.max_merges);
      next_report = Clock::now() + std::chrono::milliseconds(100);
    }
    uint32_t record;
    if (take_best(&record)) {
      if (stop != nullptr && !is_better(pairs_[record], *stop)) {
        learned_.stop_reason = StopReason::kStopBefore;
        return std::move(learned_);
      }
      merge(record);
      if (arena_is_full()) more = start_stage(false);
    } else {
      more = start_stage(true);
    }
  }
  if (made() < rules_.max_merges) learned_.stop_reason = why_no_more();
  if (progress) progress(made(), rules_.max_merges);
  return std::move(learned_);
}

// Spares the training pairs that are too rare to be better; false if none can be better.
template <class Unit>
bool PairTrainer<Unit>::heed_stop(const StopBefore& stop) {
  const bool must_be_above = rules_.tie_order == TieOrder::kBytes;
  if (must_be_above && stop.count == std::numeric_limits<int64_t>::max()) return false;
  rules_.min_frequency = std::max(rules_.min_frequency, stop.count + (must_be_above ? 1 : 0));
  return true;
}

template <class Unit>
bool PairTrainer<Unit>::is_better(const PairRecord& pair, const StopBefore& stop) const {
  if (pair.count != stop.count) return pair.count > stop.count;
  if (rules_.tie_order == TieOrder::kBytes) return false;
  const uint64_t bound = pair_key(stop.left, stop.right);
  return pair_key(left_of(pair.key) - kFirstToken, right_of(pair.key) - kFirstToken) < bound;
}

// Calls `visit(seams, cells, count)` for all places where two symbols meet, some at a time, with
// the cells of their pairs already on their way into the cache.
template <class Unit>
template <class Visit>
void PairTrainer<Unit>::visit_seams(const PairSketch& sketch, Visit visit) const {
  const Unit* units = text_.data();
  const uint32_t size = text_.size();
  uint32_t seams[kChunk];
  size_t cells[kChunk];
  for (uint32_t seam = 1; seam < size;) {
    size_t count = 0;
    for (; count < kChunk && seam < size; ++seam) {
      const Symbol left = units[seam - 1];
      const Symbol right = units[seam];
      seams[count] = seam;
      cells[count] = sketch.cell_of(left, right);
      sketch.prefetch(cells[count]);
      count += left != kBoundary && right != kBoundary;
    }
    visit(seams, cells, count);
  }
}

// Counts and lists the pairs of the current text; false if none may be merged any more.
// `floor_reached`: no pair occurs `floor_` times any more.
template <class Unit>
bool PairTrainer<Unit>::start_stage(bool floor_reached) {
  if (floor_reached && floor_ <= rules_.min_frequency) return false;
  queue_.clear();
  pairs_.clear();
  seam_lists_.clear();
  compact();
  PairSketch sketch(text_.size(), static_cast<Symbol>(units_of_.size()));
  visit_seams(sketch, [&](const uint32_t* seams, const size_t* cells, size_t count) {
    for (size_t i = 0; i < count; ++i) sketch.add(cells[i], text_.weight_at(seams[i]));
  });
  choose_floor(sketch, floor_reached);
  while (true) {
    count_and_list(sketch);
    if (!queue_.empty()) return true;
    if (floor_ <= rules_.min_frequency) return false;
    floor_ = std::max(rules_.min_frequency, floor_ / 4);
    pairs_.clear();
    seam_lists_.clear();
  }
}

template <class Unit>
void PairTrainer<Unit>::compact() {
  if (learned_.left.empty()) return;
  text_.compact(units_of_);
  std::fill(units_of_.begin(), units_of_.end(), 1);
}

template <class Unit>
void PairTrainer<Unit>::choose_floor(const PairSketch& sketch, bool floor_reached) {
  int64_t floor = sketch.largest() / kFloorRatio;
  if (text_.unweighted()) floor = std::max(floor, sketch.count_covering(kTrackedShare));
  if (floor_reached) floor = std::min(floor, floor_ / 2);
  floor_ = std::max(floor, rules_.min_frequency);
  most_seams_ = text_.size() + rules_.spare_seams;
}

// Counts exactly the pairs that may reach the floor; lists where those occur that do; queues them.
template <class Unit>
void PairTrainer<Unit>::count_and_list(const PairSketch& sketch) {
  // The records of the seams that are looked at, in their order; pages never used cost nothing.
  LargeArray<uint32_t> record_of_seam(text_.size());
  uint32_t* next_record = record_of_seam.data();
  visit_seams(sketch, [&](const uint32_t* seams, const size_t* cells, size_t count) {
    next_record = count_chunk(sketch, seams, cells, count, next_record);
  });
  for (uint32_t i = 0; i < pairs_.size(); ++i) {
    PairRecord& record = pairs_[i];
    const bool tracked = record.count >= floor_ &&
                         limits_.allows(left_of(record.key), right_of(record.key));
    record.seams = tracked ? seam_lists_.allocate(record.seam_count) : nullptr;
    record.seam_count = 0;
  }
  next_record = record_of_seam.data();
  visit_seams(sketch, [&](const uint32_t* seams, const size_t* cells, size_t count) {
    uint32_t reaching[kChunk];
    const size_t reached = select_reaching(sketch, seams, cells, count, reaching);
    for (size_t i = 0; i < reached; ++i) {
      PairRecord& record = pairs_[*next_record++];
      if (record.seams != nullptr) record.seams[record.seam_count++] = reaching[i];
    }
  });
  for (uint32_t i = 0; i < pairs_.size(); ++i) {
    if (pairs_[i].seams != nullptr) queue_.push({pairs_[i].count, order_of(pairs_[i]), i});
  }
}

// Adds the seams whose pairs may reach the floor to the counts of these pairs. Notes the records at
// `record_of_seam`, and returns where it stopped.
template <class Unit>
uint32_t* PairTrainer<Unit>::count_chunk(const PairSketch& sketch, const uint32_t* seams,
                                    const size_t* cells, size_t count,
                                    uint32_t* record_of_seam) {
  const Unit* units = text_.data();
  uint32_t reaching[kChunk];
  const size_t reached = select_reaching(sketch, seams, cells, count, reaching);
  uint64_t keys[kChunk];
  for (size_t i = 0; i < reached; ++i) {
    keys[i] = pair_key(units[reaching[i] - 1], units[reaching[i]]);
    pairs_.prefetch(keys[i]);
  }
  for (size_t i = 0; i < reached; ++i) {
    uint32_t found = pairs_.find(keys[i]);
    if (found == PairIndex::kNone) found = pairs_.insert(keys[i]);
    *record_of_seam++ = found;
    PairRecord& record = pairs_[found];
    record.count = checked_add(record.count, text_.weight_at(reaching[i]), "a pair");
    ++record.seam_count;
  }
  return record_of_seam;
}

// Writes the seams whose pairs may reach the floor to `reaching`; returns how many.
template <class Unit>
size_t PairTrainer<Unit>::select_reaching(const PairSketch& sketch, const uint32_t* seams,
                                          const size_t* cells, size_t count,
                                          uint32_t* reaching) const {
  size_t reached = 0;
  for (size_t i = 0; i < count; ++i) {  // without a branch: half of them do
    reaching[reached] = seams[i];
    reached += sketch.reaches(cells[i], floor_);
  }
  return reached;
}

template <class Unit>
bool PairTrainer<Unit>::arena_is_full() const {
  return seam_lists_.live() > most_seams_;
}

// What decides among equal counts; moves the record's head past places that are merged away.
template <class Unit>
uint64_t PairTrainer<Unit>::order_of(PairRecord& record) {
  if (rules_.tie_order != TieOrder::kFirst) return record.key;
  const Symbol left = left_of(record.key);
  const Symbol right = right_of(record.key);
  const Unit* units = text_.data();
  for (; record.head < record.seam_count; ++record.head) {
    const uint32_t seam = record.seams[record.head];
    // Tokens don't overlap, so places are in the order of their seams.
    if (units[seam - 1] == left && units[seam] == right) return seam;
  }
  return std::numeric_limits<uint64_t>::max();
}

// Takes the best pair that reaches the floor from the queue; false if there is none.
template <class Unit>
bool PairTrainer<Unit>::take_best(uint32_t* record) {
  while (!queue_.empty()) {
    const QueueEntry entry = queue_.top();
    queue_.pop();
    PairRecord& pair = pairs_[entry.record];
    if (pair.count < floor_) continue;
    const uint64_t order = order_of(pair);
    if (pair.count == entry.count && order == entry.order) {
      *record = entry.record;
      return true;
    }
    queue_.push({pair.count, order, entry.record});
  }
  return false;
}

template <class Unit>
void PairTrainer<Unit>::merge(uint32_t record) {
  const PairRecord pair = pairs_[record];
  const Symbol left = left_of(pair.key);
  const Symbol right = right_of(pair.key);
  const auto merged = static_cast<Symbol>(units_of_.size());
  learned_.left.push_back(left - kFirstToken);
  learned_.right.push_back(right - kFirstToken);
  learned_.counts.push_back(pair.count);
  learned_.tokens.append_joined(left - kFirstToken, right - kFirstToken);
  units_of_.push_back(units_of_[left] + units_of_[right]);
  lefts_.emplace_back();
  rights_.emplace_back();

  collect(pair.seams + pair.head, pair.seam_count - pair.head, left, right, merged);
  update_pairs(left, right, merged);
  pairs_[record].count = 0;
  pairs_[record].seams = nullptr;
  seam_lists_.release(pair.seams, pair.seam_count);
}

// Merges in the text, and gathers what stands beside.
template <class Unit>
void PairTrainer<Unit>::collect(const uint32_t* seams, uint32_t count, Symbol left, Symbol right,
                                Symbol merged) {
  Unit* units = text_.data();
  const uint32_t left_units = units_of_[left];
  const uint32_t right_units = units_of_[right];
  if (seams_left_.size() < count) {
    seams_left_.resize(count);
    seams_right_.resize(count);
  }
  places_ = 0;
  for (uint32_t i = 0; i < count; ++i) {
    if (i + kAhead < count) __builtin_prefetch(units + seams[i + kAhead], 1);
    const uint32_t seam = seams[i];
    if (units[seam - 1] != left || units[seam] != right) continue;
    const uint32_t first = seam - left_units;
    const uint32_t next = seam + right_units;
    const int64_t weight = text_.weight_at(seam);
    const Symbol before = units[first - 1];
    const Symbol after = units[next];
    units[seam - 1] = kDead;
    units[seam] = kDead;
    units[first] = static_cast<Unit>(merged);
    units[next - 1] = static_cast<Unit>(merged);
    // A boundary is counted like any neighbour and left out at the end: that saves a branch here.
    if (lefts_[before].seams++ == 0) met_left_.push_back(before);
    lefts_[before].weight += weight;
    if (rights_[after].seams++ == 0) met_right_.push_back(after);
    rights_[after].weight += weight;
    seams_left_[places_] = {before, first};
    seams_right_[places_++] = {after, next};
  }
}

template <class Unit>
void PairTrainer<Unit>::lower(Symbol left, Symbol right, int64_t weight) {
  const uint32_t found = pairs_.find(pair_key(left, right));
  if (found != PairIndex::kNone) pairs_[found].count -= weight;
}

// Starts to track a pair of the new token, if it reaches the floor.
template <class Unit>
void PairTrainer<Unit>::track(Symbol left, Symbol right, Neighbour* neighbour) {
  const int64_t weight = neighbour->weight;
  neighbour->next_seam = nullptr;
  if (weight < floor_ || !limits_.allows(left, right)) return;
  const uint32_t added = pairs_.insert(pair_key(left, right));
  PairRecord& record = pairs_[added];
  record.count = weight;
  record.seams = seam_lists_.allocate(neighbour->seams);
  record.seam_count = neighbour->seams;
  neighbour->next_seam = record.seams;
  new_records_.push_back(added);
}

template <class Unit>
void PairTrainer<Unit>::update_pairs(Symbol left, Symbol right, Symbol merged) {
  lefts_[kBoundary].next_seam = nullptr;
  rights_[kBoundary].next_seam = nullptr;
  // First the right side: where the pair follows itself at once, the pair (merged, left) that the
  // first occurrence brings is taken away again by the second.
  for (const Symbol after : met_right_) {
    if (after == kBoundary) continue;
    lower(right, after, rights_[after].weight);
    track(merged, after, &rights_[after]);
  }
  for (const Symbol before : met_left_) {
    if (before == kBoundary) continue;
    lower(before, left, lefts_[before].weight);
    track(before, merged, &lefts_[before]);
  }
  for (size_t i = 0; i < places_; ++i) {
    uint32_t*& after = rights_[seams_right_[i].neighbour].next_seam;
    if (after != nullptr) *after++ = seams_right_[i].seam;
    uint32_t*& before = lefts_[seams_left_[i].neighbour].next_seam;
    if (before != nullptr) *before++ = seams_left_[i].seam;
  }
  for (const Symbol symbol : met_right_) rights_[symbol] = {};
  for (const Symbol symbol : met_left_) lefts_[symbol] = {};
  met_right_.clear();
  met_left_.clear();
  for (const uint32_t added : new_records_) {
    PairRecord& record = pairs_[added];
    if (record.count >= floor_) queue_.push({record.count, order_of(record), added});
  }
  new_records_.clear();
}

// Tells a text without any pair from one whose pairs are too rare.
template <class Unit>
StopReason PairTrainer<Unit>::why_no_more() const {
  const Unit* units = text_.data();
  uint32_t seam = 1;
  while (seam < text_.size()) {
    const Symbol left = units[seam - 1];
    const Symbol right = units[seam];
    if (left != kBoundary && right != kBoundary && limits_.allows(left, right)) {
      return StopReason::kMinFrequency;
    }
    seam += right == kBoundary ? 1 : units_of_[right];
  }
  return StopReason::kExhausted;
}

template class PairTrainer<uint16_t>;
template class PairTrainer<uint32_t>;

}  // namespace beam_bpe
