// Training from columns: lays the text out for the trainer.
#pragma once

#include "python/arrow_columns.h"
#include "train/pair_trainer.h"

namespace beam_bpe {

// Merges of words that occur `counts` times each. `first_positions` (null unless the tie order is
// `first`) orders the words as the text does. Merges never cross a word's end.
// Throws CountTableError for a count below 1 and for columns of different lengths.
LearnedMerges train_words(const BinaryColumn& words, const Int64Column& counts,
                          const Int64Column* first_positions, const TrainingRules& rules,
                          const TrainingProgress& progress);

// Merges of documents that merges may cross from end to end, but not out of.
LearnedMerges train_raw(const BinaryColumn& documents, const TrainingRules& rules,
                        const TrainingProgress& progress);

// A reason's name in bpe.backends.values.MergeList.
const char* name_of(StopReason reason);

}  // namespace beam_bpe
