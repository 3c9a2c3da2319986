// The two structures of Arrow's C data interface (a stable ABI: names, types and order are fixed by
// https://arrow.apache.org/docs/format/CDataInterface.html), so that columns pass in and out
// without a copy and without linking to Arrow.
#pragma once

#include <cstdint>

extern "C" {

struct ArrowSchema {
  const char* format;           // the type, e.g. "Z" for large_binary
  const char* name;             // the field's name, or null
  const char* metadata;         // key-value pairs, or null
  int64_t flags;                // 2: the field may hold nulls
  int64_t n_children;           // fields of a nested type
  struct ArrowSchema** children;
  struct ArrowSchema* dictionary;
  void (*release)(struct ArrowSchema*);  // null once released
  void* private_data;                    // the producer's own
};

struct ArrowArray {
  int64_t length;               // logical elements
  int64_t null_count;           // -1: not counted
  int64_t offset;               // elements of the buffers before the first one
  int64_t n_buffers;
  int64_t n_children;
  const void** buffers;         // validity bits first (null: no nulls)
  struct ArrowArray** children;
  struct ArrowArray* dictionary;
  void (*release)(struct ArrowArray*);  // null once released
  void* private_data;                   // the producer's own
};

}  // extern "C"
