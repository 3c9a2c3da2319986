// Applies a batch of merges to a shard's sequences, exactly as one after another would.
//
// A merge can only join two old tokens that stand at the seam of some merge of the batch: the last
// old token of its left part and the first of its right part. Sequences fall apart at all other
// places, into parts of a few tokens. Most parts were seen before.
#pragma once

#include <cstdint>
#include <vector>

#include "encode/id_buffer.h"
#include "train/pair_lookup.h"
#include "rounds/linear_merger.h"
#include "rounds/token_sequences.h"

namespace beam_bpe {

class MergeApplier {
 public:
  // Merge i makes token first_id + i of left[i] and right[i]. Throws VocabularyError if a part is
  // not made before, InputError for a pair that is listed twice.
  MergeApplier(std::vector<uint32_t> left, std::vector<uint32_t> right, uint32_t first_id);
  MergeApplier(const MergeApplier&) = delete;
  MergeApplier& operator=(const MergeApplier&) = delete;

  // Ids in a result are below it.
  uint64_t id_limit() const { return uint64_t{first_id_} + left_.size(); }

  // Writes all sequences to `out`, which must take ids below id_limit, and where each starts to
  // `offsets` (one more than there are sequences). Ids must be below first_id. Once only.
  // Memory: the address space of the ids that go in; a cache of 4 MiB; for the longest part
  // that holds more than a few tokens 4 bytes for each token and 4 to 8 for each place in it that
  // merges. Throws InputError for a part of 2^32 - 2 tokens or more.
  template <class Id>
  void apply(const TokenSequences<Id>& sequences, IdBuffer* out, std::vector<int64_t>* offsets);

 private:
  static constexpr size_t kCachedTokens = 15;

  // A part and what it becomes, on one cache line.
  struct alignas(64) Cached {
    uint16_t length;                // tokens of the part; 0: nothing is cached here
    uint16_t merged_length;         // tokens that it becomes
    uint32_t tokens[kCachedTokens];  // first the part, then what it becomes
  };

  PairLookup find_seams() const;
  template <class Id, class Out>
  void apply_as(const TokenSequences<Id>& sequences, IdBuffer* out, std::vector<int64_t>* offsets);
  template <class Id, class Out>
  Out* apply_to_sequence(const Id* ids, size_t length, Out* out);
  template <class Id, class Out>
  Out* apply_to_part(const Id* ids, size_t length, Out* out);
  template <class Id, class Out>
  Out* apply_cached(const Id* ids, size_t length, Out* out);
  size_t merge_short(uint32_t* tokens, size_t length) const;

  std::vector<uint32_t> left_;
  std::vector<uint32_t> right_;
  uint32_t first_id_;
  PairLookup ranks_;            // merge of a pair of any tokens
  PairLookup seams_;            // pairs of old tokens that some merge joins
  std::vector<Cached> cache_;  // by hash of the part, a power of two
  LinearMerger linear_;        // for long parts
};

}  // namespace beam_bpe
