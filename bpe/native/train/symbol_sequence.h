// The text under training: one array of units, in which merges happen in place.
//
// A token of n units holds its symbol in its first and in its last unit; units between are dead.
// So both neighbours of a token are one array access away from it, without links. Sequences (words
// or documents) are separated by a boundary unit; the array starts and ends with one.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>
#include <vector>

#include "memory/large_array.h"

namespace beam_bpe {

using Symbol = uint32_t;

constexpr Symbol kBoundary = 0;     // separates sequences
constexpr Symbol kDead = 1;         // a unit inside a token
constexpr Symbol kFirstToken = 2;   // the symbol of token id 0; token id i is symbol i + 2

// `Unit` is uint16_t where the vocabulary allows, else uint32_t.
template <class Unit>
class SymbolSequence {
 public:
  // Room for exactly `units` units: every byte or token of every sequence, one boundary for each,
  // and one. `symbol_of_byte` maps a byte of the input to its symbol.
  explicit SymbolSequence(uint64_t units, const std::array<Symbol, 256>& symbol_of_byte = {});

  // Appends a sequence that occurs `weight` times (at least once). Call in the order of the text.
  void add(std::string_view bytes, int64_t weight);

  // The same for a sequence that is there as runs of tokens, after a call of start_sequence.
  void start_sequence(int64_t weight) { start_run(size_, weight); }
  void add_run(uint32_t token, uint64_t length) {
    std::fill_n(units_.data() + size_, length, static_cast<Unit>(kFirstToken + token));
    size_ += static_cast<uint32_t>(length);
  }
  void end_sequence() { units_[size_++] = kBoundary; }

  // Ends adding; weights can be asked for from now on.
  void finish();

  // Closes the gaps that merges left, so that every token is one unit again, and leaves out
  // sequences of a single token. `units_of_symbol`: how many units a token of each symbol takes.
  void compact(const std::vector<uint32_t>& units_of_symbol);

  Unit* data() { return units_.data(); }
  const Unit* data() const { return units_.data(); }
  uint32_t size() const { return size_; }

  // True if every sequence counts once.
  bool unweighted() const { return runs_.size() == 1 && runs_[0].weight == 1; }

  // How often the sequence that holds the unit at `position` occurs.
  int64_t weight_at(uint32_t position) const {
    if (runs_.size() == 1) return runs_[0].weight;
    uint32_t run = run_of_block_[position >> kBlockBits];
    while (runs_[run + 1].start <= position) ++run;
    return runs_[run].weight;
  }

 private:
  // Neighbouring sequences of equal weight.
  struct Run {
    int64_t weight;  // occurrences of each sequence
    uint32_t start;  // position of the first unit
  };
  static constexpr int kBlockBits = 5;

  void index_runs();
  void start_run(uint32_t position, int64_t weight);

  LargeArray<Unit> units_;              // the text
  uint32_t size_ = 0;                   // units in use
  std::array<Symbol, 256> symbol_of_byte_;
  std::vector<Run> runs_;               // ascending; ends with a sentinel unless there is one run
  std::vector<uint32_t> run_of_block_;  // the run of each block's first unit
};

extern template class SymbolSequence<uint16_t>;
extern template class SymbolSequence<uint32_t>;

}  // namespace beam_bpe
