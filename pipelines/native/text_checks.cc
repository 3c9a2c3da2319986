#include "text_checks.h"

#include <algorithm>
#include <cstring>

#include "memory/errors.h"
#include "scan/utf8.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace beam_bpe {
namespace {

bool in_range(uint8_t byte, uint8_t low, uint8_t high) { return low <= byte && byte <= high; }

#if defined(__SSE2__)
__m128i load(const char* at) { return _mm_loadu_si128(reinterpret_cast<const __m128i*>(at)); }

unsigned equal_bits(const char* at, char byte) {
  return static_cast<unsigned>(_mm_movemask_epi8(_mm_cmpeq_epi8(load(at), _mm_set1_epi8(byte))));
}
#endif

// Bytes from `at` on that are ASCII for sure; some that are may be left.
size_t ascii_prefix(const char* at, size_t size) {
  size_t done = 0;
#if defined(__SSE2__)
  while (size - done >= 16 && _mm_movemask_epi8(load(at + done)) == 0) done += 16;
#endif
  while (done < size && static_cast<uint8_t>(at[done]) < 0x80) ++done;
  return done;
}

struct Kinds {
  bool high = false;  // a byte that is not ASCII
  bool nul = false;
  bool cr = false;
};

// Which of the bytes that ask for a closer look there are.
Kinds kinds_of(std::string_view text) {
  const char* at = text.data();
  const char* const end = at + text.size();
  Kinds found;
#if defined(__SSE2__)
  __m128i high = _mm_setzero_si128();
  __m128i nul = high;
  __m128i cr = high;
  for (; end - at >= 16; at += 16) {
    const __m128i bytes = load(at);
    high = _mm_or_si128(high, bytes);
    nul = _mm_or_si128(nul, _mm_cmpeq_epi8(bytes, _mm_setzero_si128()));
    cr = _mm_or_si128(cr, _mm_cmpeq_epi8(bytes, _mm_set1_epi8('\r')));
  }
  found = {_mm_movemask_epi8(high) != 0, _mm_movemask_epi8(nul) != 0, _mm_movemask_epi8(cr) != 0};
#endif
  for (; at < end; ++at) {
    found.high |= static_cast<uint8_t>(*at) >= 0x80;
    found.nul |= *at == '\0';
    found.cr |= *at == '\r';
  }
  return found;
}

// Bytes of the white space at the beginning of a text; 0 if there is none.
size_t white_space_size(std::string_view text) {
  const auto byte = [text](size_t i) {
    return i < text.size() ? static_cast<uint8_t>(text[i]) : uint8_t{0};
  };
  if (byte(0) == ' ' || in_range(byte(0), '\t', '\r')) return 1;
  switch (byte(0)) {
    case 0xC2: return byte(1) == 0x85 || byte(1) == 0xA0 ? 2 : 0;
    case 0xE1: return byte(1) == 0x9A && byte(2) == 0x80 ? 3 : 0;
    case 0xE2:
      if (byte(1) == 0x81) return byte(2) == 0x9F ? 3 : 0;
      if (byte(1) != 0x80) return 0;
      return in_range(byte(2), 0x80, 0x8A) || byte(2) == 0xA8 || byte(2) == 0xA9 || byte(2) == 0xAF
                 ? 3
                 : 0;
    case 0xE3: return byte(1) == 0x80 && byte(2) == 0x80 ? 3 : 0;
    default: return 0;
  }
}

bool is_white_space(std::string_view text) {
  while (!text.empty()) {
    const size_t size = white_space_size(text);
    if (size == 0) return false;
    text.remove_prefix(size);
  }
  return true;
}

void count_returns(std::string_view text, TextFeatures* features) {
  bool alone = false;
  bool before_feed = false;
  for (size_t i = text.find('\r'); i != text.npos; i = text.find('\r', i + 1)) {
    const bool is_pair = i + 1 < text.size() && text[i + 1] == '\n';
    (is_pair ? before_feed : alone) = true;
    if (alone && before_feed) break;
  }
  features->cr += alone;
  features->crlf += before_feed;
}

}  // namespace

bool is_utf8(std::string_view text) {
  const char* at = text.data();
  size_t left = text.size();
  while (true) {
    const size_t ascii = ascii_prefix(at, left);
    at += ascii;
    left -= ascii;
    if (left == 0) return true;
    // Where one is, more follow: other scripts need no look for ASCII after each character.
    while (left > 0 && static_cast<uint8_t>(*at) >= 0x80) {
      const size_t size = multibyte_size(reinterpret_cast<const uint8_t*>(at), left);
      if (size == 0) return false;
      at += size;
      left -= size;
    }
  }
}

std::vector<int64_t> find_byte(std::string_view data, char byte, size_t start) {
  std::vector<int64_t> found;
  size_t at = start;
#if defined(__SSE2__)
  for (; at + 64 <= data.size(); at += 64) {
    const char* const from = data.data() + at;
    uint64_t bits = equal_bits(from, byte) | static_cast<uint64_t>(equal_bits(from + 16, byte)) << 16 |
                    static_cast<uint64_t>(equal_bits(from + 32, byte)) << 32 |
                    static_cast<uint64_t>(equal_bits(from + 48, byte)) << 48;
    for (; bits != 0; bits &= bits - 1) {
      found.push_back(static_cast<int64_t>(at) + __builtin_ctzll(bits));
    }
  }
#endif
  for (; at < data.size(); ++at) {
    if (data[at] == byte) found.push_back(static_cast<int64_t>(at));
  }
  return found;
}

int64_t longest_string(std::string_view data) {
  int64_t longest = 0;
  size_t at = 0;
  while (data.size() - at >= 4) {
    uint32_t length = 0;
    for (size_t i = 4; i-- > 0;) length = length << 8 | static_cast<uint8_t>(data[at + i]);
    at += 4;
    if (length > data.size() - at) return -1;
    at += length;
    longest = std::max(longest, static_cast<int64_t>(length));
  }
  return at == data.size() ? longest : -1;
}

TextFeatures count_text_features(const BinaryColumn& texts, std::string_view whole) {
  if (static_cast<size_t>(texts.size()) != whole.size()) {
    throw InputError("there must be one mark for each text");
  }
  TextFeatures features;
  for (int64_t i = 0; i < texts.size(); ++i) {
    const std::string_view text = texts[i];
    const bool is_whole = whole[static_cast<size_t>(i)] != 0;
    if (text.empty()) {
      features.empty += is_whole;
      continue;
    }
    const Kinds kinds = kinds_of(text);
    features.whitespace_only += is_whole && is_white_space(text);
    features.invalid_utf8 += kinds.high && !is_utf8(text);
    features.nul += kinds.nul;
    if (kinds.cr) count_returns(text, &features);
  }
  return features;
}

}  // namespace beam_bpe
