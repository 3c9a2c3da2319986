// The parts of the module `bpe._native`: each function adds its own names. Their files, whose names
// begin with bind_, are compiled apart.
#pragma once

#include <pybind11/pybind11.h>

namespace py = pybind11;

namespace beam_bpe {

void define_counting(py::module_& module);
void define_encoding(py::module_& module);
void define_memory(py::module_& module);
void define_recipes(py::module_& module);
void define_rounds(py::module_& module);
void define_scanning(py::module_& module);
void define_training(py::module_& module);

}  // namespace beam_bpe
