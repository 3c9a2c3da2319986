// Character classes by byte and by code point, built once from the Unicode ranges.
#pragma once

#include <cstddef>
#include <cstdint>

namespace beam_bpe {

// What the patterns ask of a character; a character of class "other" has no bit.
enum CharClass : uint8_t {
  kLetter = 1,
  kNumber = 2,
  kSpace = 4,     // White_Space, \r and \n included
  kMark = 8,
  kUpper = 16,    // Lu, Lt: letters that o200k has in the first part of a word only
  kLower = 32,    // Ll: letters that o200k has in the second part only
  kNewline = 64,  // \r, \n
};

struct ClassTables {
  static constexpr unsigned kBlockBits = 6;

  uint8_t ascii[128];
  // Class of code point c: blocks[block_of[c >> kBlockBits]][c & 63], blocks shared where equal.
  uint16_t block_of[0x110000 >> kBlockBits];
  uint8_t (*blocks)[1 << kBlockBits];

  uint8_t of_code_point(uint32_t code_point) const {
    return blocks[block_of[code_point >> kBlockBits]][code_point & ((1u << kBlockBits) - 1)];
  }
};

extern const ClassTables& kClassTables;

}  // namespace beam_bpe
