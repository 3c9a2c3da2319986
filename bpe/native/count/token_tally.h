// Counts tokens, and the documents that hold them, by groups of documents; measures their text.
#pragma once

#include <cstdint>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "python/arrow_columns.h"

namespace beam_bpe {

class TokenTally {
 public:
  // Sums of a group; their order is that of the columns that `drain_measures` gives.
  enum Measure { kDocuments, kBytes, kChars, kUnspaced, kWords, kKept, kTokens, kMeasures };

  // `lengths`: bytes of every id. `spells`: whether the ids of a text spell it byte for byte, which
  // is needed to see the words that one token covers.
  TokenTally(std::vector<int64_t> lengths, bool spells);

  // Adds documents, or parts of them: ids[offsets[i]..offsets[i + 1]] are those of texts[i]. Where
  // `begins` is 0 a row goes on with the document of the row before it, in this call or an earlier
  // one. Throws InputError for columns that do not fit together and for an id without a length.
  void add(const BinaryColumn& texts, const IdColumn& ids, const Int64Column& offsets,
           const Int64Column& groups, const Int64Column& begins);

  // uint32 ids of the document that was added last, ascending.
  OwnedColumn current_ids() const;

  // int64 group, uint32 id, int64 count, int64 documents; ascending. Empties the counts.
  std::vector<OwnedColumn> drain_counts();

  // int64 group, then a column for each measure; ascending. Empties them.
  std::vector<OwnedColumn> drain_measures();

  // Bytes that the counts of all groups take.
  int64_t memory_bytes() const;

 private:
  struct Group {
    std::vector<int64_t> counts;
    std::vector<int64_t> documents;
    int64_t measures[kMeasures] = {};
  };

  template <class Id>
  void add_ids(const Id* ids, int64_t size, Group* group);
  template <class Id>
  void measure(std::string_view text, const Id* ids, int64_t size, int64_t* measures) const;
  Group& group_of(int64_t number);
  std::vector<int64_t> sorted_groups() const;

  std::vector<int64_t> lengths_;
  bool spells_;
  std::vector<int64_t> last_document_;  // that held an id
  int64_t document_ = 1;
  std::unordered_map<int64_t, Group> groups_;
};

}  // namespace beam_bpe
