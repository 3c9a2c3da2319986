// The steps of training in rounds, as Python sees them.
#include "python/bind.h"

#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "python/python_columns.h"
#include "python/training_arguments.h"
#include "rounds/merge_applier.h"
#include "train/pair_counts.h"
#include "rounds/round_simulation.h"
#include "rounds/segment_cutter.h"

namespace beam_bpe {
namespace {

// Sequences of ids that Python handed in, with weights or None.
class ImportedSequences {
 public:
  ImportedSequences(const py::object& ids, const py::object& offsets, const py::object& weights)
      : ids_(ids), offsets_(offsets) {
    if (!weights.is_none()) weights_.emplace(weights);
  }

  // Calls work(const TokenSequences<Id>&) without Python's lock.
  template <class Work>
  auto visit(const Work& work) const {
    const IdColumn ids = ids_.ids("ids");
    const Int64Column offsets = offsets_.int64("offsets");
    const Int64Column weights = weights_.has_value() ? weights_->int64("weights") : Int64Column();
    const WithoutGil released;
    return ids.visit([&](const auto* values) {
      return work(make_sequences(values, ids.length, offsets,
                                 weights_.has_value() ? &weights : nullptr));
    });
  }

 private:
  ImportedColumn ids_;
  ImportedColumn offsets_;
  std::optional<ImportedColumn> weights_;
};

std::vector<uint32_t> ids_from_python(const py::object& ids, const char* what) {
  const ImportedColumn column(ids);
  const IdColumn view = column.ids(what);
  return view.visit([&](const auto* values) {
    return std::vector<uint32_t>(values, values + view.length);
  });
}

TokenStrings tokens_from_python(const py::object& tokens) {
  const ImportedColumn column(tokens);
  const BinaryColumn view = column.binary("tokens");
  TokenStrings strings;
  for (int64_t i = 0; i < view.size(); ++i) strings.append(view[i]);
  return strings;
}

ExportedColumn export_numbers(const char* format, OwnedBuffer numbers, size_t length) {
  return ExportedColumn({format, static_cast<int64_t>(length), {std::move(numbers)}, {}});
}

template <class Pairs>
py::tuple export_pairs(Pairs pairs) {
  const size_t length = pairs.counts.size();
  return py::make_tuple(export_numbers("I", own_buffer(std::move(pairs.left)), length),
                        export_numbers("I", own_buffer(std::move(pairs.right)), length),
                        export_numbers("l", own_buffer(std::move(pairs.counts)), length));
}

py::tuple count_state_pairs(const py::object& ids, const py::object& offsets,
                            const py::object& weights, const py::object& tokens,
                            std::optional<int64_t> max_token_bytes,
                            std::optional<int64_t> max_words,
                            const std::vector<py::bytes>& forbidden_parts) {
  const TrainingRules rules =
      rules_of(0, "id", 1, max_token_bytes, {}, max_words, forbidden_parts, 0);
  const TokenStrings strings = tokens_from_python(tokens);
  const MergeLimits limits(rules.limits, strings);
  return export_pairs(ImportedSequences(ids, offsets, weights).visit([&](const auto& sequences) {
    sequences.check_ids(strings.size(), "the state belongs to another round");
    return count_pairs(sequences, strings.size(), limits);
  }));
}

py::tuple cut_segments_from_python(const py::object& ids, const py::object& offsets,
                                   const py::object& weights, const py::object& heavy_left,
                                   const py::object& heavy_right,
                                   const std::vector<int64_t>& sizes, int64_t cap_bytes,
                                   bool open_left, bool open_right) {
  const PairLookup heavy(ids_from_python(heavy_left, "heavy_left"),
                         ids_from_python(heavy_right, "heavy_right"));
  CutSegments cut = ImportedSequences(ids, offsets, weights).visit([&](const auto& sequences) {
    return cut_segments(sequences, heavy, sizes, cap_bytes, {open_left, open_right});
  });
  const size_t length = cut.segments.counts.size();
  OwnedColumn segments{"Z", static_cast<int64_t>(length), {}, {}};
  segments.buffers.push_back(own_buffer(std::move(cut.segments.offsets)));
  segments.buffers.push_back(own_buffer(std::move(cut.segments.bytes)));
  return py::make_tuple(
      cut.size, ExportedColumn(std::move(segments)),
      export_numbers("l", own_buffer(std::move(cut.segments.counts)), length),
      py::bytes(cut.head.data(), cut.head.size()), py::bytes(cut.tail.data(), cut.tail.size()),
      cut.head_tokens, cut.tail_tokens, cut.has_cut);
}

ExportedColumn apply_merges(const py::object& ids, const py::object& offsets,
                            const py::object& left, const py::object& right, uint32_t first_id,
                            bool wide) {
  MergeApplier applier(ids_from_python(left, "left"), ids_from_python(right, "right"), first_id);
  if (!wide && applier.id_limit() > (uint64_t{1} << 16)) {
    throw SettingsError("merges make token " + std::to_string(applier.id_limit() - 1) +
                        ", which is no uint16: ask for uint32");
  }
  return ImportedSequences(ids, offsets, py::none()).visit([&](const auto& sequences) {
    IdBuffer merged(wide ? 4 : 2);
    std::vector<int64_t> merged_offsets;
    applier.apply(sequences, &merged, &merged_offsets);
    OwnedColumn values{wide ? "I" : "S", static_cast<int64_t>(merged.size()), {}, {}};
    values.buffers.push_back(own_buffer(std::move(merged)));
    OwnedColumn lists{"+L", sequences.count, {own_buffer(std::move(merged_offsets))}, {}};
    lists.children.push_back(std::move(values));
    return ExportedColumn(std::move(lists));
  });
}

py::tuple simulate_merges_from_python(
    const py::object& segments, const py::object& weights, const py::object& tokens,
    const std::optional<std::tuple<int64_t, uint32_t, uint32_t>>& stop, int64_t max_merges,
    const std::string& tie_order, int64_t min_frequency, std::optional<int64_t> max_token_bytes,
    const std::vector<py::bytes>& forbidden, std::optional<int64_t> max_words,
    const std::vector<py::bytes>& forbidden_parts, size_t spare_seams) {
  const TrainingRules rules = rules_of(max_merges, tie_order, min_frequency, max_token_bytes,
                                       forbidden, max_words, forbidden_parts, spare_seams);
  const ImportedColumn segment_column(segments);
  const ImportedColumn weight_column(weights);
  const BinaryColumn segment_view = segment_column.binary("segments");
  const Int64Column weight_view = weight_column.int64("weights");
  std::optional<StopBefore> bound;
  if (stop.has_value()) {
    const auto [count, left, right] = *stop;
    bound = StopBefore{count, left, right};
  }
  const auto check_interrupt = progress_of(py::none());
  return export_pairs([&] {
    TokenStrings strings = tokens_from_python(tokens);
    const WithoutGil released;
    return simulate_merges(segment_view, weight_view, std::move(strings), rules,
                           bound.has_value() ? &*bound : nullptr, check_interrupt);
  }());
}

}  // namespace

void define_rounds(py::module_& module) {
  module.def("count_state_pairs", &count_state_pairs, py::arg("ids"), py::arg("offsets"),
             py::arg("weights"), py::arg("tokens"), py::kw_only(), py::arg("max_token_bytes"),
             py::arg("max_words"), py::arg("forbidden_parts"));
  module.def("cut_segments", &cut_segments_from_python, py::arg("ids"), py::arg("offsets"),
             py::arg("weights"), py::arg("heavy_left"), py::arg("heavy_right"), py::kw_only(),
             py::arg("sizes"), py::arg("cap_bytes"), py::arg("open_left"), py::arg("open_right"));
  module.def("apply_merges", &apply_merges, py::arg("ids"), py::arg("offsets"), py::arg("left"),
             py::arg("right"), py::kw_only(), py::arg("first_id"), py::arg("wide"));
  module.def("simulate_merges", &simulate_merges_from_python, py::arg("segments"),
             py::arg("weights"), py::arg("tokens"), py::arg("stop"), py::kw_only(),
             py::arg("max_merges"), py::arg("tie_order"), py::arg("min_frequency"),
             py::arg("max_token_bytes"), py::arg("forbidden"), py::arg("max_words"),
             py::arg("forbidden_parts"), py::arg("spare_seams") = TrainingRules().spare_seams);
}

}  // namespace beam_bpe
