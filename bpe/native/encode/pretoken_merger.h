// Ids of single pre-tokens, without any cache: the choice between the merge algorithms.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <unordered_map>
#include <vector>

#include "encode/backtracking.h"
#include "encode/encoding_model.h"
#include "encode/merge_table.h"
#include "encode/merge_list.h"
#include "encode/substring_finder.h"

namespace beam_bpe {

// Working memory of one thread.
struct MergeScratch {
  HeapMergeScratch heap;
  std::vector<uint64_t> dead;  // of the backtracking
};

// Immutable after construction; used from many threads.
class PretokenMerger {
 public:
  // Keeps the model. Throws VocabularyError, see MergeList.
  explicit PretokenMerger(std::shared_ptr<const EncodingModel> model);

  // Ids (the model's) of a pre-token of any size; `ids` is overwritten.
  void encode(const uint8_t* pretoken, size_t size, std::vector<uint32_t>& ids,
              MergeScratch& scratch) const;

  // The same for 1 <= size <= kKeyBytes; `ids` has room for `size`. Returns their number.
  size_t encode_short(const uint8_t* pretoken, size_t size, uint32_t* ids,
                      MergeScratch& scratch) const;

 private:
  // Id of a pre-token that is a token which merges do not reach; kNoToken otherwise.
  uint32_t unreachable_pretoken(const uint8_t* pretoken, size_t size) const;
  void find_unreachable(const MergeList& merges, const std::vector<uint32_t>& last_merges);
  void find_early(const MergeList& merges, std::vector<uint32_t>& last_merges);

  // Whether the pre-token needs the heap, as it contains an early token.
  bool has_early(const uint8_t* pretoken, size_t size) const {
    return merges_ && early_.is_in(pretoken, size);
  }

  std::shared_ptr<const EncodingModel> model_;
  std::unique_ptr<MergeList> merges_;  // of models with early tokens
  SubstringFinder early_;                 // finds their bytes
  std::unique_ptr<MergeTable> table_;     // without them
  std::unique_ptr<BacktrackingMerger> backtracking_;
  std::unordered_map<std::string, uint32_t> unreachable_;
  size_t longest_unreachable_ = 0;
};

}  // namespace beam_bpe
