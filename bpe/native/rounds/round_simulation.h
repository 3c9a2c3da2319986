// Training on the segments of a round: from tokens that earlier rounds made.
#pragma once

#include "python/arrow_columns.h"
#include "train/pair_trainer.h"

namespace beam_bpe {

// Merges within segments of coded runs that occur `weights` times each; the first one makes the
// token tokens.size(). Ends before the first pick that is not better than `stop`, if that is not
// null. Memory: as PairTrainer has it, over the tokens of the segments, and 4 bytes for each
// segment.
// Throws InputError for an id without a token, and for more than 2^32 - 66 tokens and segments;
// CountTableError for a damaged code, a weight below 1, or a pair that occurs more than 2^63 - 1
// times; SettingsError for the tie order `first`, which a round has no places for.
LearnedMerges simulate_merges(const BinaryColumn& segments, const Int64Column& weights,
                              TokenStrings tokens, const TrainingRules& rules,
                              const StopBefore* stop, const TrainingProgress& progress);

// The same without a bound, for training on all of a text: segments are in its order, so that the
// tie order `first` has its places.
LearnedMerges train_segments(const BinaryColumn& segments, const Int64Column& weights,
                             TokenStrings tokens, const TrainingRules& rules,
                             const TrainingProgress& progress);

}  // namespace beam_bpe
