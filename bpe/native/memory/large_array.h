// A fixed-size array of plain values for the big tables: not initialised, aligned, and on huge
// pages where the system gives them (random access over hundreds of MB is bound by the TLB).
#pragma once

#include <cstddef>
#include <cstdlib>
#include <new>
#include <type_traits>
#include <utility>

#if defined(__linux__)
#include <sys/mman.h>
#endif

namespace beam_bpe {

template <class T>
class LargeArray {
  static_assert(std::is_trivially_copyable_v<T>, "moved and dropped as bytes");

 public:
  LargeArray() = default;

  explicit LargeArray(size_t size) : size_(size) {
    if (size == 0) return;
    if (size > (static_cast<size_t>(-1) - kHugePage) / sizeof(T)) throw std::bad_alloc();
    const size_t alignment = size * sizeof(T) >= 2 * kHugePage ? kHugePage : 64;
    const size_t bytes = (size * sizeof(T) + alignment - 1) / alignment * alignment;
    data_ = static_cast<T*>(std::aligned_alloc(alignment, bytes));
    if (data_ == nullptr) throw std::bad_alloc();
#if defined(__linux__)
    if (alignment == kHugePage) madvise(data_, bytes, MADV_HUGEPAGE);
#endif
  }

  LargeArray(LargeArray&& other) noexcept { swap(other); }
  LargeArray& operator=(LargeArray&& other) noexcept {
    LargeArray taken(std::move(other));
    swap(taken);
    return *this;
  }
  LargeArray(const LargeArray&) = delete;
  LargeArray& operator=(const LargeArray&) = delete;
  ~LargeArray() { std::free(data_); }

  void swap(LargeArray& other) noexcept {
    std::swap(data_, other.data_);
    std::swap(size_, other.size_);
  }

  T* data() { return data_; }
  const T* data() const { return data_; }
  size_t size() const { return size_; }
  T& operator[](size_t i) { return data_[i]; }
  const T& operator[](size_t i) const { return data_[i]; }

 private:
  static constexpr size_t kHugePage = size_t{2} << 20;

  T* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace beam_bpe
