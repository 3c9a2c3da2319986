// Cuts a shard's sequences wherever two neighbours are no heavy pair, and sums up what is left.
#pragma once

#include <cstdint>
#include <vector>

#include "train/pair_lookup.h"
#include "rounds/token_sequences.h"
#include "count/word_table.h"

namespace beam_bpe {

// Which ends of the shard go on in its neighbours.
struct OpenEnds {
  bool left = false;   // the first sequence began before
  bool right = false;  // the last sequence goes on
};

// The parts between cuts; bytes are coded runs.
struct CutSegments {
  int64_t size = 0;          // heavy pairs that were used
  WordCounts segments;       // distinct parts of 3 tokens or more, ascending by their bytes
  std::vector<char> head;    // part before the first cut, if the left end is open
  std::vector<char> tail;    // part after the last cut, if the right end is open
  int64_t head_tokens = 0;
  int64_t tail_tokens = 0;
  bool has_cut = true;       // false: `head` is all of the shard
};

// Takes the largest of the descending `sizes` whose result fits `cap_bytes`, else the last. Of the
// heavy pairs, which stand in rank order, the first `size` are used. A segment takes its coded
// bytes and 1, head and tail theirs.
// Memory: 32 bytes for each distinct segment of up to 15 coded bytes at a load of 3/8 to 3/4, 56 to
// 80 and its length for a longer one; and as much as the result while that is sorted.
// Throws SettingsError for sizes that do not descend or exceed the heavy pairs, CountTableError if
// a segment occurs more than 2^63 - 1 times.
template <class Id>
CutSegments cut_segments(const TokenSequences<Id>& sequences, const PairLookup& heavy,
                         const std::vector<int64_t>& sizes, int64_t cap_bytes, OpenEnds open);

}  // namespace beam_bpe
