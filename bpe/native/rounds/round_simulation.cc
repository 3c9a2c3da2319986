#include "rounds/round_simulation.h"

#include <algorithm>
#include <string>

#include "memory/checked_math.h"
#include "memory/errors.h"
#include "rounds/run_coding.h"

namespace beam_bpe {

namespace {

std::string name_of_segment(int64_t i) { return "segments[" + std::to_string(i) + "]"; }

// Units that a trainer needs for all segments; checks everything about them.
uint64_t count_units(const BinaryColumn& segments, const Int64Column& weights, size_t tokens) {
  if (segments.size() != weights.length) {
    throw InputError("there are " + std::to_string(segments.size()) + " segments and " +
                     std::to_string(weights.length) + " weights: pass one for each");
  }
  if (segments.size() > UINT32_MAX) throw InputError("more than 2^32 - 1 segments are too many");
  int64_t units = 1;
  for (int64_t i = 0; i < segments.size(); ++i) {
    if (weights.values[i] < 1) {
      throw CountTableError(name_of_segment(i) + " has the weight " +
                            std::to_string(weights.values[i]) + ": weights start at 1");
    }
    RunReader reader(segments[i], name_of_segment(i));
    for (TokenRun run; reader.next(&run);) {
      if (run.token >= tokens) {
        throw InputError(name_of_segment(i) + " holds the id " + std::to_string(run.token) +
                         ", but ids end at " + std::to_string(tokens) +
                         ": it belongs to another round");
      }
      if (run.length > INT64_MAX) throw InputError(name_of_segment(i) + " has an endless run");
      units = checked_add(units, static_cast<int64_t>(run.length), "a token");
    }
    units = checked_add(units, 1, "a token");
  }
  return static_cast<uint64_t>(units);
}

template <class Unit>
SymbolSequence<Unit> lay_out(const BinaryColumn& segments, const Int64Column& weights,
                             uint64_t units, bool keep_order) {
  // Unless the order counts, by falling weight, which puts equal weights side by side.
  std::vector<uint32_t> order(static_cast<size_t>(segments.size()));
  for (uint32_t i = 0; i < order.size(); ++i) order[i] = i;
  if (!keep_order) {
    std::stable_sort(order.begin(), order.end(), [&weights](uint32_t a, uint32_t b) {
      return weights.values[a] > weights.values[b];
    });
  }
  SymbolSequence<Unit> text(units);
  for (const uint32_t i : order) {
    RunReader reader(segments[i], name_of_segment(i));
    text.start_sequence(weights.values[i]);
    for (TokenRun run; reader.next(&run);) text.add_run(run.token, run.length);
    text.end_sequence();
  }
  text.finish();
  return text;
}

LearnedMerges train(const BinaryColumn& segments, const Int64Column& weights, TokenStrings tokens,
                    const TrainingRules& rules, const StopBefore* stop,
                    const TrainingProgress& progress) {
  const bool keep_order = rules.tie_order == TieOrder::kFirst;
  const uint64_t units = count_units(segments, weights, tokens.size());
  const auto symbols = static_cast<int64_t>(kFirstToken + tokens.size());
  if (rules.max_merges <= (int64_t{1} << 16) - symbols) {
    return PairTrainer<uint16_t>(lay_out<uint16_t>(segments, weights, units, keep_order),
                                 std::move(tokens), rules)
        .train(progress, stop);
  }
  return PairTrainer<uint32_t>(lay_out<uint32_t>(segments, weights, units, keep_order),
                               std::move(tokens), rules)
      .train(progress, stop);
}

}  // namespace

LearnedMerges train_segments(const BinaryColumn& segments, const Int64Column& weights,
                             TokenStrings tokens, const TrainingRules& rules,
                             const TrainingProgress& progress) {
  return train(segments, weights, std::move(tokens), rules, nullptr, progress);
}

LearnedMerges simulate_merges(const BinaryColumn& segments, const Int64Column& weights,
                              TokenStrings tokens, const TrainingRules& rules,
                              const StopBefore* stop, const TrainingProgress& progress) {
  if (rules.tie_order == TieOrder::kFirst) {
    throw SettingsError("the tie order 'first' cannot be had in rounds: use hf, id or bytes");
  }
  return train(segments, weights, std::move(tokens), rules, stop, progress);
}

}  // namespace beam_bpe
