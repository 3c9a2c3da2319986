#include "rounds/segment_cutter.h"

#include <limits>
#include <string_view>

#include "memory/errors.h"
#include "rounds/run_coding.h"

namespace beam_bpe {

namespace {

constexpr size_t kChunk = 1024;           // neighbours that are looked up together
constexpr int64_t kSegmentOverhead = 1;   // bytes of a weight as it travels, mostly
constexpr size_t kShortest = 3;           // tokens of a segment: shorter ones follow from counts

// One attempt, with a size of its own.
template <class Id>
class SegmentCutter {
 public:
  SegmentCutter(const TokenSequences<Id>& sequences, const PairLookup& heavy, int64_t size,
                int64_t cap_bytes, OpenEnds open)
      : sequences_(sequences), heavy_(heavy), cap_bytes_(cap_bytes), open_(open),
        table_("a segment") {
    result_.size = size;
  }

  // False as soon as the result takes more than the cap.
  bool cut() {
    const int64_t last = sequences_.count - 1;
    result_.has_cut = !(open_.left && open_.right && last <= 0);
    for (int64_t i = 0; i <= last; ++i) {
      cut_sequence(sequences_.begin(i), sequences_.length(i), sequences_.weight(i),
                   {open_.left && i == 0, open_.right && i == last});
      if (bytes_ > cap_bytes_) return false;
    }
    return true;
  }

  CutSegments take() {
    result_.segments = table_.sorted();
    return std::move(result_);
  }

 private:
  void cut_sequence(const Id* ids, size_t length, int64_t weight, OpenEnds open) {
    size_t start = 0;
    uint32_t ranks[kChunk];
    uint32_t cuts[kChunk];
    for (size_t at = 0; at + 1 < length && bytes_ <= cap_bytes_;) {
      const size_t count = std::min(kChunk, length - 1 - at);
      heavy_.ranks_of(ids + at, count, ranks);
      size_t found = 0;
      for (size_t i = 0; i < count; ++i) {  // without a branch: half of them are cuts
        cuts[found] = static_cast<uint32_t>(i);
        found += ranks[i] >= static_cast<uint64_t>(result_.size);
      }
      for (size_t i = 0; i < found; ++i) {
        const size_t end = at + cuts[i] + 1;
        if (start == 0 && open.left) {
          set_end(ids, end, &result_.head, &result_.head_tokens);
          result_.has_cut = true;
        } else {
          add(ids + start, end - start, weight);
        }
        start = end;
      }
      at += count;
    }
    add_last(ids + start, length - start, weight, {open.left && start == 0, open.right});
  }

  // The part that ends with the sequence. `open.left`: it begins with the sequence, too.
  void add_last(const Id* ids, size_t length, int64_t weight, OpenEnds open) {
    if (open.left) {
      set_end(ids, length, &result_.head, &result_.head_tokens);
    } else if (open.right) {
      set_end(ids, length, &result_.tail, &result_.tail_tokens);
    } else {
      add(ids, length, weight);
    }
  }

  void set_end(const Id* ids, size_t length, std::vector<char>* code, int64_t* tokens) {
    append_runs(ids, length, static_cast<uint64_t>(cap_bytes_), code);
    *tokens = static_cast<int64_t>(length);
    bytes_ += static_cast<int64_t>(code->size());
  }

  void add(const Id* ids, size_t length, int64_t weight) {
    if (length < kShortest) return;
    code_.clear();
    if (!append_runs(ids, length, static_cast<uint64_t>(cap_bytes_), &code_)) {
      bytes_ += static_cast<int64_t>(code_.size());
      return;
    }
    const size_t known = table_.size();
    table_.add({code_.data(), code_.size()}, weight, 0);
    if (table_.size() == known) return;
    bytes_ += static_cast<int64_t>(code_.size()) + kSegmentOverhead;
  }

  const TokenSequences<Id>& sequences_;
  const PairLookup& heavy_;
  const int64_t cap_bytes_;
  const OpenEnds open_;
  WordTable table_;         // coded segments
  int64_t bytes_ = 0;       // that count against the cap
  std::vector<char> code_;  // of the segment at hand
  CutSegments result_;
};

void check_sizes(const std::vector<int64_t>& sizes, size_t pairs) {
  if (sizes.empty()) throw SettingsError("sizes is empty: offer at least one");
  auto previous = static_cast<int64_t>(pairs);
  for (const int64_t size : sizes) {
    if (size < 0 || size > previous) {
      throw SettingsError("sizes holds " + std::to_string(size) + " after " +
                          std::to_string(previous) +
                          ": sizes descend, from the number of heavy pairs at most");
    }
    previous = size;
  }
}

}  // namespace

template <class Id>
CutSegments cut_segments(const TokenSequences<Id>& sequences, const PairLookup& heavy,
                         const std::vector<int64_t>& sizes, int64_t cap_bytes, OpenEnds open) {
  check_sizes(sizes, heavy.size());
  if (cap_bytes < 0) throw SettingsError("cap_bytes is " + std::to_string(cap_bytes) + ", below 0");
  for (size_t i = 0;; ++i) {
    const bool last = i + 1 == sizes.size();
    const int64_t cap = last ? std::numeric_limits<int64_t>::max() : cap_bytes;
    SegmentCutter<Id> cutter(sequences, heavy, sizes[i], cap, open);
    if (cutter.cut()) return cutter.take();
  }
}

template CutSegments cut_segments(const TokenSequences<uint16_t>&, const PairLookup&,
                                  const std::vector<int64_t>&, int64_t, OpenEnds);
template CutSegments cut_segments(const TokenSequences<uint32_t>&, const PairLookup&,
                                  const std::vector<int64_t>&, int64_t, OpenEnds);

}  // namespace beam_bpe
