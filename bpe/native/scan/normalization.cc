#include "scan/normalization.h"

#include <array>
#include <cstring>
#include <memory>
#include <mutex>
#include <utility>

#include "memory/errors.h"
#include "scan/normal_tables.h"
#include "scan/normalization_tables.h"
#include "scan/utf8.h"

namespace beam_bpe {
namespace {

constexpr std::array<std::pair<std::string_view, NormalForm>, 5> kForms = {{
    {"NFC", NormalForm::kNfc},
    {"NFD", NormalForm::kNfd},
    {"NFKC", NormalForm::kNfkc},
    {"NFKD", NormalForm::kNfkd},
    {"Lowercase", NormalForm::kLowercase},
}};

struct CodePoint {
  uint32_t value;  // kInvalidByte plus the byte for one that is not valid
  uint32_t size;   // bytes
};

CodePoint decode(std::string_view text, size_t at) {
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data()) + at;
  if (bytes[0] < 0x80) return {bytes[0], 1};
  const size_t size = multibyte_size(bytes, text.size() - at);
  if (size == 0) return {kInvalidByte + bytes[0], 1};
  uint32_t value = bytes[0] & (0x7Fu >> size);
  for (size_t i = 1; i < size; ++i) value = value << 6 | (bytes[i] & 0x3Fu);
  return {value, static_cast<uint32_t>(size)};
}

void append(uint32_t value, std::string& text) {
  if (value >= kInvalidByte) {
    text.push_back(static_cast<char>(value - kInvalidByte));
    return;
  }
  char character[4];
  text.append(character, write_utf8(value, character));
}

// Where the ASCII bytes from `at` on end.
size_t skip_ascii(std::string_view text, size_t at) {
  uint64_t word = 0;
  while (text.size() - at >= sizeof(word)) {
    std::memcpy(&word, text.data() + at, sizeof(word));
    if ((word & 0x8080808080808080u) != 0) break;
    at += sizeof(word);
  }
  while (at < text.size() && static_cast<uint8_t>(text[at]) < 0x80) ++at;
  return at;
}

// A part of a text that does not have the normal form. It can be normalized by itself: nothing
// before or after it changes what it becomes.
struct Part {
  size_t start;
  size_t end;
};

// The first such part from `at` on, where a boundary is; empty at the text's end if there is none.
Part find_part(const NormalTables& tables, std::string_view text, size_t at) {
  size_t boundary = at;
  uint8_t last_class = 0;
  bool is_quick = true;
  while (at < text.size()) {
    const CodePoint next = decode(text, at);
    const NormalProperty& property = tables[next.value];
    if (property.is_boundary) {
      if (!is_quick) return {boundary, at};
      boundary = at;
    }
    const bool in_order = property.combining_class == 0 || last_class <= property.combining_class;
    is_quick = is_quick && property.is_quick && in_order;
    last_class = property.combining_class;
    at += next.size;
    // An ASCII character is a boundary and stays; the last may be composed with what follows.
    if (is_quick && property.is_boundary && at < text.size()) {
      const size_t end = skip_ascii(text, at);
      if (end > at) boundary = end - 1;
      at = end;
    }
  }
  return is_quick ? Part{text.size(), text.size()} : Part{boundary, text.size()};
}

std::optional<std::string> normalize_to_form(const NormalTables& tables, std::string_view text) {
  const size_t ascii = skip_ascii(text, 0);
  if (ascii == text.size()) return std::nullopt;
  Part part = find_part(tables, text, ascii > 0 ? ascii - 1 : 0);
  if (part.start == text.size()) return std::nullopt;
  std::string normalized;
  std::vector<uint32_t> code_points;
  size_t done = 0;
  while (part.start < text.size()) {
    normalized.append(text, done, part.start - done);
    code_points.clear();
    for (size_t at = part.start; at < part.end;) {
      const CodePoint next = decode(text, at);
      tables.append_decomposed(next.value, code_points);
      at += next.size;
    }
    tables.arrange(code_points);
    for (const uint32_t code_point : code_points) append(code_point, normalized);
    done = part.end;
    part = find_part(tables, text, done);
  }
  return normalized.append(text, done);
}

const BlockTable<int32_t>& lower_distances() {
  static const BlockTable<int32_t> table = [] {
    BlockTable<int32_t> distances;
    for (const LowerRange& range : kLowerRanges) {
      for (uint32_t i = range.first; i <= range.last; ++i) distances.at(i) = range.value;
    }
    return distances;
  }();
  return table;
}

std::optional<std::string> lower(std::string_view text) {
  constexpr uint32_t kDottedI = 0x130;  // becomes i and a dot above
  const BlockTable<int32_t>& distances = lower_distances();
  std::string lowered;
  size_t done = 0;
  for (size_t at = 0; at < text.size();) {
    const CodePoint next = decode(text, at);
    const int32_t distance = distances[next.value];
    const size_t start = at;
    at += next.size;
    if (distance == 0 && next.value != kDottedI) continue;
    lowered.append(text, done, start - done);
    done = at;
    if (next.value == kDottedI) {
      lowered.append("i\xCC\x87");
    } else {
      append(next.value + static_cast<uint32_t>(distance), lowered);
    }
  }
  if (done == 0) return std::nullopt;
  return lowered.append(text, done);
}

const NormalTables& tables_of(Normalization how) {
  const auto make = [](NormalForm form, bool is_latest) {
    const bool composes = form == NormalForm::kNfc || form == NormalForm::kNfkc;
    const bool is_compatibility = form == NormalForm::kNfkc || form == NormalForm::kNfkd;
    return NormalTables(composes, is_compatibility, is_latest);
  };
  static std::array<std::array<std::unique_ptr<const NormalTables>, 2>, 4> made;
  static std::array<std::array<std::once_flag, 2>, 4> once;
  const auto form = static_cast<size_t>(how.form);
  std::call_once(once[form][how.is_latest], [&] {
    made[form][how.is_latest] = std::make_unique<const NormalTables>(make(how.form, how.is_latest));
  });
  return *made[form][how.is_latest];
}

}  // namespace

NormalForm parse_form(std::string_view name) {
  for (const auto& [known, form] : kForms) {
    if (known == name) return form;
  }
  throw SettingsError("normalizer '" + std::string(name) + "' is not known");
}

std::optional<std::string> normalize(std::string_view text, Normalization how) {
  if (how.form == NormalForm::kLowercase) return lower(text);
  return normalize_to_form(tables_of(how), text);
}

std::optional<OwnedColumn> normalize_documents(const BinaryColumn& texts, Normalization how) {
  std::string data;
  std::vector<int64_t> offsets;
  for (int64_t i = 0; i < texts.size(); ++i) {
    const std::optional<std::string> normalized = normalize(texts[i], how);
    if (normalized && offsets.empty()) {
      // The first that changes: those before it stay.
      offsets.reserve(static_cast<size_t>(texts.size()) + 1);
      for (int64_t k = 0; k <= i; ++k) offsets.push_back(texts.start_of(k) - texts.start_of(0));
      data.reserve(static_cast<size_t>(texts.total_bytes()));
      for (int64_t k = 0; k < i; ++k) data.append(texts[k]);
    }
    if (offsets.empty()) continue;
    data.append(normalized ? std::string_view(*normalized) : texts[i]);
    offsets.push_back(static_cast<int64_t>(data.size()));
  }
  if (offsets.empty()) return std::nullopt;
  OwnedColumn column{"Z", texts.size(), {}, {}};
  column.buffers.push_back(own_buffer(std::move(offsets)));
  column.buffers.push_back(own_buffer(std::move(data)));
  return column;
}

}  // namespace beam_bpe
