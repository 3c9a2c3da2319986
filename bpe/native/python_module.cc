// The Python face of the native core: converts arguments and results, releases the GIL, and turns
// the core's errors into the classes of bpe/errors.py. bpe/_native.pyi documents every name.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>

#include "arrow_columns.h"
#include "errors.h"
#include "training.h"

namespace py = pybind11;

namespace beam_bpe {
namespace {

// An Arrow column that Python handed in, kept alive while the core reads it.
class ImportedColumn {
 public:
  explicit ImportedColumn(const py::object& column) {
    py::tuple capsules = column.attr("__arrow_c_array__")();
    schema_ = capsules[0];
    array_ = capsules[1];
  }

  const ArrowSchema& schema() const { return *schema_.get_pointer<ArrowSchema>(); }
  const ArrowArray& array() const { return *array_.get_pointer<ArrowArray>(); }
  BinaryColumn binary(const char* what) const { return {schema(), array(), what}; }
  Int64Column int64(const char* what) const { return {schema(), array(), what}; }

 private:
  py::capsule schema_;
  py::capsule array_;
};

// Calls the user's function, and lets Ctrl-C end the work.
TrainingProgress progress_of(const py::object& callback) {
  return [callback](int64_t done, int64_t most) {
    py::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    if (!callback.is_none()) callback(done, most);
  };
}

TrainingRules rules_of(int64_t max_merges, const std::string& tie_order, int64_t min_frequency,
                       std::optional<int64_t> max_token_bytes,
                       const std::vector<py::bytes>& forbidden) {
  TrainingRules rules;
  rules.max_merges = max_merges;
  rules.tie_order = parse_tie_order(tie_order);
  rules.min_frequency = min_frequency;
  if (max_token_bytes.has_value()) {
    if (*max_token_bytes < 1) throw SettingsError("max_token_bytes must be at least 1");
    rules.max_token_bytes = static_cast<uint64_t>(*max_token_bytes);
  }
  for (const py::bytes& text : forbidden) rules.forbidden.emplace_back(std::string(text));
  return rules;
}

const char* name_of(StopReason reason) {
  if (reason == StopReason::kVocabSize) return "vocab_size";
  return reason == StopReason::kMinFrequency ? "min_frequency" : "exhausted";
}

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
                                  const py::object& progress) {
  const TrainingRules rules =
      rules_of(max_merges, tie_order, min_frequency, max_token_bytes, forbidden);
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
    py::gil_scoped_release release;
    return train_words(word_view, count_view, first_column.has_value() ? &first : nullptr, rules,
                       report);
  }();
  return merges_to_python(learned);
}

py::tuple train_raw_from_python(const py::object& documents, int64_t max_merges,
                                const std::string& tie_order, int64_t min_frequency,
                                std::optional<int64_t> max_token_bytes,
                                const std::vector<py::bytes>& forbidden,
                                const py::object& progress) {
  const TrainingRules rules =
      rules_of(max_merges, tie_order, min_frequency, max_token_bytes, forbidden);
  const ImportedColumn column(documents);
  const auto report = progress_of(progress);
  const LearnedMerges learned = [&] {
    const BinaryColumn view = column.binary("documents");
    py::gil_scoped_release release;
    return train_raw(view, rules, report);
  }();
  return merges_to_python(learned);
}

// Throws the class of bpe/errors.py that bears the C++ class's name.
void register_errors() {
  py::register_exception_translator([](std::exception_ptr pointer) {
    const auto raise = [](const char* name, const std::exception& error) {
      const py::object type = py::module_::import("bpe.errors").attr(name);
      PyErr_SetString(type.ptr(), error.what());
    };
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const SettingsError& error) {
      raise("SettingsError", error);
    } catch (const VocabularyError& error) {
      raise("VocabularyError", error);
    } catch (const CountTableError& error) {
      raise("CountTableError", error);
    } catch (const InputError& error) {
      raise("InputError", error);
    }
  });
}

}  // namespace

PYBIND11_MODULE(_native, module) {
  module.doc() = "The native core of beam-bpe; see bpe/_native.pyi.";
  register_errors();
  module.def("train_words", &train_words_from_python, py::arg("words"), py::arg("counts"),
             py::arg("first_positions"), py::kw_only(), py::arg("max_merges"),
             py::arg("tie_order"), py::arg("min_frequency"), py::arg("max_token_bytes"),
             py::arg("forbidden"), py::arg("progress"));
  module.def("train_raw", &train_raw_from_python, py::arg("documents"), py::kw_only(),
             py::arg("max_merges"), py::arg("tie_order"), py::arg("min_frequency"),
             py::arg("max_token_bytes"), py::arg("forbidden"), py::arg("progress"));
}

}  // namespace beam_bpe
