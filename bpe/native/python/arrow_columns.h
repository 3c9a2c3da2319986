// Views of Arrow columns that were handed in, and columns to hand out.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "python/arrow_c_data.h"

namespace beam_bpe {

// Byte strings of a binary, string, large_binary or large_string column; borrows its buffers.
class BinaryColumn {
 public:
  BinaryColumn() = default;

  // Throws InputError if the column is of another type or holds nulls. `what` names the argument.
  BinaryColumn(const ArrowSchema& schema, const ArrowArray& array, const char* what);

  // Over plain buffers: `length` + 1 ascending offsets into `data`.
  BinaryColumn(const char* data, const int64_t* offsets, int64_t length)
      : data_(data), large_offsets_(offsets), length_(length) {}

  int64_t size() const { return length_; }
  int64_t start_of(int64_t i) const {
    return large_offsets_ != nullptr ? large_offsets_[i] : offsets_[i];
  }
  std::string_view operator[](int64_t i) const {
    const int64_t start = start_of(i);
    return {data_ + start, static_cast<size_t>(start_of(i + 1) - start)};
  }
  // Bytes of all elements.
  int64_t total_bytes() const { return length_ == 0 ? 0 : start_of(length_) - start_of(0); }

 private:
  const char* data_ = nullptr;
  const int64_t* large_offsets_ = nullptr;  // of a large column
  const int32_t* offsets_ = nullptr;        // of a column with 32-bit offsets
  int64_t length_ = 0;
};

// An int64 column without nulls; borrows its buffer.
struct Int64Column {
  const int64_t* values = nullptr;
  int64_t length = 0;

  Int64Column() = default;
  Int64Column(const ArrowSchema& schema, const ArrowArray& array, const char* what);
};

// A uint16 or uint32 column without nulls; borrows its buffer.
class IdColumn {
 public:
  IdColumn(const ArrowSchema& schema, const ArrowArray& array, const char* what);

  int64_t length = 0;

  // Calls work(const uint16_t*) or work(const uint32_t*) with the first id's address.
  template <class Work>
  auto visit(const Work& work) const {
    return wide_ ? work(static_cast<const uint32_t*>(ids_))
                 : work(static_cast<const uint16_t*>(ids_));
  }

 private:
  const void* ids_ = nullptr;
  bool wide_ = true;  // uint32
};

// A column of uint16, uint32, uint64, int32 or int64 without nulls; borrows its buffer.
class IntegerColumn {
 public:
  IntegerColumn(const ArrowSchema& schema, const ArrowArray& array, const char* what);

  int64_t length = 0;

  // Calls work with the first value's address, a pointer to values of the column's type.
  template <class Work>
  auto visit(const Work& work) const {
    switch (format_) {
      case 'S': return work(static_cast<const uint16_t*>(values_));
      case 'I': return work(static_cast<const uint32_t*>(values_));
      case 'L': return work(static_cast<const uint64_t*>(values_));
      case 'i': return work(static_cast<const int32_t*>(values_));
      default: return work(static_cast<const int64_t*>(values_));
    }
  }

 private:
  const void* values_ = nullptr;
  char format_;  // Arrow's letter for the type
};

// Memory of a column to hand out, kept alive by its owner.
struct OwnedBuffer {
  std::shared_ptr<const void> owner;
  const void* data = nullptr;
};

// Takes a container with data(), such as a vector, as it is.
template <class Container>
OwnedBuffer own_buffer(Container container) {
  auto owner = std::make_shared<Container>(std::move(container));
  const void* data = owner->data();
  return {std::move(owner), data};
}

// A column to hand out; element type by Arrow's format string.
struct OwnedColumn {
  std::string format;                 // "Z" large_binary, "l" int64, "+L" large_list, …
  int64_t length = 0;                 // elements
  std::vector<OwnedBuffer> buffers;   // without the validity bits: no column has nulls
  std::vector<OwnedColumn> children;  // the values of a list
};

// Moves the column into the two structures; their consumer releases it.
void export_column(OwnedColumn column, ArrowSchema* schema, ArrowArray* array);

}  // namespace beam_bpe
