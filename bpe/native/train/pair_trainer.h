// Learns merges: the exact greedy algorithm, incrementally and in stages.
//
// In each stage only pairs that occur at least `floor` times are tracked. A pair's occurrences all
// come into being at one merge (or are there at the start of the stage) and only vanish afterwards,
// so a pair that is below the floor stays below it: the best tracked pair is the best of all until
// none reaches the floor. Then the text is compacted, pairs are counted anew, and the floor falls.
//
// Memory: 2 bytes per unit of text (4 for vocabularies above 65,534 ids), where a text of n bytes in
// m sequences takes n + m + 1 units; 4 bytes per tracked place, of which there are at most half as
// many as units when a stage starts and never more than units and `spare_seams`; about 100 bytes
// per tracked pair. While a stage starts also 4 bytes for every other place, and the sketch (1 to 2
// bytes per unit, at most 128 MiB).
#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "train/merge_limits.h"
#include "train/pair_index.h"
#include "train/pair_queue.h"
#include "train/pair_sketch.h"
#include "train/symbol_sequence.h"
#include "train/tie_order.h"
#include "train/token_strings.h"

namespace beam_bpe {

struct TrainingRules {
  int64_t max_merges = 0;                 // stop after so many
  TieOrder tie_order = TieOrder::kHuggingFace;
  int64_t min_frequency = 2;              // stop before a pair that occurs less often; at least 1
  TokenLimits limits;                     // tokens that no merge may make
  size_t spare_seams = size_t{1} << 22;   // tracked places beyond the text's units that end a stage
};

// A pair of token ids that picks may not reach: training ends before the first that is not better,
// by count or else by the order of ids; in the order by bytes the count alone makes it better.
struct StopBefore {
  int64_t count;
  uint32_t left;
  uint32_t right;
};

enum class StopReason { kVocabSize, kMinFrequency, kExhausted, kStopBefore };

struct LearnedMerges {
  std::vector<uint32_t> left;    // token id of the left part of each merge
  std::vector<uint32_t> right;   // token id of its right part; the result is the next token
  std::vector<int64_t> counts;   // occurrences when it was merged
  TokenStrings tokens;           // bytes of all tokens
  StopReason stop_reason;        // why there are no more
};

// Called from time to time with (merges made, most merges to make); may throw to end the training.
using TrainingProgress = std::function<void(int64_t, int64_t)>;

template <class Unit>
class PairTrainer {
 public:
  // `text` must be finished. `tokens` spells its symbols; the first merge makes the next one.
  PairTrainer(SymbolSequence<Unit> text, TokenStrings tokens, const TrainingRules& rules);

  // Learns all merges, or those before `stop` if that is not null. Throws CountTableError if a
  // pair occurs more than 2^63 - 1 times.
  LearnedMerges train(const TrainingProgress& progress, const StopBefore* stop = nullptr);

 private:
  // What one merge does to the pairs with one neighbouring symbol.
  struct Neighbour {
    union {
      int64_t weight;      // while collecting: occurrences beside the merged pair
      uint32_t* next_seam;  // while listing: where the next seam goes; null if not tracked
    };
    uint32_t seams;  // places where they meet; 0: the symbol was not met
  };
  struct SeamBeside {
    Symbol neighbour;
    uint32_t seam;
  };

  bool heed_stop(const StopBefore& stop);
  bool is_better(const PairRecord& pair, const StopBefore& stop) const;
  bool start_stage(bool floor_reached);
  void compact();
  void choose_floor(const PairSketch& sketch, bool floor_reached);
  template <class Visit>
  void visit_seams(const PairSketch& sketch, Visit visit) const;
  void count_and_list(const PairSketch& sketch);
  uint32_t* count_chunk(const PairSketch& sketch, const uint32_t* seams, const size_t* cells,
                        size_t count, uint32_t* record_of_seam);
  size_t select_reaching(const PairSketch& sketch, const uint32_t* seams, const size_t* cells,
                         size_t count, uint32_t* reaching) const;
  bool take_best(uint32_t* record);
  bool arena_is_full() const;
  uint64_t order_of(PairRecord& record);
  void merge(uint32_t record);
  void collect(const uint32_t* seams, uint32_t count, Symbol left, Symbol right, Symbol merged);
  void lower(Symbol left, Symbol right, int64_t weight);
  void track(Symbol left, Symbol right, Neighbour* neighbour);
  void update_pairs(Symbol left, Symbol right, Symbol merged);
  StopReason why_no_more() const;

  SymbolSequence<Unit> text_;
  TrainingRules rules_;
  LearnedMerges learned_;
  MergeLimits limits_;
  PairIndex pairs_;
  SeamArena seam_lists_;
  PairQueue queue_;
  std::vector<uint32_t> units_of_;       // units of a token, by symbol
  int64_t floor_ = 0;                    // smallest count that is tracked in this stage
  size_t most_seams_ = 0;                // a stage ends when more seams are listed
  std::vector<Neighbour> lefts_;         // by symbol: what stands left of the merged pair
  std::vector<Neighbour> rights_;        // by symbol: what stands right of it
  std::vector<Symbol> met_left_;         // symbols met, in order of first meeting
  std::vector<Symbol> met_right_;
  std::vector<SeamBeside> seams_left_;   // between a left neighbour and the new token
  std::vector<SeamBeside> seams_right_;  // between the new token and a right neighbour
  size_t places_ = 0;                    // elements of both in use
  std::vector<uint32_t> new_records_;    // pairs that the merge brought
};

extern template class PairTrainer<uint16_t>;
extern template class PairTrainer<uint32_t>;

}  // namespace beam_bpe
