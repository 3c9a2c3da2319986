#include "scan/class_tables.h"

#include <cstring>
#include <map>
#include <string>

#include "scan/unicode_tables.h"

namespace beam_bpe {
namespace {

uint8_t class_bits(bpe::UnicodeClass unicode_class) {
  switch (unicode_class) {
    case bpe::UnicodeClass::kLu:
    case bpe::UnicodeClass::kLt:
      return kLetter | kUpper;
    case bpe::UnicodeClass::kLl:
      return kLetter | kLower;
    case bpe::UnicodeClass::kLm:
    case bpe::UnicodeClass::kLo:
      return kLetter;
    case bpe::UnicodeClass::kM:
      return kMark;
    case bpe::UnicodeClass::kN:
      return kNumber;
    case bpe::UnicodeClass::kS:
      return kSpace;
    case bpe::UnicodeClass::kOther:
      break;
  }
  return 0;
}

const ClassTables& build_tables() {
  std::string classes(kCodePoints, '\0');
  for (const bpe::UnicodeRange& range : bpe::kUnicodeRanges) {
    const auto bits = static_cast<char>(class_bits(range.unicode_class));
    std::memset(&classes[range.first], bits, range.last - range.first + 1);
  }
  classes['\r'] |= kNewline;
  classes['\n'] |= kNewline;
  // Lives as long as the process: scans may run while static objects are destroyed.
  return *make_class_tables(classes).release();
}

}  // namespace

std::unique_ptr<const ClassTables> make_class_tables(const std::string& classes) {
  constexpr size_t kBlock = size_t{1} << ClassTables::kBlockBits;
  auto tables = std::make_unique<ClassTables>();
  std::memcpy(tables->ascii, classes.data(), sizeof tables->ascii);
  std::map<std::string, uint16_t> known;
  for (size_t start = 0; start < classes.size(); start += kBlock) {
    std::string block = classes.substr(start, kBlock);
    const auto [found, is_new] = known.emplace(block, static_cast<uint16_t>(known.size()));
    if (is_new) tables->storage += block;
    tables->block_of[start / kBlock] = found->second;
  }
  tables->blocks = reinterpret_cast<const uint8_t(*)[kBlock]>(tables->storage.data());
  return tables;
}

const ClassTables& kClassTables = build_tables();

}  // namespace beam_bpe
