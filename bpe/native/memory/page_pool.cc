#include "memory/page_pool.h"

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <mutex>
#include <new>
#include <vector>

#if defined(__GLIBC__)
#include <malloc.h>
#endif
#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace beam_bpe {
namespace {

constexpr size_t kHugePage = size_t{2} << 20;
constexpr size_t kSmallPage = 4096;
[[maybe_unused]] constexpr int kLeastMapped = 8 << 20;
// Free bytes at the end of a heap from which on they go back to the system at once.
[[maybe_unused]] constexpr int kLeastTrimmed = 32 << 20;

// Bytes of written memory, and blocks, that the pool may hold on to.
constexpr size_t kPoolBytes = size_t{512} << 20;
constexpr size_t kPoolBlocks = 64;

size_t round_up(size_t size) {
  const size_t unit = size >= kHugePage ? kHugePage : kSmallPage;
  if (size > SIZE_MAX - unit) throw std::bad_alloc();
  return (size + unit - 1) / unit * unit;
}

#if defined(__linux__)

// Huge pages help what is read at random, if the block starts on such a page, so that is arranged
// for. What is written from front to back gets ordinary ones: a virtual machine's host may have to
// find the memory of a huge one first, which can take several times as long.
uint8_t* map_pages(size_t size, bool huge) {
  const size_t margin = huge && size >= kHugePage ? kHugePage : 0;
  void* mapped = mmap(nullptr, size + margin, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (mapped == MAP_FAILED) throw std::bad_alloc();
  auto* data = static_cast<uint8_t*>(mapped);
  if (!margin) return data;
  const size_t before = (kHugePage - reinterpret_cast<uintptr_t>(data) % kHugePage) % kHugePage;
  if (before) munmap(data, before);
  if (before < margin) munmap(data + before + size, margin - before);
  madvise(data + before, size, MADV_HUGEPAGE);
  return data + before;
}

void unmap_pages(uint8_t* data, size_t size) noexcept { munmap(data, size); }

uint8_t* remap_pages(uint8_t* data, size_t old_size, size_t size) {
  void* moved = mremap(data, old_size, size, MREMAP_MAYMOVE);
  if (moved == MAP_FAILED) throw std::bad_alloc();
  return static_cast<uint8_t*>(moved);
}

#else

uint8_t* map_pages(size_t size, bool) {
  void* data = std::aligned_alloc(kSmallPage, size);
  if (!data) throw std::bad_alloc();
  std::memset(data, 0, size);
  return static_cast<uint8_t*>(data);
}

void unmap_pages(uint8_t* data, size_t) noexcept { std::free(data); }

uint8_t* remap_pages(uint8_t* data, size_t old_size, size_t size) {
  uint8_t* moved = map_pages(size, false);
  std::memcpy(moved, data, old_size);
  unmap_pages(data, old_size);
  return moved;
}

#endif

struct Pool {
  std::mutex mutex;
  std::vector<PageBlock> released;
  size_t touched = 0;
};

// Never destroyed: buffers may be released while static objects are.
Pool& pool() {
  static Pool& instance = *new Pool();
  return instance;
}

// The smallest released block that is large enough; failing that, for a large request, the one
// that has the most written memory, to be grown.
std::vector<PageBlock>::iterator choose(std::vector<PageBlock>& released, size_t size) {
  auto best = released.end();
  for (auto it = released.begin(); it != released.end(); ++it) {
    if (it->size >= size && (best == released.end() || it->size < best->size)) best = it;
  }
  if (best != released.end() || size < kHugePage) return best;
  for (auto it = released.begin(); it != released.end(); ++it) {
    if (it->size >= kHugePage && (best == released.end() || it->touched > best->touched)) best = it;
  }
  return best;
}

}  // namespace

PageBlock take_pages(size_t size) {
  size = round_up(size);
  Pool& shared = pool();
  PageBlock block;
  {
    const std::lock_guard<std::mutex> lock(shared.mutex);
    const auto chosen = choose(shared.released, size);
    if (chosen != shared.released.end()) {
      block = *chosen;
      shared.touched -= block.touched;
      shared.released.erase(chosen);
    }
  }
  if (!block.data) return {map_pages(size, false), size, 0};
  if (block.size >= size) return block;
  return {remap_pages(block.data, block.size, size), size, block.touched};
}

PageBlock grow_pages(PageBlock block, size_t size) {
  if (!block.data) return take_pages(size);
  size = round_up(std::max(size, block.size * 2));
  return {remap_pages(block.data, block.size, size), size, block.touched};
}

void release_pages(PageBlock block) noexcept {
  if (!block.data) return;
  Pool& shared = pool();
  {
    const std::lock_guard<std::mutex> lock(shared.mutex);
    if (shared.released.size() < kPoolBlocks && shared.touched + block.touched <= kPoolBytes) {
      try {
        shared.released.push_back(block);
        shared.touched += block.touched;
        return;
      } catch (const std::bad_alloc&) {
        // Then the block goes back to the system.
      }
    }
  }
  unmap_pages(block.data, block.size);
}

void give_back_memory(size_t keep) noexcept {
  std::vector<PageBlock> released;
  {
    Pool& shared = pool();
    const std::lock_guard<std::mutex> lock(shared.mutex);
    released.swap(shared.released);
    shared.touched = 0;
  }
  for (const PageBlock& block : released) {
    if (block.touched <= keep) {
      keep -= block.touched;
      release_pages(block);
    } else {
      unmap_pages(block.data, block.size);
    }
  }
#if defined(__GLIBC__)
  malloc_trim(0);
#endif
}

bool map_large_blocks() noexcept {
#if defined(__GLIBC__)
  return mallopt(M_MMAP_THRESHOLD, kLeastMapped) == 1 &&
         mallopt(M_TRIM_THRESHOLD, kLeastTrimmed) == 1;
#else
  return false;
#endif
}

void advise_huge_pages(void* data, size_t size) noexcept {
#if defined(__linux__)
  const auto address = reinterpret_cast<uintptr_t>(data);
  const uintptr_t begin = (address + kHugePage - 1) / kHugePage * kHugePage;
  const uintptr_t end = (address + size) / kHugePage * kHugePage;
  if (begin < end) madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
#else
  static_cast<void>(data);
  static_cast<void>(size);
#endif
}

uint8_t* allocate_zeroed(size_t size) { return map_pages(round_up(size), true); }

void free_zeroed(uint8_t* data, size_t size) noexcept {
  if (data) unmap_pages(data, round_up(size));
}

}  // namespace beam_bpe
