// The counter of words, as Python sees it.
#include "python/bind.h"

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "python/python_columns.h"
#include "scan/isa_scans.h"
#include "count/token_tally.h"
#include "count/word_counter.h"

namespace beam_bpe {
namespace {

void add_column(WordCounter& counter, const py::object& texts,
                void (WordCounter::*add)(const BinaryColumn&)) {
  const ImportedColumn column(texts);
  const BinaryColumn view = column.binary("texts");
  const WithoutGil released;
  (counter.*add)(view);
}

py::tuple drain_counter(WordCounter& counter) {
  return to_python([&counter] {
    const WithoutGil released;
    return to_columns(counter.drain());
  }());
}

void add_to_tally(TokenTally& tally, const py::object& texts, const py::object& ids,
                  const py::object& offsets, const py::object& groups, const py::object& begins) {
  const ImportedColumn columns[] = {ImportedColumn(texts), ImportedColumn(ids),
                                    ImportedColumn(offsets), ImportedColumn(groups),
                                    ImportedColumn(begins)};
  const BinaryColumn text_view = columns[0].binary("texts");
  const IdColumn id_view = columns[1].ids("ids");
  const Int64Column offset_view = columns[2].int64("offsets");
  const Int64Column group_view = columns[3].int64("groups");
  const Int64Column begin_view = columns[4].int64("begins");
  const WithoutGil released;
  tally.add(text_view, id_view, offset_view, group_view, begin_view);
}

}  // namespace

void define_counting(py::module_& module) {
  py::class_<WordCounter>(module, "WordCounter")
      .def(py::init([](const ScanSpec& scheme, int threads) {
             return WordCounter(find_scan(scheme), threads);
           }),
           py::arg("scheme"), py::kw_only(), py::arg("threads"))
      .def("add_documents",
           [](WordCounter& counter, const py::object& texts) {
             add_column(counter, texts, &WordCounter::add_documents);
           },
           py::arg("texts"))
      .def("add_words",
           [](WordCounter& counter, const py::object& words) {
             add_column(counter, words, &WordCounter::add_words);
           },
           py::arg("words"))
      .def_property_readonly("memory_bytes", &WordCounter::memory_bytes)
      .def("drain", &drain_counter);
  py::class_<TokenTally>(module, "TokenTally")
      .def(py::init([](const py::object& lengths, bool spells) {
             const ImportedColumn column(lengths);
             const Int64Column view = column.int64("lengths");
             return TokenTally({view.values, view.values + view.length}, spells);
           }),
           py::arg("lengths"), py::kw_only(), py::arg("spells"))
      .def("add", &add_to_tally, py::arg("texts"), py::arg("ids"), py::arg("offsets"),
           py::arg("groups"), py::arg("begins"))
      .def_property_readonly("memory_bytes", &TokenTally::memory_bytes)
      .def("current_ids",
           [](const TokenTally& tally) {
             std::vector<OwnedColumn> columns;
             columns.push_back(tally.current_ids());
             return py::object(to_python(std::move(columns))[0]);
           })
      .def("drain_counts", [](TokenTally& tally) { return to_python(tally.drain_counts()); })
      .def("drain_measures", [](TokenTally& tally) { return to_python(tally.drain_measures()); });
}

}  // namespace beam_bpe
