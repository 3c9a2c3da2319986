// What the standard library does not offer for files that are being written.
#pragma once

#include <cstdint>

namespace beam_bpe {

// Has the system begin to write a range of an open file to the disk, without waiting for it, so
// that a later fsync finds little left to do. A hint: errors are for that fsync to report.
void start_writing(int file, int64_t start, int64_t size) noexcept;

}  // namespace beam_bpe
