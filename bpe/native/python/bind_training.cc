// Training, as Python sees it.
#include "python/bind.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/python_columns.h"
#include "python/training_arguments.h"
#include "rounds/round_simulation.h"

namespace beam_bpe {
namespace {

py::tuple merges_to_python(const LearnedMerges& learned) {
  std::vector<py::bytes> tokens;
  tokens.reserve(learned.tokens.size());
  for (size_t id = 0; id < learned.tokens.size(); ++id) tokens.emplace_back(learned.tokens[id]);
  py::list merges(learned.left.size());
  py::list counts(learned.left.size());
  for (size_t i = 0; i < learned.left.size(); ++i) {
    merges[i] = py::make_tuple(tokens[learned.left[i]], tokens[learned.right[i]]);
    counts[i] = py::int_(learned.counts[i]);
  }
  return py::make_tuple(merges, counts, name_of(learned.stop_reason));
}

py::tuple train_words_from_python(const py::object& words, const py::object& counts,
                                  const py::object& first_positions, int64_t max_merges,
                                  const std::string& tie_order, int64_t min_frequency,
                                  std::optional<int64_t> max_token_bytes,
                                  const std::vector<py::bytes>& forbidden,
                                  const py::object& progress, size_t spare_seams,
                                  std::optional<int64_t> max_words,
                                  const std::vector<py::bytes>& forbidden_parts) {
  const TrainingRules rules = rules_of(max_merges, tie_order, min_frequency, max_token_bytes,
                                       forbidden, max_words, forbidden_parts, spare_seams);
  const ImportedColumn word_column(words);
  const ImportedColumn count_column(counts);
  std::optional<ImportedColumn> first_column;
  Int64Column first;
  if (!first_positions.is_none()) {
    first_column.emplace(first_positions);
    first = first_column->int64("first_positions");
  }
  const auto report = progress_of(progress);
  const LearnedMerges learned = [&] {
    const BinaryColumn word_view = word_column.binary("words");
    const Int64Column count_view = count_column.int64("counts");
    const WithoutGil released;
    return train_words(word_view, count_view, first_column.has_value() ? &first : nullptr, rules,
                       report);
  }();
  return merges_to_python(learned);
}

py::tuple train_raw_from_python(const py::object& documents, int64_t max_merges,
                                const std::string& tie_order, int64_t min_frequency,
                                std::optional<int64_t> max_token_bytes,
                                const std::vector<py::bytes>& forbidden,
                                const py::object& progress, size_t spare_seams,
                                std::optional<int64_t> max_words,
                                const std::vector<py::bytes>& forbidden_parts) {
  const TrainingRules rules = rules_of(max_merges, tie_order, min_frequency, max_token_bytes,
                                       forbidden, max_words, forbidden_parts, spare_seams);
  const ImportedColumn column(documents);
  const auto report = progress_of(progress);
  const LearnedMerges learned = [&] {
    const BinaryColumn view = column.binary("documents");
    const WithoutGil released;
    return train_raw(view, rules, report);
  }();
  return merges_to_python(learned);
}

py::tuple train_segments_from_python(const py::object& segments, const py::object& weights,
                                     const py::object& tokens, int64_t max_merges,
                                     const std::string& tie_order, int64_t min_frequency,
                                     std::optional<int64_t> max_token_bytes,
                                     const std::vector<py::bytes>& forbidden,
                                     const py::object& progress, size_t spare_seams,
                                     std::optional<int64_t> max_words,
                                     const std::vector<py::bytes>& forbidden_parts) {
  const TrainingRules rules = rules_of(max_merges, tie_order, min_frequency, max_token_bytes,
                                       forbidden, max_words, forbidden_parts, spare_seams);
  const ImportedColumn segment_column(segments);
  const ImportedColumn weight_column(weights);
  const ImportedColumn token_column(tokens);
  const auto report = progress_of(progress);
  const LearnedMerges learned = [&] {
    const BinaryColumn segment_view = segment_column.binary("segments");
    const Int64Column weight_view = weight_column.int64("weights");
    const BinaryColumn token_view = token_column.binary("tokens");
    TokenStrings strings;
    for (int64_t i = 0; i < token_view.size(); ++i) strings.append(token_view[i]);
    const WithoutGil released;
    return train_segments(segment_view, weight_view, std::move(strings), rules, report);
  }();
  return merges_to_python(learned);
}

}  // namespace

void define_training(py::module_& module) {
  const size_t spare_seams = TrainingRules().spare_seams;
  module.def("train_words", &train_words_from_python, py::arg("words"), py::arg("counts"),
             py::arg("first_positions"), py::kw_only(), py::arg("max_merges"),
             py::arg("tie_order"), py::arg("min_frequency"), py::arg("max_token_bytes"),
             py::arg("forbidden"), py::arg("progress"), py::arg("spare_seams") = spare_seams,
             py::arg("max_words") = py::none(),
             py::arg("forbidden_parts") = std::vector<py::bytes>());
  module.def("train_segments", &train_segments_from_python, py::arg("segments"),
             py::arg("weights"), py::arg("tokens"), py::kw_only(), py::arg("max_merges"),
             py::arg("tie_order"), py::arg("min_frequency"), py::arg("max_token_bytes"),
             py::arg("forbidden"), py::arg("progress"), py::arg("spare_seams") = spare_seams,
             py::arg("max_words") = py::none(),
             py::arg("forbidden_parts") = std::vector<py::bytes>());
  module.def("train_raw", &train_raw_from_python, py::arg("documents"), py::kw_only(),
             py::arg("max_merges"), py::arg("tie_order"), py::arg("min_frequency"),
             py::arg("max_token_bytes"), py::arg("forbidden"), py::arg("progress"),
             py::arg("spare_seams") = spare_seams, py::arg("max_words") = py::none(),
             py::arg("forbidden_parts") = std::vector<py::bytes>());
}

}  // namespace beam_bpe
