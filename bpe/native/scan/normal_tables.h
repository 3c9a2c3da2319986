// What one normal form asks about code points, and the canonical algorithms over them.
#pragma once

#include <array>
#include <cstdint>
#include <unordered_map>
#include <vector>

namespace beam_bpe {

// What stands for an invalid byte is this plus the byte: a starter without properties.
constexpr uint32_t kInvalidByte = 0x110000;

struct NormalProperty {
  uint32_t start = 0;  // of the full decomposition; see NormalTables::append_decomposed
  uint8_t size = 0;    // its code points; 0: the code point itself
  uint8_t combining_class = 0;
  bool is_quick = true;     // stays as it is wherever it stands, if the classes are in order
  bool is_boundary = true;  // what precedes it is normalized without it
};

// Code points to values, in blocks; most blocks hold nothing but the default.
template <class Value>
class BlockTable {
 public:
  BlockTable() : blocks_(1) {}
  const Value& operator[](uint32_t code_point) const {
    return blocks_[block_of_[code_point / kBlock]][code_point % kBlock];
  }
  Value& at(uint32_t code_point) {
    uint16_t& block = block_of_[code_point / kBlock];
    if (block == 0) {
      block = static_cast<uint16_t>(blocks_.size());
      blocks_.emplace_back();
    }
    return blocks_[block][code_point % kBlock];
  }

 private:
  static constexpr uint32_t kBlock = 128;
  std::vector<std::array<Value, kBlock>> blocks_;
  std::array<uint16_t, kInvalidByte / kBlock + 2> block_of_{};
};

// Tables of a normal form, not of lower case.
class NormalTables {
 public:
  // is_latest: of Unicode 16.0, else of 9.0.
  NormalTables(bool composes, bool is_compatibility, bool is_latest);

  const NormalProperty& operator[](uint32_t code_point) const { return properties_[code_point]; }

  void append_decomposed(uint32_t code_point, std::vector<uint32_t>& code_points) const;

  // Sorts marks by their classes, and composes if the form does.
  void arrange(std::vector<uint32_t>& code_points) const;

 private:
  using Steps = std::unordered_map<uint32_t, std::vector<uint32_t>>;

  void set_decomposition(uint32_t code_point, const Steps& steps);
  void set_composites(const Steps& canonical, bool is_latest);
  void set_flags(const std::vector<uint32_t>& code_points);
  void order(std::vector<uint32_t>& code_points) const;
  void compose(std::vector<uint32_t>& code_points) const;
  uint32_t composite_of(uint32_t first, uint32_t second) const;

  bool composes_;
  BlockTable<NormalProperty> properties_;
  std::vector<uint32_t> decomposed_;
  std::unordered_map<uint64_t, uint32_t> composites_;
};

}  // namespace beam_bpe
