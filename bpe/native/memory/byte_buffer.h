// A growable array of bytes that becomes an Arrow buffer as it is, on pages of the pool.
#pragma once

#include <algorithm>
#include <cstddef>
#include <utility>

#include "memory/page_pool.h"

namespace beam_bpe {

class ByteBuffer {
 public:
  ByteBuffer() = default;
  ~ByteBuffer() {
    block_.touched = std::max(block_.touched, touched_);
    release_pages(block_);
  }
  ByteBuffer(ByteBuffer&& other) noexcept { swap(other); }
  ByteBuffer& operator=(ByteBuffer&& other) noexcept {
    ByteBuffer taken(std::move(other));
    swap(taken);
    return *this;
  }
  ByteBuffer(const ByteBuffer&) = delete;
  ByteBuffer& operator=(const ByteBuffer&) = delete;

  char* data() { return reinterpret_cast<char*>(block_.data); }
  const char* data() const { return reinterpret_cast<const char*>(block_.data); }
  size_t size() const { return block_.size; }  // bytes that there is room for

  // Room for at least `size` bytes; what was written stays, and may move. Throws std::bad_alloc.
  void reserve(size_t size) {
    if (size > block_.size) block_ = grow_pages(block_, size);
  }

  // Says how many bytes were written, at most, so that the pool knows what memory it holds.
  void mark_written(size_t size) { touched_ = std::max(touched_, size); }

 private:
  void swap(ByteBuffer& other) noexcept {
    std::swap(block_, other.block_);
    std::swap(touched_, other.touched_);
  }

  PageBlock block_;
  size_t touched_ = 0;
};

}  // namespace beam_bpe
