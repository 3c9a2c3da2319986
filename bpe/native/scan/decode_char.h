// One character of a text that may hold invalid UTF-8, and its class.
//
// Everything here has internal linkage: the file is compiled into translation units of several
// instruction sets, and the linker must not merge their copies.
#pragma once

#include <cstddef>
#include <cstdint>

#include "scan/class_tables.h"

namespace beam_bpe {
namespace {

struct Char {
  uint8_t classes;  // bits of CharClass
  uint8_t size;     // bytes
};

inline bool is_continuation(uint8_t byte) { return (byte & 0xC0) == 0x80; }

// Well-formed sequences are those of the Unicode standard (table 3-7): no overlong forms, no
// surrogates, nothing above U+10FFFF. Any other byte is a character of its own, class "other".
inline Char decode_multibyte(const ClassTables& tables, const uint8_t* text, size_t left) {
  const uint8_t lead = text[0];
  if (lead < 0xC2 || left < 2 || !is_continuation(text[1])) return {0, 1};
  const uint32_t second = text[1] & 0x3Fu;
  if (lead < 0xE0) {
    return {tables.of_code_point((lead & 0x1Fu) << 6 | second), 2};
  }
  if (left < 3 || !is_continuation(text[2])) return {0, 1};
  const uint32_t third = text[2] & 0x3Fu;
  if (lead < 0xF0) {
    const uint32_t code_point = (lead & 0x0Fu) << 12 | second << 6 | third;
    if (code_point < 0x800 || code_point - 0xD800 < 0x800) return {0, 1};
    return {tables.of_code_point(code_point), 3};
  }
  if (left < 4 || lead > 0xF4 || !is_continuation(text[3])) return {0, 1};
  const uint32_t code_point = (lead & 0x07u) << 18 | second << 12 | third << 6 | (text[3] & 0x3Fu);
  if (code_point - 0x10000 >= 0x100000) return {0, 1};
  return {tables.of_code_point(code_point), 4};
}

// left: bytes from `text` to the document's end, at least 1.
inline Char decode_char(const ClassTables& tables, const uint8_t* text, size_t left) {
  if (text[0] < 0x80) return {tables.ascii[text[0]], 1};
  return decode_multibyte(tables, text, left);
}

}  // namespace
}  // namespace beam_bpe
