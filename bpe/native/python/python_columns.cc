#include "python/python_columns.h"

namespace beam_bpe {
namespace {

constexpr const char* capsule_name_schema() { return "arrow_schema"; }
constexpr const char* capsule_name_array() { return "arrow_array"; }

// A consumer marks what it took as released; what nobody took is released here.
template <class Structure, const char* (*Name)()>
void drop(PyObject* capsule) {
  auto* structure = static_cast<Structure*>(PyCapsule_GetPointer(capsule, Name()));
  if (structure->release != nullptr) structure->release(structure);
  delete structure;
}

}  // namespace

ImportedColumn::ImportedColumn(const py::object& column) {
  // Python runs in this call, and may end the thread: no object of ours may be alive in it that
  // unwinding would release without the lock.
  PyObject* found = nullptr;
  sleep_if_ended(
      [&] { found = PyObject_CallMethod(column.ptr(), "__arrow_c_array__", nullptr); });
  if (found == nullptr) throw py::error_already_set();
  const auto capsules = py::reinterpret_steal<py::tuple>(found);
  schema_ = capsules[0];
  array_ = capsules[1];
}

py::tuple ExportedColumn::export_capsules(const py::object& schema) {
  static_cast<void>(schema);
  if (taken_) throw py::value_error("this column was handed over already");
  taken_ = true;
  auto* exported_schema = new ArrowSchema;
  auto* exported_array = new ArrowArray;
  export_column(std::move(column_), exported_schema, exported_array);
  return py::make_tuple(
      py::capsule(exported_schema, "arrow_schema", &drop<ArrowSchema, capsule_name_schema>),
      py::capsule(exported_array, "arrow_array", &drop<ArrowArray, capsule_name_array>));
}

py::tuple to_python(std::vector<OwnedColumn> columns) {
  py::tuple exported(columns.size());
  for (size_t i = 0; i < columns.size(); ++i) {
    exported[i] = ExportedColumn(std::move(columns[i]));
  }
  return exported;
}

void define_columns(py::module_& module) {
  py::class_<ExportedColumn>(module, "Column", py::module_local())
      .def("__arrow_c_array__", &ExportedColumn::export_capsules,
           py::arg("requested_schema") = py::none());
}

}  // namespace beam_bpe
