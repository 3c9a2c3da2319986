// Scans for schemes that are patterns: automata made by bpe/pretokenizing/compiled_chain.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "scan/class_tables.h"
#include "scan/scan.h"

namespace beam_bpe {

// A deterministic automaton over atoms, which are classes of characters. Immutable.
class PatternScan {
 public:
  struct Tables {
    std::vector<uint32_t> starts;  // first code point of each range, ascending from 0
    std::vector<uint8_t> atoms;    // of each range; that of bytes that are no valid UTF-8 is 0
    // By state and atom, with one more column for the end of the text: the next state, and
    // whether a match ends before the atom; see bpe/pretokenizing/automaton.py.
    std::vector<std::vector<uint32_t>> next_states;
    std::vector<std::vector<bool>> ends;
    // By atom and atom: whether a pre-token ends between two, whatever stands elsewhere.
    std::vector<std::vector<bool>> certain_cuts;
  };

  // Throws SettingsError for tables that do not fit each other.
  explicit PatternScan(const Tables& tables);

  // As a ScanFunction. Matches are the pre-tokens, and so is what is between two of them. Throws
  // SettingsError where the pattern looks at much text again and again.
  ScanResult scan(const ScanText& document, size_t position, uint32_t* ends,
                  size_t capacity) const;

 private:
  static constexpr size_t kLanes = 4;

  class Looks;
  struct Lane;
  struct Search;

  void check(const Tables& tables) const;
  void fill_entries(const Tables& tables);
  size_t match_end(Search& search, size_t position) const;
  size_t next_boundary(Search& search, size_t position) const;
  bool step(Lane& lane) const;
  void go_back(Lane& lane) const;
  void finish(Lane& lane) const;
  void scan_together(Lane (&lanes)[kLanes]) const;
  size_t find_cut(const ScanText& document, size_t position) const;
  ScanResult scan_lanes(const ScanText& document, size_t position, uint32_t* ends,
                        size_t capacity) const;
  ScanResult scan_slowly(const ScanText& document, size_t position, uint32_t* ends,
                         size_t capacity) const;

  std::unique_ptr<const ClassTables> classes_;
  uint32_t width_;                  // entries of a row: an atom each, and the end of the text
  std::vector<uint32_t> searches_;  // by state and atom, for one match
  std::vector<uint32_t> entries_;   // by state and atom, for one match after another
  std::vector<uint8_t> cuts_;       // by atom and atom
};

// The scan of a scheme.
class Scan {
 public:
  explicit Scan(ScanFunction function) : function_(function) {}
  explicit Scan(std::shared_ptr<const PatternScan> pattern) : pattern_(std::move(pattern)) {}

  ScanResult operator()(const ScanText& document, size_t position, uint32_t* ends,
                        size_t capacity) const {
    if (function_ != nullptr) return function_(document, position, ends, capacity);
    return pattern_->scan(document, position, ends, capacity);
  }

 private:
  ScanFunction function_ = nullptr;
  std::shared_ptr<const PatternScan> pattern_;
};

}  // namespace beam_bpe
