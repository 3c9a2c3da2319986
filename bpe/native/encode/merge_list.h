// The merges of a model as they were given: any ranks, several merges per token.
//
// Encodes by a heap in O(n log n), whatever the merges are. It is the oracle of the faster
// encoders, and stands in for them where a pre-token holds an early token.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "encode/encoding_model.h"
#include "encode/heap_merge.h"

namespace beam_bpe {

inline constexpr uint32_t kNoToken = UINT32_MAX;

class MergeList {
 public:
  // Keeps a reference to the model. Throws VocabularyError for a byte of valid UTF-8 without id,
  // an id that is used twice or too large, a merge whose bytes are not those of its result.
  explicit MergeList(const EncodingModel& model);

  uint32_t byte_id(uint8_t byte) const { return byte_ids_[byte]; }
  const std::string& bytes(uint32_t id) const { return model_.tokens[index_[id]]; }

  // Ids of a pre-token by merging alone. Returns the rank of the last merge, kNoToken if none.
  // Throws InputError for more than kLongestHeapPretoken bytes.
  uint32_t encode(const uint8_t* pretoken, size_t size, std::vector<uint32_t>& ids,
                  HeapMergeScratch& scratch) const;

  // By position in the model's tokens: the rank of the merge that comes last when the token's
  // bytes are encoded on their own. kNoToken if that does not give the token, and for a byte.
  std::vector<uint32_t> last_merges() const;

  // Positions of the early tokens: their merge has a lower rank than the one of a half, so that
  // merges that make them are not applied in the order of their ranks.
  std::vector<size_t> early_tokens(const std::vector<uint32_t>& last_merges) const;

 private:
  struct Slot {
    uint64_t pair = kEmpty;
    uint32_t rank = kNoToken;
  };
  static constexpr uint64_t kEmpty = UINT64_MAX;

  void index_tokens();
  void index_merges();
  bool has_id(uint32_t id) const { return id < index_.size() && index_[id] != kNoToken; }
  Slot& slot_of(uint64_t pair);
  uint32_t rank(uint32_t left, uint32_t right) const;

  const EncodingModel& model_;
  uint32_t byte_ids_[256];
  std::vector<uint32_t> index_;  // id to position in the model's tokens
  std::vector<Slot> ranks_;      // by pair, open addressing
};

}  // namespace beam_bpe
