// The classes of the characters of a block of 64 bytes, as bit masks.
//
// `Simd` gives the masks of an instruction set, see scan_avx2.cc. The bytes of one character agree,
// and `inner` marks all but the first.
//
// Internal linkage throughout, see decode_char.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "scan/next_boundary.h"
#include "scan/scan.h"

namespace beam_bpe {
namespace {

constexpr size_t kBlock = 64;

// Of the bytes of a block. Masks that a scheme does not ask for are never computed.
struct BlockMasks {
  uint64_t letter;  // in o200k, marks too
  uint64_t number;
  uint64_t space;    // and everything from the document's end on
  uint64_t newline;  // \r, \n
  uint64_t blank;    // U+0020
  uint64_t apostrophe;
  uint64_t slash;
  uint64_t upper;    // Lu, Lt
  uint64_t lower;    // Ll
  uint64_t mark;     // o200k only
  uint64_t inner;    // bytes of a character but its first
  uint64_t beyond;   // from the document's end on
  uint64_t doubt;
};

// Bytes at the start of a block that belong to the last character of the block before.
struct Spilled {
  uint8_t size;
  uint8_t classes;
};

// Of the characters above U+007F of a block; everything is zero elsewhere.
struct WideMasks {
  uint64_t letter, number, space, upper, lower, mark, inner, doubt;
  Spilled spilled;  // into the next block
};

inline unsigned lowest_bit(uint64_t mask) { return static_cast<unsigned>(__builtin_ctzll(mask)); }

template <SchemeId scheme>
struct SchemeTraits {
  static constexpr bool gpt2 = scheme == SchemeId::gpt2;
  static constexpr bool o200k = scheme == SchemeId::o200k;
  static constexpr bool whitespace = scheme == SchemeId::whitespace;
  static constexpr bool cl100k_like = !gpt2 && !whitespace;
  static constexpr bool digits_by_three = cl100k_like && scheme != SchemeId::qwen2;
  // White space that reaches the document's end is one pre-token even if it holds newlines.
  static constexpr bool space_to_end = gpt2 || scheme == SchemeId::cl100k;
};

// First bytes of the three-byte characters of a block, for the ranges of Unicode that Chinese
// and Korean texts are made of. All three bytes lie in the block.
struct EastAsianStarts {
  uint64_t letters;      // Lo
  uint64_t punctuation;  // of class "other"
};

template <class Simd>
EastAsianStarts east_asian_starts(const typename Simd::Block& block) {
  const auto equal = [&block](int byte) { return Simd::equal(block, static_cast<char>(byte)); };
  const auto in_range = [&block](int first, int last) {
    return Simd::in_range(block, static_cast<char>(first), static_cast<char>(last));
  };
  const uint64_t trailing = in_range(0x80, 0xBF);
  const uint64_t complete = trailing >> 1 & trailing >> 2;
  // U+4000..U+9FFF but for U+4DC0..U+4DFF (E4 B7), and U+B000..U+CFFF.
  uint64_t letters = in_range(0xE5, 0xE9) | in_range(0xEB, 0xEC);
  letters |= equal(0xE4) & ~(equal(0xB7) >> 1);
  // U+3001..U+3004 and U+3008..U+3020; U+FF01..U+FF0F, U+FF1A..U+FF20 and U+FF3B..U+FF3F.
  const uint64_t ideographic = equal(0xE3) & equal(0x80) >> 1 &
                               (in_range(0x81, 0x84) | in_range(0x88, 0xA0)) >> 2;
  const uint64_t fullwidth =
      equal(0xEF) & equal(0xBC) >> 1 &
      (in_range(0x81, 0x8F) | in_range(0x9A, 0xA0) | in_range(0xBB, 0xBF)) >> 2;
  return {letters & complete, ideographic | fullwidth};
}

// high: bytes above 0x7F.
template <SchemeId scheme, class Simd>
__attribute__((noinline)) WideMasks wide_masks(const TextView& view,
                                               const typename Simd::Block& block, uint64_t high,
                                               size_t at, Spilled spilled) {
  using Traits = SchemeTraits<scheme>;
  WideMasks masks = {};
  const auto add = [&masks](uint64_t bytes, uint8_t classes) {
    const auto if_any = [bytes](unsigned found) { return found ? bytes : 0; };
    masks.letter |= if_any(classes & (Traits::o200k ? kLetter | kMark : kLetter));
    masks.number |= if_any(classes & kNumber);
    masks.space |= if_any(classes & kSpace);
    if (Traits::o200k) {
      masks.upper |= if_any(classes & kUpper);
      masks.lower |= if_any(classes & kLower);
      masks.mark |= if_any(classes & kMark);
    }
  };
  if (spilled.size) {
    const uint64_t bytes = (uint64_t{1} << spilled.size) - 1;
    add(bytes, spilled.classes);
    masks.inner = bytes;
    high &= ~bytes;
  }
  const EastAsianStarts east_asian = east_asian_starts<Simd>(block);
  const auto three_bytes = [](uint64_t starts) { return starts | starts << 1 | starts << 2; };
  const uint64_t known = east_asian.letters | east_asian.punctuation;
  masks.letter |= three_bytes(east_asian.letters);
  masks.inner |= known << 1 | known << 2;
  high &= ~three_bytes(known);
  while (high) {
    const unsigned bit = lowest_bit(high);
    const size_t left = view.length - at - bit;
    const Char found = decode_multibyte(view.tables, view.text + at + bit, left);
    const uint64_t bytes = ((uint64_t{1} << found.size) - 1) << bit;
    add(bytes, found.classes);
    masks.inner |= bytes & ~(uint64_t{1} << bit);
    high &= ~bytes;
    if (bit + found.size > kBlock) {
      masks.spilled = {static_cast<uint8_t>(bit + found.size - kBlock), found.classes};
      // The last character of a run of spaces must lie in one block.
      if (found.classes & kSpace) masks.doubt |= uint64_t{1} << bit;
    }
    // Digits are counted by bytes.
    if (Traits::digits_by_three && (found.classes & kNumber)) masks.doubt |= uint64_t{1} << bit;
  }
  return masks;
}

}  // namespace
}  // namespace beam_bpe
