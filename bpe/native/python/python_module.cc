// The Python face of the native core: converts arguments and results, releases the GIL, and turns
// the core's errors into the classes of bpe/errors.py. bpe/_native.pyi documents every name.
//
// The only translation unit with Python's headers; its parts by topic are the files bind_*.h.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "python/bind_columns.h"
#include "python/bind_counting.h"
#include "python/bind_encoding.h"
#include "python/bind_rounds.h"
#include "python/bind_training.h"
#include "memory/byte_buffer.h"
#include "scan/cpu_dispatch.h"
#include "memory/errors.h"
#include "io/file_writing.h"
#include "scan/isa_scans.h"
#include "io/json_rows.h"
#include "scan/normalization.h"
#include "memory/page_pool.h"
#include "encode/recover_merges.h"
#include "io/text_checks.h"

namespace beam_bpe {
namespace {

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

// The bytes of an object that has a buffer: bytes, memoryview, NumPy or Arrow buffer.
class Bytes {
 public:
  explicit Bytes(const py::buffer& object) : info_(object.request()) {
    if (info_.ndim != 1 || info_.itemsize != 1 || (info_.size > 1 && info_.strides[0] != 1)) {
      throw py::type_error("a buffer of bytes, one behind the other, is needed");
    }
  }
  std::string_view view() const {
    return {static_cast<const char*>(info_.ptr), static_cast<size_t>(info_.size)};
  }

 private:
  py::buffer_info info_;
};

// Memory for bytes, on pages of the pool.
class PooledBytes {
 public:
  explicit PooledBytes(size_t size) : size_(static_cast<py::ssize_t>(size)) {
    pages_.reserve(std::max<size_t>(size, 1));
    pages_.mark_written(size);
  }
  py::buffer_info buffer() { return {reinterpret_cast<uint8_t*>(pages_.data()), size_}; }

 private:
  ByteBuffer pages_;
  py::ssize_t size_;
};

py::tuple recover_merges_from_python(const py::object& tokens) {
  const ImportedColumn column(tokens);
  const BinaryColumn view = column.binary("tokens");
  return to_python([&] {
    const WithoutGil released;
    return to_columns(recover_merges(view));
  }());
}

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

py::array_t<uint64_t> scan_ends_from_python(const py::bytes& data, const std::string& scheme,
                                            const std::string& isa, size_t batch) {
  const std::vector<uint64_t> ends = scan_ends(std::string_view(data), scheme, isa, batch);
  return py::array_t<uint64_t>(static_cast<py::ssize_t>(ends.size()), ends.data());
}

}  // namespace

// Of what bpe/_native.pyi declares; as in bpe/backends/choice.py, which refuses another one.
constexpr int kInterface = 6;

PYBIND11_MODULE(_native, module) {
  module.doc() = "The native core of beam-bpe; see bpe/_native.pyi.";
  module.attr("INTERFACE") = kInterface;
  register_errors();
  py::class_<ExportedColumn>(module, "Column")
      .def("__arrow_c_array__", &ExportedColumn::export_capsules,
           py::arg("requested_schema") = py::none());
  define_counting(module);
  define_encoding(module);
  module.def("recover_merges", &recover_merges_from_python, py::arg("tokens"));
  module.def(
      "give_back_memory",
      [](size_t keep) {
        const WithoutGil released;
        give_back_memory(keep);
      },
      py::arg("keep"));
  module.def(
      "start_writing",
      [](int file, int64_t start, int64_t size) {
        const WithoutGil released;
        start_writing(file, start, size);
      },
      py::arg("file"), py::arg("start"), py::arg("size"));
  py::class_<PooledBytes>(module, "PooledBytes", py::buffer_protocol())
      .def(py::init<size_t>(), py::arg("size"))
      .def_buffer(&PooledBytes::buffer);
  module.def("map_large_blocks", &map_large_blocks);
  module.def("isa", [] { return isa_name(best_isa()); });
  module.def("available_isas", &available_isas);
  module.def("scan_ends", &scan_ends_from_python, py::arg("data"), py::arg("scheme"), py::arg("isa"),
             py::kw_only(), py::arg("batch"));
  module.def("scan_json_rows", &scan_json_rows_from_python, py::arg("data"), py::arg("starts"),
             py::arg("ends"), py::kw_only(), py::arg("text_path"), py::arg("id_path"));
  module.def("count_text_features", &count_text_features_from_python, py::arg("texts"),
             py::arg("whole"));
  module.def("find_byte", &find_byte_from_python, py::arg("data"), py::arg("byte"),
             py::arg("start"));
  module.def("longest_string", &longest_string_from_python, py::arg("data"));
  module.def("normalize", &normalize_from_python, py::arg("data"), py::arg("form"),
             py::arg("is_latest"));
  module.def("normalize_documents", &normalize_documents_from_python, py::arg("texts"),
             py::arg("form"), py::arg("is_latest"));
  define_training(module);
  define_rounds(module);
}

}  // namespace beam_bpe
