#include "shared_page_pool.h"

namespace beam_bpe {
namespace {

const PagePoolFunctions* pool = nullptr;

}  // namespace

void share_page_pool(const PagePoolFunctions* functions) noexcept { pool = functions; }

PageBlock take_pages(size_t size) { return pool->take(size); }

PageBlock grow_pages(PageBlock block, size_t size) { return pool->grow(block, size); }

void release_pages(PageBlock block) noexcept {
  if (block.data) pool->release(block);
}

}  // namespace beam_bpe
