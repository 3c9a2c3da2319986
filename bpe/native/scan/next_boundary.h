// The schemes, one pre-token at a time: the scalar scan, and what the vector scans fall back to.
//
// Internal linkage throughout, see decode_char.h.
#pragma once

#include <cstddef>
#include <cstdint>

#include "scan/decode_char.h"
#include "scan/scan.h"

namespace beam_bpe {
namespace {

// A document and the class tables; the methods walk over characters from a byte position.
struct TextView {
  const uint8_t* text;
  size_t length;
  const ClassTables& tables;

  Char at(size_t position) const {
    return decode_char(tables, text + position, length - position);
  }

  // Class bits of the character at `position`; `missing` at the document's end.
  uint8_t classes_at(size_t position, uint8_t missing) const {
    return position < length ? at(position).classes : missing;
  }

  // End of the run of characters that have a bit of `wanted` (or, with `others`, none).
  template <uint8_t wanted, bool others = false>
  size_t skip(size_t position) const {
    while (position < length) {
      const Char next = at(position);
      if (((next.classes & wanted) != 0) == others) break;
      position += next.size;
    }
    return position;
  }

  size_t skip_newlines(size_t position) const {
    while (position < length && (text[position] == '\r' || text[position] == '\n')) ++position;
    return position;
  }
};

inline uint8_t ascii_lower(uint8_t byte) { return byte >= 'A' && byte <= 'Z' ? byte | 0x20 : byte; }

// Bytes of the contraction at `position` ('s 't 'm 'd 'll 've 're), 0 if there is none. Where case
// is ignored, U+017F (long s, C5 BF) is an s.
template <bool ignore_case>
size_t contraction_size(const TextView& view, size_t position) {
  const size_t left = view.length - position;
  if (left < 2 || view.text[position] != '\'') return 0;
  const uint8_t* after = view.text + position + 1;
  const uint8_t first = ignore_case ? ascii_lower(after[0]) : after[0];
  if (first == 's' || first == 't' || first == 'm' || first == 'd') return 2;
  if (left < 3) return 0;
  const uint8_t second = ignore_case ? ascii_lower(after[1]) : after[1];
  if (first == 'l' && second == 'l') return 3;
  if ((first == 'v' || first == 'r') && second == 'e') return 3;
  if (ignore_case && after[0] == 0xC5 && after[1] == 0xBF) return 3;
  return 0;
}

// End of the pre-token in a run of white space that no other alternative takes:
// `\s*[\r\n]` if `newlines`, `\s+(?!\S)`, `\s`; with `to_end` `\s++$` before all of them.
template <bool newlines, bool to_end>
size_t white_space_end(const TextView& view, size_t position) {
  size_t last = position;       // start of the run's last character
  size_t after_newline = 0;     // end of its last newline
  size_t end = position;
  while (end < view.length) {
    const Char next = view.at(end);
    if (!(next.classes & kSpace)) break;
    last = end;
    end += next.size;
    if (next.classes & kNewline) after_newline = end;
  }
  if (to_end && end == view.length) return end;
  if (newlines && after_newline) return after_newline;
  if (end == view.length || last == position) return end;
  return last;
}

inline size_t next_gpt2(const TextView& view, size_t position) {
  if (const size_t size = contraction_size<false>(view, position)) return position + size;
  Char first = view.at(position);
  size_t body = position;
  if (view.text[position] == ' ' && position + 1 < view.length) {
    const Char second = view.at(position + 1);
    if (!(second.classes & kSpace)) {
      first = second;
      body = position + 1;
    }
  }
  if (first.classes & kSpace) return white_space_end<false, true>(view, position);
  if (first.classes & kLetter) return view.skip<kLetter>(body + first.size);
  if (first.classes & kNumber) return view.skip<kNumber>(body + first.size);
  return view.skip<kLetter | kNumber | kSpace, true>(body + first.size);
}

// ` ?[^\s\p{L}\p{N}]++[\r\n]*+`, with slashes in the last part for o200k; 0 if it does not match.
template <bool slashes>
size_t punctuation_end(const TextView& view, size_t position) {
  const size_t body = position + (view.text[position] == ' ');
  if (view.classes_at(body, kSpace) & (kLetter | kNumber | kSpace)) return 0;
  size_t end = view.skip<kLetter | kNumber | kSpace, true>(body);
  while (end < view.length && (view.text[end] == '\r' || view.text[end] == '\n' ||
                               (slashes && view.text[end] == '/'))) {
    ++end;
  }
  return end;
}

template <size_t max_digits>
size_t number_end(const TextView& view, size_t position) {
  for (size_t digits = 0; digits < max_digits && position < view.length; ++digits) {
    const Char next = view.at(position);
    if (!(next.classes & kNumber)) break;
    position += next.size;
  }
  return position;
}

// cl100k, llama3 and qwen2: they differ in digits and in white space at the document's end.
template <size_t max_digits, bool to_end>
size_t next_cl100k(const TextView& view, size_t position) {
  if (const size_t size = contraction_size<true>(view, position)) return position + size;
  const Char first = view.at(position);
  if (first.classes & kLetter) return view.skip<kLetter>(position + first.size);
  if (first.classes & kNumber) return number_end<max_digits>(view, position);
  if (!(first.classes & kNewline) &&
      (view.classes_at(position + first.size, 0) & kLetter)) {
    return view.skip<kLetter>(position + first.size);
  }
  if (const size_t end = punctuation_end<false>(view, position)) return end;
  return white_space_end<true, to_end>(view, position);
}

// End of the word of o200k whose first letter or mark is at `position`, without contraction.
//
// With U = upper or caseless, V = lower or caseless, the alternatives `U*V+` and `U+V*`: a run of
// U takes the lower-case run that follows it; without one it ends after its last caseless
// character, which then is the V+; without one of those either it is a whole run of upper case.
inline size_t o200k_word_end(const TextView& view, size_t position) {
  size_t after_caseless = 0;
  while (position < view.length) {
    const Char next = view.at(position);
    if (!(next.classes & (kLetter | kMark))) break;
    if (next.classes & kLower) {
      while (position < view.length) {
        const Char inner = view.at(position);
        if (!(inner.classes & (kLetter | kMark)) || (inner.classes & kUpper)) break;
        position += inner.size;
      }
      return position;
    }
    position += next.size;
    if (!(next.classes & kUpper)) after_caseless = position;
  }
  return after_caseless ? after_caseless : position;
}

inline size_t next_o200k(const TextView& view, size_t position) {
  const Char first = view.at(position);
  size_t word = view.length;
  if (first.classes & (kLetter | kMark)) {
    // A mark may also be the optional first character, which makes the same pre-token.
    word = position;
  } else if (!(first.classes & (kNumber | kNewline)) &&
             (view.classes_at(position + first.size, 0) & (kLetter | kMark))) {
    word = position + first.size;
  }
  if (word < view.length) {
    const size_t end = o200k_word_end(view, word);
    return end + (end < view.length ? contraction_size<true>(view, end) : 0);
  }
  if (first.classes & kNumber) return number_end<3>(view, position);
  if (const size_t end = punctuation_end<true>(view, position)) return end;
  return white_space_end<true, false>(view, position);
}

inline size_t next_whitespace(const TextView& view, size_t position) {
  if (view.at(position).classes & kSpace) return view.skip<kSpace>(position);
  return view.skip<kSpace, true>(position);
}

// Whether two characters stand at `position` that are neither letters, numbers nor white space.
inline bool two_others(const TextView& view, size_t position) {
  constexpr uint8_t kNamed = kLetter | kNumber | kSpace;
  if (position >= view.length) return false;
  const Char first = view.at(position);
  return !(first.classes & kNamed) &&
         !(view.classes_at(position + first.size, kSpace) & kNamed);
}

// superbpe's ` ?[^\s\p{L}\p{N}]{2,}[\r/]*\n?`; `body` is after the blank, and two_others.
inline size_t superbpe_marks_end(const TextView& view, size_t body) {
  size_t end = view.skip<kLetter | kNumber | kSpace, true>(body);
  while (end < view.length && (view.text[end] == '\r' || view.text[end] == '/')) ++end;
  return end + (end < view.length && view.text[end] == '\n');
}

// superbpe's ` +(?!\S)` at a blank: the whole run at white space or the document's end, else all
// but its last; `position` if it does not match.
inline size_t superbpe_blanks_end(const TextView& view, size_t position) {
  size_t end = position;
  while (end < view.length && view.text[end] == ' ') ++end;
  return end - !(view.classes_at(end, kSpace) & kSpace);
}

// The rest of a line, as far as nothing stands there that superbpe keeps apart. What it looks for
// ahead of a blank or a mark is within the next two characters, however long the runs are.
inline size_t superbpe_line_end(const TextView& view, size_t position) {
  while (position < view.length) {
    const Char next = view.at(position);
    const uint8_t byte = view.text[position];
    if (next.classes & kLetter) {
      position = view.skip<kLetter>(position + next.size);
      continue;
    }
    if (next.classes & kNumber) break;
    if (byte == '\n') return position + 1;
    if (byte == ' ' && (view.classes_at(position + 1, kSpace) & kSpace)) break;
    if (byte == ' ' || !(next.classes & kSpace)) {
      if (two_others(view, position + (byte == ' '))) break;
    }
    position += next.size;
  }
  return position;
}

inline size_t next_superbpe(const TextView& view, size_t position) {
  if (view.at(position).classes & kNumber) return number_end<3>(view, position);
  const bool blank = view.text[position] == ' ';
  if (two_others(view, position + blank)) return superbpe_marks_end(view, position + blank);
  if (blank) {
    const size_t end = superbpe_blanks_end(view, position);
    if (end != position) return end;
  }
  return superbpe_line_end(view, position);
}

// End of the pre-token that starts at `position` < length.
template <SchemeId scheme>
inline size_t next_boundary(const TextView& view, size_t position) {
  switch (scheme) {
    case SchemeId::gpt2:
      return next_gpt2(view, position);
    case SchemeId::cl100k:
      return next_cl100k<3, true>(view, position);
    case SchemeId::o200k:
      return next_o200k(view, position);
    case SchemeId::llama3:
      return next_cl100k<3, false>(view, position);
    case SchemeId::qwen2:
      return next_cl100k<1, false>(view, position);
    case SchemeId::superbpe:
      return next_superbpe(view, position);
    case SchemeId::whitespace:
      break;
  }
  return next_whitespace(view, position);
}

}  // namespace
}  // namespace beam_bpe
