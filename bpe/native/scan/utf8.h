// Characters of UTF-8: which bytes are one, by the Unicode standard's table 3-7, and how to write it.
//
// The scanners have the same rules in decode_char.h, which goes on to the class of a character.
#pragma once

#include <cstddef>
#include <cstdint>

namespace beam_bpe {

// Bytes of the character at `text`, which is not ASCII; 0 if it is malformed. left: bytes from
// `text` to the end, at least 1.
inline size_t multibyte_size(const uint8_t* text, size_t left) {
  const uint8_t lead = text[0];
  const size_t size = lead < 0xC2 ? 0 : lead < 0xE0 ? 2 : lead < 0xF0 ? 3 : lead < 0xF5 ? 4 : 0;
  if (size == 0 || left < size) return 0;
  // After four of the leads, some second bytes would be overlong, surrogates or too large.
  const uint8_t low = lead == 0xE0 ? 0xA0 : lead == 0xF0 ? 0x90 : 0x80;
  const uint8_t high = lead == 0xED ? 0x9F : lead == 0xF4 ? 0x8F : 0xBF;
  if (text[1] < low || text[1] > high) return 0;
  for (size_t i = 2; i < size; ++i) {
    if ((text[i] & 0xC0) != 0x80) return 0;
  }
  return size;
}

// Writes a code point that is no surrogate; `out` has room for 4 bytes. Returns how many it took.
inline size_t write_utf8(uint32_t code_point, char* out) {
  const auto tail = [code_point](unsigned shift) {
    return static_cast<char>(0x80 | (code_point >> shift & 0x3F));
  };
  if (code_point < 0x80) {
    out[0] = static_cast<char>(code_point);
    return 1;
  }
  if (code_point < 0x800) {
    out[0] = static_cast<char>(0xC0 | code_point >> 6);
    out[1] = tail(0);
    return 2;
  }
  if (code_point < 0x10000) {
    out[0] = static_cast<char>(0xE0 | code_point >> 12);
    out[1] = tail(6);
    out[2] = tail(0);
    return 3;
  }
  out[0] = static_cast<char>(0xF0 | code_point >> 18);
  out[1] = tail(12);
  out[2] = tail(6);
  out[3] = tail(0);
  return 4;
}

}  // namespace beam_bpe
