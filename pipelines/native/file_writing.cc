#include "file_writing.h"

#if defined(__linux__)
#include <fcntl.h>
#endif

namespace beam_bpe {

void start_writing(int file, int64_t start, int64_t size) noexcept {
#if defined(__linux__)
  static_cast<void>(sync_file_range(file, start, size, SYNC_FILE_RANGE_WRITE));
#else
  static_cast<void>(file);
  static_cast<void>(start);
  static_cast<void>(size);
#endif
}

}  // namespace beam_bpe
