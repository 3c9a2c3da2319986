#include "train/training.h"

#include <algorithm>
#include <limits>

#include "memory/errors.h"

namespace beam_bpe {

namespace {

std::array<Symbol, 256> symbols_of_bytes(TieOrder order) {
  const std::array<uint8_t, 256> bytes = bytes_in_id_order(order);
  std::array<Symbol, 256> symbols{};
  for (Symbol id = 0; id < 256; ++id) symbols[bytes[id]] = kFirstToken + id;
  return symbols;
}

bool fits_16_bits(const TrainingRules& rules) {
  return rules.max_merges <= (int64_t{1} << 16) - 256 - kFirstToken;
}

void check_words(const BinaryColumn& words, const Int64Column& counts,
                 const Int64Column* first_positions) {
  if (words.size() != counts.length ||
      (first_positions != nullptr && words.size() != first_positions->length)) {
    throw CountTableError("words, counts and first positions must be columns of one length");
  }
  if (words.size() > std::numeric_limits<uint32_t>::max()) {
    throw CountTableError("more than 2^32 - 1 distinct words; train in distributed rounds");
  }
  for (int64_t i = 0; i < counts.length; ++i) {
    if (counts.values[i] < 1) {
      throw CountTableError("words[" + std::to_string(i) + "] has count " +
                            std::to_string(counts.values[i]) + ": counts start at 1");
    }
  }
}

// The words that hold a pair, in the order of the text where that is known; else by falling count,
// which puts equal weights side by side.
std::vector<uint32_t> order_words(const BinaryColumn& words, const Int64Column& counts,
                                  const Int64Column* first_positions) {
  std::vector<uint32_t> order;
  for (int64_t i = 0; i < words.size(); ++i) {
    if (words[i].size() > 1) order.push_back(static_cast<uint32_t>(i));
  }
  const int64_t* keys = first_positions != nullptr ? first_positions->values : counts.values;
  const bool ascending = first_positions != nullptr;
  std::sort(order.begin(), order.end(), [keys, ascending](uint32_t a, uint32_t b) {
    if (keys[a] != keys[b]) return ascending ? keys[a] < keys[b] : keys[a] > keys[b];
    return a < b;
  });
  return order;
}

template <class Unit>
LearnedMerges train_ordered(const BinaryColumn& words, const std::vector<uint32_t>& order,
                            const Int64Column* counts, const TrainingRules& rules,
                            const TrainingProgress& progress) {
  uint64_t units = 1;
  for (const uint32_t i : order) units += words[i].size() + 1;
  SymbolSequence<Unit> text(units, symbols_of_bytes(rules.tie_order));
  for (const uint32_t i : order) text.add(words[i], counts != nullptr ? counts->values[i] : 1);
  text.finish();
  TokenStrings tokens(bytes_in_id_order(rules.tie_order));
  return PairTrainer<Unit>(std::move(text), std::move(tokens), rules).train(progress);
}

}  // namespace

LearnedMerges train_words(const BinaryColumn& words, const Int64Column& counts,
                          const Int64Column* first_positions, const TrainingRules& rules,
                          const TrainingProgress& progress) {
  check_words(words, counts, first_positions);
  if (rules.tie_order == TieOrder::kFirst && first_positions == nullptr) {
    throw CountTableError(
        "the tie order 'first' needs the first position of every word; count with first positions");
  }
  const std::vector<uint32_t> order = order_words(
      words, counts, rules.tie_order == TieOrder::kFirst ? first_positions : nullptr);
  return fits_16_bits(rules)
             ? train_ordered<uint16_t>(words, order, &counts, rules, progress)
             : train_ordered<uint32_t>(words, order, &counts, rules, progress);
}

LearnedMerges train_raw(const BinaryColumn& documents, const TrainingRules& rules,
                        const TrainingProgress& progress) {
  std::vector<uint32_t> order;
  for (int64_t i = 0; i < documents.size(); ++i) {
    if (documents[i].size() > 1) order.push_back(static_cast<uint32_t>(i));
  }
  return fits_16_bits(rules)
             ? train_ordered<uint16_t>(documents, order, nullptr, rules, progress)
             : train_ordered<uint32_t>(documents, order, nullptr, rules, progress);
}

const char* name_of(StopReason reason) {
  if (reason == StopReason::kVocabSize) return "vocab_size";
  return reason == StopReason::kMinFrequency ? "min_frequency" : "exhausted";
}

}  // namespace beam_bpe
