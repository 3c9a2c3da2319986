// The Python face of what serves reading and writing files. pipelines/_io.pyi documents every name.
//
// Shares the core's columns and errors, which are compiled into both modules, and the core's pool
// of pages, which is in one of them.
#include <optional>
#include <string_view>
#include <vector>

#include "file_writing.h"
#include "json_rows.h"
#include "python/python_columns.h"
#include "python/python_errors.h"
#include "shared_page_pool.h"
#include "text_checks.h"

namespace beam_bpe {
namespace {

// The bytes of an object that has a buffer: bytes, memoryview, NumPy or Arrow buffer.
class Bytes {
 public:
  explicit Bytes(const py::buffer& object) : info_(object.request()) {
    if (info_.ndim != 1 || info_.itemsize != 1 || (info_.size > 1 && info_.strides[0] != 1)) {
      throw py::type_error("a buffer of bytes, one after the other, is needed");
    }
  }
  std::string_view view() const {
    return {static_cast<const char*>(info_.ptr), static_cast<size_t>(info_.size)};
  }

 private:
  py::buffer_info info_;
};

std::optional<py::tuple> scan_json_rows_from_python(const py::buffer& data,
                                                    const py::object& starts,
                                                    const py::object& ends, const JsonPath& text,
                                                    const JsonPath& id) {
  const ImportedColumn start_column(starts);
  const ImportedColumn end_column(ends);
  const Int64Column start_view = start_column.int64("starts");
  const Int64Column end_view = end_column.int64("ends");
  const Bytes bytes(data);
  std::optional<std::vector<OwnedColumn>> columns;
  {
    const WithoutGil released;
    std::optional<JsonRows> rows = scan_json_rows(bytes.view(), start_view, end_view, text, id);
    if (rows) columns = to_columns(std::move(*rows), !id.empty());
  }
  if (!columns) return std::nullopt;
  return to_python(std::move(*columns));
}

std::vector<int64_t> count_text_features_from_python(const py::object& texts,
                                                     const py::bytes& whole) {
  const ImportedColumn column(texts);
  const BinaryColumn view = column.binary("texts");
  const std::string_view marks(whole);
  const WithoutGil released;
  const TextFeatures found = count_text_features(view, marks);
  return {found.empty, found.whitespace_only, found.invalid_utf8, found.nul, found.cr, found.crlf};
}

ExportedColumn find_byte_from_python(const py::buffer& data, uint8_t byte, size_t start) {
  const Bytes bytes(data);
  const WithoutGil released;
  std::vector<int64_t> found = find_byte(bytes.view(), static_cast<char>(byte), start);
  OwnedColumn column{"l", static_cast<int64_t>(found.size()), {}, {}};
  column.buffers.push_back(own_buffer(std::move(found)));
  return ExportedColumn(std::move(column));
}

int64_t longest_string_from_python(const py::buffer& data) {
  const Bytes bytes(data);
  const WithoutGil released;
  return longest_string(bytes.view());
}

}  // namespace

// Of what pipelines/_io.pyi declares; as in pipelines/storage/native_io.py, which refuses another.
constexpr int kInterface = 1;

PYBIND11_MODULE(_io, module) {
  module.doc() = "What serves reading and writing files; see pipelines/_io.pyi.";
  module.attr("INTERFACE") = kInterface;
  const py::object pool = py::module_::import("bpe._native").attr("page_pool");
  void* functions = PyCapsule_GetPointer(pool.ptr(), kPagePoolCapsule);
  if (functions == nullptr) throw py::error_already_set();
  share_page_pool(static_cast<const PagePoolFunctions*>(functions));
  register_errors();
  define_columns(module);
  module.def(
      "start_writing",
      [](int file, int64_t start, int64_t size) {
        const WithoutGil released;
        start_writing(file, start, size);
      },
      py::arg("file"), py::arg("start"), py::arg("size"));
  module.def("scan_json_rows", &scan_json_rows_from_python, py::arg("data"), py::arg("starts"),
             py::arg("ends"), py::kw_only(), py::arg("text_path"), py::arg("id_path"));
  module.def("count_text_features", &count_text_features_from_python, py::arg("texts"),
             py::arg("whole"));
  module.def("find_byte", &find_byte_from_python, py::arg("data"), py::arg("byte"),
             py::arg("start"));
  module.def("longest_string", &longest_string_from_python, py::arg("data"));
}

}  // namespace beam_bpe
