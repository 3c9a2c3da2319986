#include "python/training_arguments.h"

#include "memory/errors.h"
#include "python/python_columns.h"

namespace beam_bpe {

TrainingProgress progress_of(const py::object& callback) {
  return [callback](int64_t done, int64_t most) {
    with_gil([&] {
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      if (!callback.is_none()) callback(done, most);
    });
  };
}

TrainingRules rules_of(int64_t max_merges, const std::string& tie_order, int64_t min_frequency,
                       std::optional<int64_t> max_token_bytes,
                       const std::vector<py::bytes>& forbidden, std::optional<int64_t> max_words,
                       const std::vector<py::bytes>& forbidden_parts, size_t spare_seams) {
  TrainingRules rules;
  rules.spare_seams = spare_seams;
  rules.max_merges = max_merges;
  rules.tie_order = parse_tie_order(tie_order);
  rules.min_frequency = min_frequency;
  const auto limit = [](const char* name, std::optional<int64_t> value) {
    if (value.value_or(1) < 1) throw SettingsError(std::string(name) + " must be at least 1");
    return static_cast<uint64_t>(value.value_or(0));
  };
  rules.limits.max_token_bytes = limit("max_token_bytes", max_token_bytes);
  rules.limits.max_words = limit("max_words", max_words);
  for (const py::bytes& text : forbidden) rules.limits.forbidden.emplace_back(text);
  for (const py::bytes& part : forbidden_parts) rules.limits.forbidden_parts.emplace_back(part);
  return rules;
}

}  // namespace beam_bpe
