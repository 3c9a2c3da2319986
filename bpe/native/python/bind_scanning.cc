// Normal forms, pre-tokens and instruction sets, as Python sees them.
#include "python/bind.h"

#include <pybind11/numpy.h>

#include <optional>
#include <string>
#include <vector>

#include "python/python_columns.h"
#include "scan/cpu_dispatch.h"
#include "scan/isa_scans.h"
#include "scan/normalization.h"

namespace beam_bpe {
namespace {

py::bytes normalize_from_python(const py::bytes& data, const std::string& form, bool is_latest) {
  const Normalization how{parse_form(form), is_latest};
  const std::string_view text(data);
  std::optional<std::string> normalized;
  {
    const WithoutGil released;
    normalized = normalize(text, how);
  }
  return normalized ? py::bytes(*normalized) : data;
}

std::optional<ExportedColumn> normalize_documents_from_python(const py::object& texts,
                                                              const std::string& form,
                                                              bool is_latest) {
  const Normalization how{parse_form(form), is_latest};
  const ImportedColumn column(texts);
  const BinaryColumn view = column.binary("texts");
  const WithoutGil released;
  std::optional<OwnedColumn> normalized = normalize_documents(view, how);
  if (!normalized) return std::nullopt;
  return ExportedColumn(std::move(*normalized));
}

py::array_t<uint64_t> scan_ends_from_python(const py::bytes& data, const ScanSpec& scheme,
                                            const std::string& isa, size_t batch) {
  const std::vector<uint64_t> ends = scan_ends(std::string_view(data), scheme, isa, batch);
  return py::array_t<uint64_t>(static_cast<py::ssize_t>(ends.size()), ends.data());
}

}  // namespace

void define_scanning(py::module_& module) {
  py::class_<PatternScan, std::shared_ptr<PatternScan>>(module, "PatternScan")
      .def(py::init([](std::vector<uint32_t> starts, std::vector<uint8_t> atoms,
                       std::vector<std::vector<uint32_t>> next_states,
                       std::vector<std::vector<bool>> ends,
                       std::vector<std::vector<bool>> certain_cuts) {
             return std::make_shared<PatternScan>(
                 PatternScan::Tables{std::move(starts), std::move(atoms), std::move(next_states),
                                     std::move(ends), std::move(certain_cuts)});
           }),
           py::kw_only(), py::arg("starts"), py::arg("atoms"), py::arg("next_states"),
           py::arg("ends"), py::arg("certain_cuts"));
  module.def("isa", [] { return isa_name(best_isa()); });
  module.def("available_isas", &available_isas);
  module.def("scan_ends", &scan_ends_from_python, py::arg("data"), py::arg("scheme"), py::arg("isa"),
             py::kw_only(), py::arg("batch"));
  module.def("normalize", &normalize_from_python, py::arg("data"), py::arg("form"),
             py::arg("is_latest"));
  module.def("normalize_documents", &normalize_documents_from_python, py::arg("texts"),
             py::arg("form"), py::arg("is_latest"));
}

}  // namespace beam_bpe
