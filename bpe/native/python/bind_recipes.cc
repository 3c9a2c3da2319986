// The trainers of other recipes than BPE, as Python sees them.
#include "python/bind.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/python_columns.h"
#include "python/training_arguments.h"
#include "recipes/wordpiece_trainer.h"

namespace beam_bpe {
namespace {

py::tuple train_wordpiece_from_python(const py::object& words, const py::object& counts,
                                      const py::object& first_positions, int64_t max_tokens,
                                      int64_t max_merges, int64_t min_frequency,
                                      const std::string& tie_order,
                                      const std::vector<std::string>& reserved,
                                      const std::vector<std::string>& forbidden,
                                      int64_t max_word_chars, int64_t limit_alphabet,
                                      const py::object& progress) {
  WordPieceRules rules{max_tokens, max_merges,         min_frequency, parse_tie_order(tie_order),
                       reserved,   forbidden};
  const ImportedColumn word_column(words);
  const ImportedColumn count_column(counts);
  std::optional<ImportedColumn> first_column;
  Int64Column first;
  if (!first_positions.is_none()) {
    first_column.emplace(first_positions);
    first = first_column->int64("first_positions");
  }
  const auto report = progress_of(progress);
  int64_t left_out_words = 0;
  int64_t left_out_uses = 0;
  const LearnedWordPieces learned = [&] {
    const BinaryColumn word_view = word_column.binary("words");
    const Int64Column count_view = count_column.int64("counts");
    const WithoutGil released;
    WordPieceWords read =
        read_wordpiece_words(word_view, count_view, first_column.has_value() ? &first : nullptr,
                             {max_word_chars, limit_alphabet});
    left_out_words = read.left_out_words;
    left_out_uses = read.left_out_uses;
    return WordPieceTrainer(std::move(read), std::move(rules)).train(report);
  }();
  py::list tokens(learned.tokens.size());
  for (size_t i = 0; i < learned.tokens.size(); ++i) tokens[i] = py::str(learned.tokens[i]);
  py::list merges(learned.left.size());
  for (size_t i = 0; i < learned.left.size(); ++i) {
    const LikelihoodScore& score = learned.scores[i];
    merges[i] = py::make_tuple(tokens[learned.left[i]], tokens[learned.right[i]], score.pairs,
                               score.lefts, score.rights);
  }
  return py::make_tuple(tokens, merges, name_of(learned.stop_reason), left_out_words,
                        left_out_uses);
}

}  // namespace

void define_recipes(py::module_& module) {
  module.def("train_wordpiece", &train_wordpiece_from_python, py::arg("words"), py::arg("counts"),
             py::arg("first_positions"), py::kw_only(), py::arg("max_tokens"),
             py::arg("max_merges"), py::arg("min_frequency"), py::arg("tie_order"),
             py::arg("reserved"), py::arg("forbidden"), py::arg("max_word_chars"),
             py::arg("limit_alphabet"), py::arg("progress"));
}

}  // namespace beam_bpe
