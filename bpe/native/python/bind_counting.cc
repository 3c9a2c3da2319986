// The counter of words, as Python sees it.
#include "python/bind.h"

#include <optional>
#include <string>

#include "python/python_columns.h"
#include "scan/isa_scans.h"
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
}

}  // namespace beam_bpe
