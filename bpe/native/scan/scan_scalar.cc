// The scans without vector instructions.
#include "scan/next_boundary.h"
#include "scan/scan.h"

namespace beam_bpe {
namespace {

template <SchemeId scheme>
ScanResult scan(const ScanText& document, size_t position, uint32_t* ends, size_t capacity) {
  const TextView view{document.text, document.length, kClassTables};
  const size_t origin = position - document.shift;  // of what is in `ends`; may wrap
  size_t end = position;
  size_t count = 0;
  while (count < capacity && end < view.length) {
    const size_t next = next_boundary<scheme>(view, end);
    if (next - origin > UINT32_MAX && count) break;
    end = next;
    ends[count++] = static_cast<uint32_t>(end - origin);
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
