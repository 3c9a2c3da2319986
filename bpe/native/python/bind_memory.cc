// What a process holds of memory, as Python sees it.
#include "python/bind.h"

#include <algorithm>

#include "memory/byte_buffer.h"
#include "memory/page_pool.h"
#include "memory/page_pool_functions.h"
#include "python/python_columns.h"

namespace beam_bpe {
namespace {

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

constexpr PagePoolFunctions kPagePool{&take_pages, &grow_pages, &release_pages};

}  // namespace

void define_memory(py::module_& module) {
  module.def(
      "give_back_memory",
      [](size_t keep) {
        const WithoutGil released;
        give_back_memory(keep);
      },
      py::arg("keep"));
  py::class_<PooledBytes>(module, "PooledBytes", py::buffer_protocol())
      .def(py::init<size_t>(), py::arg("size"))
      .def_buffer(&PooledBytes::buffer);
  module.def("map_large_blocks", &map_large_blocks);
  module.attr("page_pool") = py::capsule(&kPagePool, kPagePoolCapsule);
}

}  // namespace beam_bpe
