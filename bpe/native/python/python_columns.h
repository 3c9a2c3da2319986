// Between Python and the core: the interpreter's lock, and Arrow columns in both directions.
#pragma once

#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#if defined(__GLIBCXX__)
#include <cxxabi.h>
#endif

#include <chrono>
#include <thread>
#include <utility>
#include <vector>

#include "python/arrow_columns.h"

namespace py = pybind11;

namespace beam_bpe {

// Where the interpreter is ending, a thread that asks for its lock is ended on the spot. Unwinding
// its C++ frames would touch Python objects without the lock, and abort in a destructor: such a
// thread sleeps instead until the process is gone, as it does in Python from 3.14 on.
template <class Work>
void sleep_if_ended(const Work& work) {
#if defined(__GLIBCXX__)
  try {
    work();
  } catch (const abi::__forced_unwind&) {
    while (true) std::this_thread::sleep_for(std::chrono::hours(1));
  }
#else
  work();
#endif
}

// Lets other Python threads run while it lives.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  ~WithoutGil() {
    sleep_if_ended([this] { PyEval_RestoreThread(state_); });
  }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

// Holds Python's lock, in a thread that has let it go, while work runs.
template <class Work>
void with_gil(const Work& work) {
  sleep_if_ended([&work] {
    const py::gil_scoped_acquire gil;
    work();
  });
}

// An Arrow column that Python handed in, kept alive while the core reads it.
class ImportedColumn {
 public:
  explicit ImportedColumn(const py::object& column);

  const ArrowSchema& schema() const { return *schema_.get_pointer<ArrowSchema>(); }
  const ArrowArray& array() const { return *array_.get_pointer<ArrowArray>(); }
  IdColumn ids(const char* what) const { return {schema(), array(), what}; }
  IntegerColumn integers(const char* what) const { return {schema(), array(), what}; }
  BinaryColumn binary(const char* what) const { return {schema(), array(), what}; }
  Int64Column int64(const char* what) const { return {schema(), array(), what}; }

 private:
  py::capsule schema_;
  py::capsule array_;
};

// A result on its way to pyarrow, which takes it through Arrow's capsule protocol, once.
class ExportedColumn {
 public:
  explicit ExportedColumn(OwnedColumn column) : column_(std::move(column)) {}

  // `schema`: the type that the consumer would like; the protocol lets us ignore it.
  py::tuple export_capsules(const py::object& schema);

 private:
  OwnedColumn column_;
  bool taken_ = false;
};

// Each column, to be handed over.
py::tuple to_python(std::vector<OwnedColumn> columns);

// Tells Python of `Column`, which each module has for itself.
void define_columns(py::module_& module);

}  // namespace beam_bpe
