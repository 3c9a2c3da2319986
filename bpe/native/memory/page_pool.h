// Large blocks of memory that grow without copying, and a pool of released ones.
#pragma once

#include <cstddef>
#include <cstdint>

namespace beam_bpe {

struct PageBlock {
  uint8_t* data = nullptr;
  size_t size = 0;     // bytes
  size_t touched = 0;  // bytes that may have been written, and so hold the machine's memory
};

// A block of at least `size` bytes, from the pool or fresh; its content is anything. Throws
// std::bad_alloc.
PageBlock take_pages(size_t size);

// The block with its content, grown to at least `size` bytes; it may move. Throws std::bad_alloc.
PageBlock grow_pages(PageBlock block, size_t size);

// Keeps the block for later, or gives it back to the system when the pool is full.
void release_pages(PageBlock block) noexcept;

// Gives the system what the pool holds, but for blocks of `keep` written bytes in all, and, with
// glibc, what has been freed inside its heaps.
void give_back_memory(size_t keep) noexcept;

// Has glibc map blocks of 8 MiB and more one by one, and unmap them when they are freed. By itself
// it raises that bound to the largest block that was ever freed, up to 32 MiB, and then leaves
// holes of that size in the heap of every thread; a lower bound costs time, in which the system
// clears pages. False where malloc is another one.
bool map_large_blocks() noexcept;

// Asks for huge pages where a large block of anyone's memory, not written yet, has room for them.
void advise_huge_pages(void* data, size_t size) noexcept;

// A block of zeros of exactly `size` bytes, for tables; released by `free_zeroed`.
uint8_t* allocate_zeroed(size_t size);
void free_zeroed(uint8_t* data, size_t size) noexcept;

}  // namespace beam_bpe
