// The functions of memory/page_pool.h, by the pool that the core has.
#pragma once

#include "memory/page_pool_functions.h"

namespace beam_bpe {

// To be called once, before any other function. `functions` outlive this module.
void share_page_pool(const PagePoolFunctions* functions) noexcept;

}  // namespace beam_bpe
