// The pool of pages for other extension modules: a process has one, which the core holds.
#pragma once

#include "memory/page_pool.h"

namespace beam_bpe {

// Functions of page_pool.h; a capsule of Python's hands them over.
struct PagePoolFunctions {
  PageBlock (*take)(size_t size);
  PageBlock (*grow)(PageBlock block, size_t size);
  void (*release)(PageBlock block) noexcept;
};

constexpr const char* kPagePoolCapsule = "bpe._native.page_pool";

}  // namespace beam_bpe
