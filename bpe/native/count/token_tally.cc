#include "count/token_tally.h"

#include <algorithm>
#include <iterator>
#include <string>
#include <utility>

#include "memory/errors.h"
#include "scan/class_tables.h"
#include "scan/utf8.h"

namespace beam_bpe {
namespace {

// First and last code point of the scripts that are written without spaces between words; the same
// as in bpe/insight/scripts.py.
constexpr uint32_t kUnspacedScripts[][2] = {
    {0x0E00, 0x0EFF},   {0x0F00, 0x0FFF},   {0x1000, 0x109F},  {0x1780, 0x17FF},
    {0x1950, 0x19DF},   {0x1A20, 0x1AAF},   {0x2E80, 0x2FDF},  {0x3005, 0x3007},
    {0x3021, 0x3029},   {0x3038, 0x303B},   {0x3040, 0x30FF},  {0x3100, 0x312F},
    {0x31A0, 0x31BF},   {0x31F0, 0x31FF},   {0x3400, 0x4DBF},  {0x4E00, 0x9FFF},
    {0xA9E0, 0xA9FF},   {0xAA60, 0xAA7F},   {0xF900, 0xFAFF},  {0xFF66, 0xFF9D},
    {0x1AFF0, 0x1B16F}, {0x20000, 0x3FFFF},
};

bool is_unspaced(uint32_t code_point) {
  if (code_point < kUnspacedScripts[0][0]) return false;
  const auto* range = std::upper_bound(
      std::begin(kUnspacedScripts), std::end(kUnspacedScripts), code_point,
      [](uint32_t point, const uint32_t(&each)[2]) { return point < each[0]; });
  return code_point <= (*(range - 1))[1];
}

uint32_t code_point_of(const uint8_t* text, size_t size) {
  const auto tail = [text](size_t i) { return text[i] & 0x3Fu; };
  if (size == 2) return (text[0] & 0x1Fu) << 6 | tail(1);
  if (size == 3) return (text[0] & 0x0Fu) << 12 | tail(1) << 6 | tail(2);
  return (text[0] & 0x07u) << 18 | tail(1) << 12 | tail(2) << 6 | tail(3);
}

template <class Value>
OwnedColumn column_of(const char* format, std::vector<Value> values) {
  OwnedColumn column;
  column.format = format;
  column.length = static_cast<int64_t>(values.size());
  column.buffers.push_back(own_buffer(std::move(values)));
  return column;
}

}  // namespace

TokenTally::TokenTally(std::vector<int64_t> lengths, bool spells)
    : lengths_(std::move(lengths)), spells_(spells), last_document_(lengths_.size(), 0) {}

TokenTally::Group& TokenTally::group_of(int64_t number) {
  Group& group = groups_[number];
  if (group.counts.empty()) {
    group.counts.resize(lengths_.size());
    group.documents.resize(lengths_.size());
  }
  return group;
}

template <class Id>
void TokenTally::add_ids(const Id* ids, int64_t size, Group* group) {
  for (int64_t i = 0; i < size; ++i) {
    const size_t id = ids[i];
    if (id >= lengths_.size()) {
      throw InputError("id " + std::to_string(id) + " is none of the vocabulary");
    }
    ++group->counts[id];
    if (last_document_[id] != document_) {
      last_document_[id] = document_;
      ++group->documents[id];
    }
  }
}

template <class Id>
void TokenTally::measure(std::string_view text, const Id* ids, int64_t size,
                         int64_t* measures) const {
  const auto* bytes = reinterpret_cast<const uint8_t*>(text.data());
  const size_t end = text.size();
  int64_t chars = 0, unspaced = 0, words = 0, kept = 0;
  int64_t token = 0, token_start = 0;
  const auto end_word = [&](size_t start, size_t stop) {
    ++words;
    if (!spells_) return;
    const auto word_end = static_cast<int64_t>(stop);
    while (token < size && token_start + lengths_[ids[token]] < word_end) {
      token_start += lengths_[ids[token++]];
    }
    if (token == size || token_start + lengths_[ids[token]] != word_end) return;
    const auto first = static_cast<int64_t>(start);
    kept += token_start == first || (token_start == first - 1 && bytes[start - 1] == ' ');
  };
  size_t place = 0, word_start = 0;
  bool in_word = false;
  while (place < end) {
    size_t width = 1;
    bool space = false;
    if (bytes[place] < 0x80) {
      space = (kClassTables.ascii[bytes[place]] & kSpace) != 0;
    } else if (const size_t found = multibyte_size(bytes + place, end - place); found != 0) {
      width = found;
      const uint32_t code_point = code_point_of(bytes + place, width);
      space = (kClassTables.of_code_point(code_point) & kSpace) != 0;
      unspaced += is_unspaced(code_point);
    }
    if (space && in_word) end_word(word_start, place);
    if (!space && !in_word) word_start = place;
    in_word = !space;
    ++chars;
    place += width;
  }
  if (in_word) end_word(word_start, end);
  measures[kBytes] += static_cast<int64_t>(end);
  measures[kChars] += chars;
  measures[kUnspaced] += unspaced;
  measures[kWords] += words;
  measures[kKept] += kept;
  measures[kTokens] += size;
}

void TokenTally::add(const BinaryColumn& texts, const IdColumn& ids, const Int64Column& offsets,
                     const Int64Column& groups, const Int64Column& begins) {
  const int64_t rows = texts.size();
  if (offsets.length != rows + 1 || groups.length != rows || begins.length != rows) {
    throw InputError("texts, offsets, groups and begins are of different lengths");
  }
  for (int64_t row = 0; row < rows; ++row) {
    if (offsets.values[row] < 0 || offsets.values[row] > offsets.values[row + 1] ||
        offsets.values[row + 1] > ids.length) {
      throw InputError("offsets[" + std::to_string(row) + "] lies outside of the ids");
    }
  }
  ids.visit([&](const auto* values) {
    for (int64_t row = 0; row < rows; ++row) {
      Group& group = group_of(groups.values[row]);
      const auto* first = values + offsets.values[row];
      const int64_t size = offsets.values[row + 1] - offsets.values[row];
      if (begins.values[row] != 0) {
        ++document_;
        ++group.measures[kDocuments];
      }
      add_ids(first, size, &group);
      measure(texts[row], first, size, group.measures);
    }
  });
}

OwnedColumn TokenTally::current_ids() const {
  std::vector<uint32_t> ids;
  for (size_t id = 0; id < last_document_.size(); ++id) {
    if (last_document_[id] == document_) ids.push_back(static_cast<uint32_t>(id));
  }
  return column_of("I", std::move(ids));
}

std::vector<int64_t> TokenTally::sorted_groups() const {
  std::vector<int64_t> numbers;
  for (const auto& entry : groups_) numbers.push_back(entry.first);
  std::sort(numbers.begin(), numbers.end());
  return numbers;
}

std::vector<OwnedColumn> TokenTally::drain_counts() {
  std::vector<int64_t> groups, counts, documents;
  std::vector<uint32_t> ids;
  for (const int64_t number : sorted_groups()) {
    Group& group = groups_[number];
    for (size_t id = 0; id < group.counts.size(); ++id) {
      if (group.counts[id] == 0) continue;
      groups.push_back(number);
      ids.push_back(static_cast<uint32_t>(id));
      counts.push_back(group.counts[id]);
      documents.push_back(group.documents[id]);
    }
    group.counts = {};
    group.documents = {};
  }
  std::vector<OwnedColumn> columns;
  columns.push_back(column_of("l", std::move(groups)));
  columns.push_back(column_of("I", std::move(ids)));
  columns.push_back(column_of("l", std::move(counts)));
  columns.push_back(column_of("l", std::move(documents)));
  return columns;
}

std::vector<OwnedColumn> TokenTally::drain_measures() {
  const std::vector<int64_t> groups = sorted_groups();
  std::vector<OwnedColumn> columns;
  for (int measure = 0; measure < kMeasures; ++measure) {
    std::vector<int64_t> values;
    for (const int64_t number : groups) {
      values.push_back(std::exchange(groups_[number].measures[measure], 0));
    }
    columns.push_back(column_of("l", std::move(values)));
  }
  columns.insert(columns.begin(), column_of("l", groups));
  return columns;
}

int64_t TokenTally::memory_bytes() const {
  int64_t bytes = 0;
  for (const auto& entry : groups_) {
    bytes += static_cast<int64_t>(entry.second.counts.size() * 2 * sizeof(int64_t));
  }
  return bytes;
}

}  // namespace beam_bpe
