// The Python face of the native core: converts arguments and results, releases the GIL, and turns
// the core's errors into the classes of bpe/errors.py. bpe/_native.pyi documents every name.
//
// Python's headers are included in this folder alone; the files bind_*.cc hold the parts by topic.
#include "python/bind.h"
#include "python/python_columns.h"
#include "python/python_errors.h"

namespace beam_bpe {

// Of what bpe/_native.pyi declares; as in bpe/backends/choice.py, which refuses another one.
constexpr int kInterface = 12;

PYBIND11_MODULE(_native, module) {
  module.doc() = "The native core of beam-bpe; see bpe/_native.pyi.";
  module.attr("INTERFACE") = kInterface;
  register_errors();
  define_columns(module);
  define_counting(module);
  define_encoding(module);
  define_memory(module);
  define_recipes(module);
  define_rounds(module);
  define_scanning(module);
  define_training(module);
}

}  // namespace beam_bpe
