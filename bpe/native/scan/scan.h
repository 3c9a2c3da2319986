// Pre-token boundaries of a document held in memory, for the named schemes.
//
// A scan is resumable and keeps no state between calls: none of the patterns looks behind, so the
// start of any true pre-token is a valid place to go on from. bpe/pretokenizing/schemes.py is the specification;
// bytes that are no valid UTF-8 are one character of class "other" each.
#pragma once

#include <cstddef>
#include <cstdint>

namespace beam_bpe {

enum class SchemeId : uint8_t { gpt2, cl100k, o200k, llama3, qwen2, whitespace, superbpe };
inline constexpr size_t kSchemeCount = 7;

// Entries that a scan may overwrite after the `capacity` it was given; allocate that many more.
inline constexpr size_t kScanSlack = 128;

// A document, and how its pre-tokens' ends are counted.
struct ScanText {
  const uint8_t* text;
  size_t length;
  size_t readable;     // bytes of `text` that may be read, at least `length`
  uint32_t shift = 0;  // added to each end; not with 2 GiB or more of shift and length
};

struct ScanResult {
  size_t count;     // pre-tokens found; at least 1
  size_t position;  // end of the last of them, which is where the next scan starts
};

// Finds pre-tokens from `position`, the start of a pre-token of the document.
//
// position < length, capacity >= 1. Writes the end of each, in bytes after `position`, to `ends`
// (room for capacity + kScanSlack entries) and stops after about `capacity` of them, never more,
// or at the end of the document, or earlier where that suits. What stands after the document
// changes nothing, but short documents are scanned faster with 64 readable bytes. Pre-tokens are those of the whole document: `length` is its end for look-aheads.
// A pre-token that ends 4 GiB or more after `position` is the last of its call; its true end is
// in the result and its entry in `ends` is cut to 32 bits.
using ScanFunction = ScanResult (*)(const ScanText& document, size_t position, uint32_t* ends,
                                    size_t capacity);

// The scans of one instruction set, by scheme.
struct ScanFunctions {
  ScanFunction by_scheme[kSchemeCount];

  ScanFunction operator[](SchemeId scheme) const {
    return by_scheme[static_cast<size_t>(scheme)];
  }
};

// What a caller takes, with best_isa(), is in cpu_dispatch.h.
const ScanFunctions& scalar_scans();
const ScanFunctions& avx2_scans();
const ScanFunctions& avx512_scans();

}  // namespace beam_bpe
