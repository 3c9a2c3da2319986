#include "json_rows.h"

#include <cstring>

#include "memory/errors.h"
#include "scan/utf8.h"
#include "text_checks.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace beam_bpe {
namespace {

constexpr int kDeepest = 64;           // objects and lists within each other
constexpr int kLongestInteger = 1000;  // characters of an id: parsers draw the line elsewhere

bool is_digit(char c) { return c >= '0' && c <= '9'; }

// A quote, a backslash, or a control character, which strings must escape.
bool is_special(char c) { return c == '"' || c == '\\' || static_cast<uint8_t>(c) < 0x20; }

#if defined(__SSE2__)
// A bit for each of 16 bytes.
unsigned special_bits(__m128i bytes) {
  const __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(bytes, _mm_set1_epi8(0x1F)), bytes);
  const __m128i quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('"'));
  const __m128i escape = _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\\'));
  return static_cast<unsigned>(
      _mm_movemask_epi8(_mm_or_si128(control, _mm_or_si128(quote, escape))));
}
#endif

const char* find_special(const char* at, const char* end) {
#if defined(__SSE2__)
  for (; end - at >= 16; at += 16) {
    const unsigned found = special_bits(_mm_loadu_si128(reinterpret_cast<const __m128i*>(at)));
    if (found) return at + __builtin_ctz(found);
  }
#endif
  while (at < end && !is_special(*at)) ++at;
  return at;
}

// Four hexadecimal digits; -1 if they are not.
int32_t read_hex(const char* at) {
  int32_t value = 0;
  for (int i = 0; i < 4; ++i) {
    const char c = at[i];
    const int digit = is_digit(c)               ? c - '0'
                      : (c >= 'a' && c <= 'f') ? c - 'a' + 10
                      : (c >= 'A' && c <= 'F') ? c - 'A' + 10
                                                : -1;
    if (digit < 0) return -1;
    value = value << 4 | digit;
  }
  return value;
}

// One row. All functions return whether the row is usual so far, and leave `at_` after what they
// have read; the row is done with where one returns false.
class RowScanner {
 public:
  RowScanner(const JsonPath& text, const JsonPath& id, char* out) : text_(text), id_(id), out_(out) {}

  bool scan(std::string_view row, std::string& ids) {
    at_ = row.data();
    end_ = at_ + row.size();
    ids_ = &ids;
    text_seen_ = id_seen_ = 0;
    skip_space();
    if (!object(0, true, !id_.empty())) return false;
    skip_space();
    return at_ == end_ && text_seen_ == text_.size() && id_seen_ == id_.size();
  }

  char* out() const { return out_; }  // after the text of the rows so far

 private:
  void skip_space() {
    while (at_ < end_ && (*at_ == ' ' || *at_ == '\t' || *at_ == '\r')) ++at_;
  }

  bool take(char expected) {
    if (at_ == end_ || *at_ != expected) return false;
    ++at_;
    return true;
  }

  // in_text, in_id: whether the object is the one that holds what the path names at `level`.
  bool object(size_t level, bool in_text, bool in_id) {
    if (level >= kDeepest || !take('{')) return false;
    skip_space();
    if (take('}')) return true;
    do {
      skip_space();
      std::string_view key;
      if (!plain_string(&key)) return false;
      skip_space();
      if (!take(':')) return false;
      skip_space();
      if (!member(key, level, in_text, in_id)) return false;
      skip_space();
    } while (take(','));
    return take('}');
  }

  bool member(std::string_view key, size_t level, bool in_text, bool in_id) {
    const bool to_text = in_text && key == text_[level];
    const bool to_id = in_id && key == id_[level];
    // A name that is there twice has the last value for some and the first for others.
    if ((to_text && text_seen_ > level) || (to_id && id_seen_ > level)) return false;
    if (to_text) text_seen_ = level + 1;
    if (to_id) id_seen_ = level + 1;
    if (to_text && level + 1 == text_.size()) return text_string();
    if (to_id && level + 1 == id_.size()) return id_value();
    if (to_text || to_id) return object(level + 1, to_text, to_id);
    return value(level + 1);
  }

  bool value(size_t level) {
    if (at_ == end_) return false;
    switch (*at_) {
      case '{': return object(level, false, false);
      case '[': return list(level);
      case '"': return skip_string();
      case 't': return literal("true");
      case 'f': return literal("false");
      case 'n': return literal("null");
      default: return number();
    }
  }

  bool list(size_t level) {
    if (level >= kDeepest || !take('[')) return false;
    skip_space();
    if (take(']')) return true;
    do {
      skip_space();
      if (!value(level + 1)) return false;
      skip_space();
    } while (take(','));
    return take(']');
  }

  bool literal(std::string_view word) {
    if (static_cast<size_t>(end_ - at_) < word.size()) return false;
    if (std::string_view(at_, word.size()) != word) return false;
    at_ += word.size();
    return true;
  }

  bool digits() {
    if (at_ == end_ || !is_digit(*at_)) return false;
    while (at_ < end_ && is_digit(*at_)) ++at_;
    return true;
  }

  bool integer() {
    take('-');
    return take('0') || digits();
  }

  bool number() {
    if (!integer()) return false;
    if (take('.') && !digits()) return false;
    if (take('e') || take('E')) {
      if (!take('+')) take('-');
      return digits();
    }
    return true;
  }

  // A string without escapes.
  bool plain_string(std::string_view* found) {
    if (!take('"')) return false;
    const char* const start = at_;
    at_ = find_special(at_, end_);
    *found = {start, static_cast<size_t>(at_ - start)};
    return take('"');
  }

  bool skip_string() {
    if (!take('"')) return false;
    while (true) {
      at_ = find_special(at_, end_);
      if (take('"')) return true;
      char ignored[4];
      size_t size;
      if (!escape(ignored, &size)) return false;
    }
  }

  bool text_string() {
    if (!take('"')) return false;
    while (true) {
      copy_to_special();
      if (take('"')) return true;
      size_t size;
      if (!escape(out_, &size)) return false;
      out_ += size;
    }
  }

  // As `find_special`, copying what it passes over: texts of JSON have an escape in every line, and
  // what is looked at is in a register. What it writes too much is never more than what is read.
  void copy_to_special() {
#if defined(__SSE2__)
    for (; end_ - at_ >= 16; at_ += 16, out_ += 16) {
      const __m128i bytes = _mm_loadu_si128(reinterpret_cast<const __m128i*>(at_));
      _mm_storeu_si128(reinterpret_cast<__m128i*>(out_), bytes);
      const unsigned found = special_bits(bytes);
      if (found) {
        const int passed = __builtin_ctz(found);
        at_ += passed;
        out_ += passed;
        return;
      }
    }
#endif
    while (at_ < end_ && !is_special(*at_)) *out_++ = *at_++;
  }

  // Writes the character that an escape stands for: at most 4 bytes, fewer than the escape has.
  bool escape(char* out, size_t* size) {
    if (end_ - at_ < 2 || *at_ != '\\') return false;
    const char kind = at_[1];
    at_ += 2;
    *size = 1;
    switch (kind) {
      case '"': case '\\': case '/': *out = kind; return true;
      case 'b': *out = '\b'; return true;
      case 'f': *out = '\f'; return true;
      case 'n': *out = '\n'; return true;
      case 'r': *out = '\r'; return true;
      case 't': *out = '\t'; return true;
      case 'u': return unicode_escape(out, size);
      default: return false;
    }
  }

  bool unicode_escape(char* out, size_t* size) {
    if (end_ - at_ < 4) return false;
    const int32_t first = read_hex(at_);
    at_ += 4;
    if (first < 0 || (first >= 0xDC00 && first < 0xE000)) return false;
    auto code_point = static_cast<uint32_t>(first);
    if (first >= 0xD800 && first < 0xDC00) {
      if (end_ - at_ < 6 || at_[0] != '\\' || at_[1] != 'u') return false;
      const int32_t second = read_hex(at_ + 2);
      at_ += 6;
      if (second < 0xDC00 || second >= 0xE000) return false;
      code_point = 0x10000 + ((code_point - 0xD800) << 10) + static_cast<uint32_t>(second - 0xDC00);
    }
    *size = write_utf8(code_point, out);
    return true;
  }

  bool id_value() {
    if (at_ < end_ && *at_ == '"') {
      std::string_view found;
      if (!plain_string(&found)) return false;
      ids_->append(found);
      return true;
    }
    const char* const start = at_;
    if (!integer() || at_ - start > kLongestInteger) return false;
    const std::string_view found(start, static_cast<size_t>(at_ - start));
    if (found == "-0") return false;
    ids_->append(found);
    return true;
  }

  const JsonPath& text_;
  const JsonPath& id_;
  char* out_;
  const char* at_ = nullptr;
  const char* end_ = nullptr;
  std::string* ids_ = nullptr;
  size_t text_seen_ = 0;  // names of the path that were there
  size_t id_seen_ = 0;
};

void check_rows(std::string_view data, const Int64Column& starts, const Int64Column& ends) {
  int64_t position = 0;
  bool ascend = starts.length == ends.length;
  for (int64_t i = 0; ascend && i < starts.length; ++i) {
    ascend = position <= starts.values[i] && starts.values[i] <= ends.values[i];
    position = ends.values[i];
  }
  if (!ascend || position > static_cast<int64_t>(data.size())) {
    throw InputError("starts and ends must ascend within the data");
  }
}

}  // namespace

std::optional<JsonRows> scan_json_rows(std::string_view data, const Int64Column& starts,
                                       const Int64Column& ends, const JsonPath& text,
                                       const JsonPath& id) {
  check_rows(data, starts, ends);
  if (text.empty()) throw InputError("the path of the text is empty");
  JsonRows rows;
  // No text is longer than what it is written as.
  rows.text.reserve(data.size() + 1);
  rows.text_offsets.reserve(static_cast<size_t>(starts.length) + 1);
  rows.text_offsets.push_back(0);
  rows.id_offsets.push_back(0);
  RowScanner scanner(text, id, rows.text.data());
  for (int64_t i = 0; i < starts.length; ++i) {
    const auto start = static_cast<size_t>(starts.values[i]);
    const auto size = static_cast<size_t>(ends.values[i]) - start;
    const std::string_view row = data.substr(start, size);
    if (!is_utf8(row) || !scanner.scan(row, rows.ids)) {
      rows.text.mark_written(static_cast<size_t>(scanner.out() - rows.text.data()));
      return std::nullopt;
    }
    rows.text_offsets.push_back(scanner.out() - rows.text.data());
    rows.id_offsets.push_back(static_cast<int64_t>(rows.ids.size()));
  }
  rows.text.mark_written(static_cast<size_t>(rows.text_offsets.back()));
  return rows;
}

std::vector<OwnedColumn> to_columns(JsonRows rows, bool with_ids) {
  const auto count = static_cast<int64_t>(rows.text_offsets.size()) - 1;
  const auto size = static_cast<size_t>(rows.text_offsets.back());
  // Texts that are little of their rows would keep the pages of all of them in memory.
  OwnedBuffer text = 4 * size < rows.text.size() ? own_buffer(std::string(rows.text.data(), size))
                                                 : own_buffer(std::move(rows.text));
  std::vector<OwnedColumn> columns;
  columns.push_back({"Z", count, {}, {}});
  columns.back().buffers.push_back(own_buffer(std::move(rows.text_offsets)));
  columns.back().buffers.push_back(std::move(text));
  if (!with_ids) return columns;
  columns.push_back({"U", count, {}, {}});
  columns.back().buffers.push_back(own_buffer(std::move(rows.id_offsets)));
  columns.back().buffers.push_back(own_buffer(std::move(rows.ids)));
  return columns;
}

}  // namespace beam_bpe
