#include "train/symbol_sequence.h"

#include <limits>

#include "memory/errors.h"

namespace beam_bpe {

namespace {

constexpr uint64_t kMostUnits = std::numeric_limits<uint32_t>::max() - 64;

uint64_t check_units(uint64_t units) {
  if (units > kMostUnits) {
    throw InputError("the text to train on takes " + std::to_string(units) +
                     " units; one machine trains on at most " + std::to_string(kMostUnits) +
                     ": train on a sample, or in distributed rounds");
  }
  return units;
}

}  // namespace

template <class Unit>
SymbolSequence<Unit>::SymbolSequence(uint64_t units, const std::array<Symbol, 256>& symbol_of_byte)
    : units_(check_units(units)), symbol_of_byte_(symbol_of_byte) {
  units_[size_++] = kBoundary;
}

template <class Unit>
void SymbolSequence<Unit>::start_run(uint32_t position, int64_t weight) {
  if (runs_.empty() || runs_.back().weight != weight) runs_.push_back({weight, position});
}

template <class Unit>
void SymbolSequence<Unit>::add(std::string_view bytes, int64_t weight) {
  start_run(size_, weight);
  Unit* out = units_.data() + size_;
  for (const char c : bytes) {
    *out++ = static_cast<Unit>(symbol_of_byte_[static_cast<uint8_t>(c)]);
  }
  *out = kBoundary;
  size_ += static_cast<uint32_t>(bytes.size()) + 1;
}

template <class Unit>
void SymbolSequence<Unit>::finish() {
  index_runs();
}

template <class Unit>
void SymbolSequence<Unit>::index_runs() {
  run_of_block_.clear();
  if (runs_.empty()) runs_.push_back({1, 0});
  if (runs_.size() == 1) return;
  // Positions before the first sequence (the leading boundary) belong to no pair.
  runs_[0].start = 0;
  runs_.push_back({0, std::numeric_limits<uint32_t>::max()});
  run_of_block_.reserve((size_ >> kBlockBits) + 1);
  uint32_t run = 0;
  for (uint64_t position = 0; position <= size_; position += uint64_t{1} << kBlockBits) {
    while (runs_[run + 1].start <= position) ++run;
    run_of_block_.push_back(run);
  }
}

template <class Unit>
void SymbolSequence<Unit>::compact(const std::vector<uint32_t>& units_of_symbol) {
  std::vector<Run> old_runs;
  old_runs.swap(runs_);
  if (old_runs.size() == 1) old_runs.push_back({0, std::numeric_limits<uint32_t>::max()});
  size_t run = 0;
  Unit* units = units_.data();
  uint32_t write = 1;
  uint32_t read = 1;
  while (read < size_) {
    const uint32_t first = write;
    const uint32_t old_first = read;
    for (Symbol symbol = units[read]; symbol != kBoundary; symbol = units[read]) {
      units[write++] = static_cast<Unit>(symbol);
      read += units_of_symbol[symbol];
    }
    ++read;
    if (write - first < 2) {  // no pair is left in it, and none will be
      write = first;
      continue;
    }
    units[write++] = kBoundary;
    while (old_runs[run + 1].start <= old_first) ++run;
    start_run(first, old_runs[run].weight);
  }
  size_ = write;
  index_runs();
}

template class SymbolSequence<uint16_t>;
template class SymbolSequence<uint32_t>;

}  // namespace beam_bpe
