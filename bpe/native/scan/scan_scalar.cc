// The scans without vector instructions.
#include "scan/next_boundary.h"
#include "scan/scan.h"

namespace beam_bpe {
namespace {

template <SchemeId scheme>
ScanResult scan(const uint8_t* text, size_t length, size_t position, uint32_t* ends,
                size_t capacity) {
  const TextView view{text, length, kClassTables};
  size_t end = position;
  size_t count = 0;
  while (count < capacity && end < length) {
    const size_t next = next_boundary<scheme>(view, end);
    if (next - position > UINT32_MAX && count) break;
    end = next;
    ends[count++] = static_cast<uint32_t>(end - position);
  }
  return {count, end};
}

}  // namespace

const ScanFunctions& scalar_scans() {
  static const ScanFunctions functions = {
      {scan<SchemeId::gpt2>, scan<SchemeId::cl100k>, scan<SchemeId::o200k>,
       scan<SchemeId::llama3>, scan<SchemeId::qwen2>, scan<SchemeId::whitespace>,
       scan<SchemeId::superbpe>}};
  return functions;
}

}  // namespace beam_bpe
