// A growable array of token ids, 16 or 32 bits each, that becomes an Arrow buffer as it is.
//
// The memory is a mapping of its own that grows without copying. Released mappings are kept for
// the next buffer of the process, up to a bound: touching fresh pages costs as much as encoding.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "memory/page_pool.h"

namespace beam_bpe {

class IdBuffer {
 public:
  // Writers may store whole vectors past the last id: so many bytes are always there.
  static constexpr size_t kSlackBytes = 128;

  // id_bytes: 2 or 4.
  explicit IdBuffer(unsigned id_bytes) : id_bytes_(id_bytes) {}
  ~IdBuffer() {
    block_.touched = std::max(block_.touched, size_ * id_bytes_);
    release_pages(block_);
  }
  IdBuffer(IdBuffer&& other) noexcept : id_bytes_(other.id_bytes_) { swap(other); }
  IdBuffer& operator=(IdBuffer&& other) noexcept {
    IdBuffer taken(std::move(other));
    swap(taken);
    return *this;
  }
  IdBuffer(const IdBuffer&) = delete;
  IdBuffer& operator=(const IdBuffer&) = delete;

  unsigned id_bytes() const { return id_bytes_; }
  size_t size() const { return size_; }  // ids
  const void* data() const { return block_.data; }
  void clear() {
    block_.touched = std::max(block_.touched, size_ * id_bytes_);
    size_ = 0;
  }

  // Room for `more` ids and the slack. Returns where the next id goes; the pointer is good until
  // the next call. Id must be of id_bytes. Throws std::bad_alloc.
  template <typename Id>
  Id* reserve(size_t more) {
    const size_t needed = (size_ + more) * sizeof(Id) + kSlackBytes;
    if (needed > block_.size) block_ = grow_pages(block_, needed);
    return reinterpret_cast<Id*>(block_.data) + size_;
  }

  // Takes over what was written after `reserve`, up to `end`.
  template <typename Id>
  void finish(const Id* end) {
    size_ = static_cast<size_t>(end - reinterpret_cast<const Id*>(block_.data));
  }

  void swap(IdBuffer& other) noexcept {
    std::swap(id_bytes_, other.id_bytes_);
    std::swap(block_, other.block_);
    std::swap(size_, other.size_);
  }

 private:
  unsigned id_bytes_;
  PageBlock block_;
  size_t size_ = 0;
};

}  // namespace beam_bpe
