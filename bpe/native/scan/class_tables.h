// Character classes by byte and by code point, built once from the Unicode ranges.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>

namespace beam_bpe {

inline constexpr size_t kCodePoints = 0x110000;

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
  uint16_t block_of[kCodePoints >> kBlockBits];
  const uint8_t (*blocks)[1 << kBlockBits];
  std::string storage;  // of the blocks

  uint8_t of_code_point(uint32_t code_point) const {
    return blocks[block_of[code_point >> kBlockBits]][code_point & ((1u << kBlockBits) - 1)];
  }
};

// Tables of classes by code point; `classes` has kCodePoints bytes.
std::unique_ptr<const ClassTables> make_class_tables(const std::string& classes);

// Those of CharClass.
extern const ClassTables& kClassTables;

}  // namespace beam_bpe
