#include "python/python_errors.h"

#include <pybind11/pybind11.h>

#include "memory/errors.h"

namespace py = pybind11;

namespace beam_bpe {

void register_errors() {
  py::register_local_exception_translator([](std::exception_ptr pointer) {
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

}  // namespace beam_bpe
