// The schemes, 64 bytes at a time: algebra over bit masks, one bit per byte of a block.
//
// A block's masks (block_masks.h) say for each byte which class its character has. From them and a
// few carried bits the algebra makes the mask of the bytes where pre-tokens start. What it does
// not cover is marked as `doubt`: there the scan takes one pre-token from next_boundary.h, and
// starts afresh after it, which is possible at every start of a pre-token as no pattern looks
// behind.
//
// Internal linkage throughout, see decode_char.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "scan/block_masks.h"
#include "scan/next_boundary.h"
#include "scan/scan.h"

namespace beam_bpe {
namespace {

// Bytes between the block that is scanned and the text that is asked for from memory: the batches
// are too short, and the work between them too long, for the processor to do so by itself.
constexpr size_t kTextAhead = 3072;

// What a block hands to the next one: whole masks, of which bit 63 is the byte before bit 0.
struct Carry {
  uint64_t letter, number, space, gap, newline, blank, other, slash, lower, caseless;
  uint64_t absorbed;      // newlines (and slashes) that belong to the punctuation before them
  uint64_t lone;          // bytes of a character of punctuation that starts a pre-token
  uint64_t digit_starts;  // of pre-tokens
  uint64_t late_starts;   // in the next block, after a contraction
  uint64_t late_clears;   // in the next block, where a contraction removes starts

  // One by one: in place of an assignment of {} compilers call upon an instruction that takes as
  // long as a whole block.
  void clear() {
    letter = number = space = gap = newline = blank = other = slash = lower = caseless = 0;
    absorbed = lone = digit_starts = late_starts = late_clears = 0;
  }
};

inline uint64_t before(uint64_t mask, uint64_t carried) { return mask << 1 | carried >> 63; }

// Runs of `mask` upwards from each bit of `seeds`, which are bits of `mask` that no bit of the
// same run precedes in `seeds`.
inline uint64_t runs_from(uint64_t mask, uint64_t seeds) { return mask & ~(mask + seeds); }

inline unsigned highest_bit(uint64_t mask) {
  return 63 - static_cast<unsigned>(__builtin_clzll(mask));
}

template <SchemeId scheme, class Simd>
class BlockScanner {
 public:
  using Traits = SchemeTraits<scheme>;

  explicit BlockScanner(const ScanText& document)
      : view_{document.text, document.length, kClassTables},
        readable_(document.readable),
        shift_(document.shift) {}

  ScanResult scan(size_t position, uint32_t* ends, size_t capacity) {
    uint32_t* out = ends;
    const size_t origin = position - shift_;  // of what is in `ends`; may wrap
    uint32_t* const goal = ends + capacity - kBlock - 1;
    size_t at = position;
    uint64_t first = 1;  // the start of the scan is no end of a pre-token
    carry_.clear();
    spilled_ = {};
    while (out <= goal && at - origin < UINT32_MAX - 2 * kBlock) {
      prefetch_text(at + kTextAhead);
      const BlockMasks masks = masks_of(at);
      uint64_t doubt = 0;
      uint64_t starts = starts_of(masks, at, doubt) & ~first & ~masks.beyond;
      if (__builtin_expect(doubt != 0, 0)) {
        // Starts below the doubt hold. The pre-token of the last of them is scanned by itself.
        const unsigned bit = lowest_bit(doubt);
        starts &= (uint64_t{1} << bit) - 1;
        out = Simd::write_bits(starts, static_cast<uint32_t>(at - origin), out);
        const size_t start = out == ends ? position : origin + out[-1];
        at = next_boundary<scheme>(view_, start);
        if (at - origin > UINT32_MAX) return {static_cast<size_t>(out - ends) + 1, at};
        *out++ = static_cast<uint32_t>(at - origin);
        if (at == view_.length) break;
        first = 1;
        carry_.clear();
        spilled_ = {};
        continue;
      }
      out = Simd::write_bits(starts, static_cast<uint32_t>(at - origin), out);
      first = 0;
      at += kBlock;
      if (at >= view_.length) {
        *out++ = static_cast<uint32_t>(view_.length - origin);
        break;
      }
    }
    if (out == ends) {
      // One pre-token of almost 4 GiB or more.
      const size_t end = next_boundary<scheme>(view_, position);
      *out++ = static_cast<uint32_t>(end - origin);
      return {1, end};
    }
    return {static_cast<size_t>(out - ends), origin + out[-1]};
  }

 private:
  // A hint, which may lie after the document's end.
  void prefetch_text(size_t at) const {
    __builtin_prefetch(reinterpret_cast<const void*>(reinterpret_cast<uintptr_t>(view_.text) + at));
  }

  BlockMasks masks_of(size_t at) {
    const size_t left = view_.length - at;
    if (__builtin_expect(left >= kBlock, 1)) return complete(Simd::load(view_.text + at), at, 0);
    typename Simd::Block block;
    if (readable_ - at >= kBlock) {
      block = Simd::load_first(view_.text + at, left);
    } else {
      uint8_t padded[kBlock] = {};
      __builtin_memcpy(padded, view_.text + at, left);
      block = Simd::load(padded);
    }
    return complete(block, at, ~uint64_t{0} << left);
  }

  BlockMasks complete(const typename Simd::Block& block, size_t at, uint64_t beyond) {
    BlockMasks masks = {};
    const uint64_t high = Simd::high_bits(block);
    masks.number = Simd::in_range(block, '0', '9');
    masks.blank = Simd::equal(block, ' ');
    masks.space = masks.blank | Simd::in_range(block, '\t', '\r');
    if (!Traits::whitespace) {
      if (Traits::o200k) {
        masks.upper = Simd::in_range(block, 'A', 'Z');
        masks.lower = Simd::in_range(block, 'a', 'z');
        masks.letter = masks.upper | masks.lower;
        masks.slash = Simd::equal(block, '/');
      } else {
        masks.letter = Simd::letters(block);
      }
      masks.apostrophe = Simd::equal(block, '\'');
    }
    if (Traits::cl100k_like) {
      masks.newline = Simd::equal(block, '\r') | Simd::equal(block, '\n');
    }
    if (__builtin_expect(high != 0, 0)) {
      const WideMasks wide = wide_masks<scheme, Simd>(view_, block, high, at, spilled_);
      masks.letter |= wide.letter;
      masks.number |= wide.number;
      masks.space |= wide.space;
      masks.upper = masks.upper | wide.upper;
      masks.lower = masks.lower | wide.lower;
      masks.mark = wide.mark;
      masks.inner = wide.inner;
      masks.doubt = wide.doubt;
      spilled_ = wide.spilled;
    }
    masks.beyond = beyond;
    masks.space |= beyond;
    return masks;
  }

  // Whether the character at `at`, or the document's end there, counts as white space.
  bool is_space(size_t at) const { return view_.classes_at(at, kSpace) & kSpace; }

  uint64_t starts_of(const BlockMasks& masks, size_t at, uint64_t& doubt) {
    if constexpr (Traits::whitespace) {
      const uint64_t change = masks.space ^ before(masks.space, carry_.space);
      carry_.space = masks.space;
      return change & ~masks.inner;
    } else if constexpr (Traits::gpt2) {
      doubt |= masks.doubt;
      return gpt2_starts(masks, at);
    } else {
      return cl100k_starts(masks, at, doubt);
    }
  }

  // The last character of each run of `spaces` that something else follows, as its first byte.
  uint64_t last_spaces(uint64_t spaces, const BlockMasks& masks, size_t at) const {
    uint64_t next = masks.space >> 1;
    if (spaces >> 63 && is_space(at + kBlock)) next |= uint64_t{1} << 63;
    const uint64_t last = spaces & ~next;
    const uint64_t wide = last & masks.inner;
    if (__builtin_expect(wide != 0, 0)) {
      const uint64_t two = wide >> 1 & ~masks.inner;
      const uint64_t three = wide >> 2 & ~masks.inner & masks.inner >> 1;
      return (last & ~masks.inner) | two | three;
    }
    return last;
  }

  uint64_t gpt2_starts(const BlockMasks& masks, size_t at);
  uint64_t cl100k_starts(const BlockMasks& masks, size_t at, uint64_t& doubt);
  uint64_t find_absorbed(const BlockMasks& masks, uint64_t other, uint64_t& doubt) const;
  uint64_t digit_starts(uint64_t number, uint64_t inner);
  uint64_t starts_after_newlines(uint64_t candidates, uint64_t gaps, const BlockMasks& masks,
                                 size_t at) const;
  uint64_t with_contractions(uint64_t starts, uint64_t candidates, size_t at);

  TextView view_;
  size_t readable_;
  uint32_t shift_;
  Carry carry_;
  Spilled spilled_;
};

// Applies the contractions that begin at `candidates`, and those of the block before. They end a
// pre-token; in o200k they belong to the word before, elsewhere they are pre-tokens themselves.
template <SchemeId scheme, class Simd>
uint64_t BlockScanner<scheme, Simd>::with_contractions(uint64_t starts, uint64_t candidates,
                                                       size_t at) {
  uint64_t added = carry_.late_starts;
  uint64_t removed = carry_.late_clears;
  carry_.late_starts = carry_.late_clears = 0;
  while (__builtin_expect(candidates != 0, 0)) {
    const unsigned bit = lowest_bit(candidates);
    candidates &= candidates - 1;
    // A word takes one contraction: another one right after it is not its own.
    if (Traits::o200k && (added >> bit & 1)) continue;
    const size_t size = contraction_size<!Traits::gpt2>(view_, at + bit);
    if (!size) continue;
    const unsigned first = Traits::o200k ? bit : bit + 1;
    const unsigned end = bit + static_cast<unsigned>(size);
    // Bits first..end-1 lose their starts, end gets one; they may lie in the next block.
    const auto low = [](unsigned bits) {
      return bits >= 64 ? ~uint64_t{0} : (uint64_t{1} << bits) - 1;
    };
    removed |= low(end) & ~low(first);
    if (end < kBlock) {
      added |= uint64_t{1} << end;
    } else {
      carry_.late_starts |= uint64_t{1} << (end - kBlock);
      carry_.late_clears |= low(end - kBlock) & ~low(first < kBlock ? 0 : first - kBlock);
    }
  }
  return (starts & ~removed) | added;
}

template <SchemeId scheme, class Simd>
uint64_t BlockScanner<scheme, Simd>::gpt2_starts(const BlockMasks& masks, size_t at) {
  const uint64_t letter = masks.letter;
  const uint64_t number = masks.number;
  const uint64_t space = masks.space;
  const uint64_t other = ~(letter | number | space);
  // A change of class starts a pre-token, but not after a blank, which is part of it.
  uint64_t starts = (letter & ~before(letter, carry_.letter)) |
                    (number & ~before(number, carry_.number)) |
                    (other & ~before(other, carry_.other));
  starts &= ~before(masks.blank, carry_.blank);
  starts |= (space & ~before(space, carry_.space)) | last_spaces(space, masks, at);
  starts &= ~masks.inner;
  carry_.letter = letter;
  carry_.number = number;
  carry_.space = space;
  carry_.other = other;
  carry_.blank = masks.blank;
  return with_contractions(starts, masks.apostrophe & starts, at);
}

// `[\r\n]*` after punctuation, in o200k `[\r\n/]*`.
template <SchemeId scheme, class Simd>
uint64_t BlockScanner<scheme, Simd>::find_absorbed(const BlockMasks& masks, uint64_t other,
                                                   uint64_t& doubt) const {
  const uint64_t newline = masks.newline;
  if constexpr (Traits::o200k) {
    // A slash is punctuation too: with one before a newline, runs may hold several beginnings.
    doubt |= newline & before(masks.slash, carry_.slash);
    const uint64_t run = newline | masks.slash;
    const uint64_t seeds = newline & before(other & ~masks.slash, carry_.other & ~carry_.slash);
    return runs_from(run, seeds | (run & carry_.absorbed >> 63));
  } else {
    const uint64_t seeds = newline & before(other, carry_.other);
    return runs_from(newline, seeds | (newline & carry_.absorbed >> 63));
  }
}

template <SchemeId scheme, class Simd>
uint64_t BlockScanner<scheme, Simd>::digit_starts(uint64_t number, uint64_t inner) {
  if (!Traits::digits_by_three) return number & ~inner;
  const uint64_t carried = carry_.number;
  const uint64_t previous = number << 1 | carried >> 63;
  uint64_t found = number & ~previous;
  // Bits that end four digits.
  const uint64_t fourth =
      number & previous & (number << 2 | carried >> 62) & (number << 3 | carried >> 61);
  if (__builtin_expect(fourth != 0, 0)) {
    uint64_t next = (found << 3 | carry_.digit_starts >> 61) & fourth;
    while (next) {
      found |= next;
      next = next << 3 & fourth;
    }
  }
  carry_.digit_starts = found;
  return found;
}

// Of `candidates`, `gaps` (white space but newlines) right after a newline, those with no other
// newline in the same run of white space: there the pre-token that ends with the newline ends.
template <SchemeId scheme, class Simd>
uint64_t BlockScanner<scheme, Simd>::starts_after_newlines(uint64_t candidates, uint64_t gaps,
                                                           const BlockMasks& masks,
                                                           size_t at) const {
  // Adding moves each candidate to the end of its run of gaps; ends and candidates correspond in
  // their order, but for the last run, which may go on in the next block.
  const uint64_t ends = (gaps + candidates) & ~gaps;
  const uint64_t newline = masks.newline | (Traits::space_to_end ? masks.beyond : 0);
  uint64_t found = candidates & ~Simd::deposit(Simd::extract(newline, ends), candidates);
  if (gaps + candidates < gaps) {
    size_t next = at + kBlock + spilled_.size;
    uint8_t classes = 0;
    while (next < view_.length) {
      const Char character = view_.at(next);
      classes = character.classes;
      if (!(classes & kSpace) || (classes & kNewline)) break;
      next += character.size;
    }
    const bool more = next < view_.length ? classes & kNewline : Traits::space_to_end;
    if (more) found &= ~(uint64_t{1} << highest_bit(candidates));
  }
  return found;
}

template <SchemeId scheme, class Simd>
uint64_t BlockScanner<scheme, Simd>::cl100k_starts(const BlockMasks& masks, size_t at,
                                                   uint64_t& doubt) {
  const uint64_t letter = masks.letter;
  const uint64_t space = masks.space;
  const uint64_t gap = space & ~masks.newline & ~masks.beyond;
  const uint64_t other = ~(letter | masks.number | space);
  const uint64_t other_before = before(other, carry_.other);
  doubt |= masks.doubt;
  const uint64_t absorbed = find_absorbed(masks, other, doubt);
  const uint64_t absorbed_before = before(absorbed, carry_.absorbed);
  uint64_t punctuation = other & ~other_before;
  if (Traits::o200k) punctuation = other & ~absorbed & (~other_before | absorbed_before);
  punctuation &= ~before(masks.blank, carry_.blank) & ~masks.inner;
  // One character of punctuation, or a gap, is the first of the word after it.
  uint64_t lone = punctuation;
  if (__builtin_expect(masks.inner != 0, 0)) {
    for (int i = 0; i < 3; ++i) lone |= before(lone, carry_.lone) & masks.inner;
  }
  uint64_t starts = letter & ~before(letter | gap | lone,
                                     carry_.letter | carry_.gap | carry_.lone);
  starts |= punctuation | digit_starts(masks.number, masks.inner);
  starts |= space & ~absorbed & ~(before(space, carry_.space) & ~absorbed_before);
  starts |= last_spaces(gap, masks, at);
  const uint64_t after_newline = gap & before(masks.newline, carry_.newline) & ~starts;
  if (after_newline) starts |= starts_after_newlines(after_newline, gap, masks, at);
  uint64_t apostrophes = masks.apostrophe & starts;
  if (Traits::o200k) {
    const uint64_t caseless = letter & ~(masks.upper | masks.lower);
    starts |= masks.upper & before(masks.lower, carry_.lower);
    doubt |= masks.upper & before(caseless, carry_.caseless);
    doubt |= masks.mark & ~masks.inner & ~before(letter, carry_.letter);
    apostrophes &= before(letter, carry_.letter);
    carry_.lower = masks.lower;
    carry_.caseless = caseless;
    carry_.slash = masks.slash;
  }
  starts &= ~masks.inner;
  carry_.letter = letter;
  carry_.number = masks.number;
  carry_.space = space;
  carry_.gap = gap;
  carry_.newline = masks.newline;
  carry_.blank = masks.blank;
  carry_.other = other;
  carry_.absorbed = absorbed;
  carry_.lone = lone;
  return with_contractions(starts, apostrophes, at);
}

template <SchemeId scheme, class Simd>
ScanResult block_scan(const ScanText& document, size_t position, uint32_t* ends,
                      size_t capacity) {
  if (capacity <= kBlock) return scalar_scans()[scheme](document, position, ends, capacity);
  return BlockScanner<scheme, Simd>(document).scan(position, ends, capacity);
}

// superbpe's pre-tokens are long, lines for the most part, and what encodes them takes far longer
// than the scalar scan.
inline ScanResult superbpe_scan(const ScanText& document, size_t position, uint32_t* ends,
                                size_t capacity) {
  return scalar_scans()[SchemeId::superbpe](document, position, ends, capacity);
}

template <class Simd>
constexpr ScanFunctions block_scans() {
  return {{block_scan<SchemeId::gpt2, Simd>, block_scan<SchemeId::cl100k, Simd>,
           block_scan<SchemeId::o200k, Simd>, block_scan<SchemeId::llama3, Simd>,
           block_scan<SchemeId::qwen2, Simd>, block_scan<SchemeId::whitespace, Simd>,
           superbpe_scan}};
}

}  // namespace
}  // namespace beam_bpe
