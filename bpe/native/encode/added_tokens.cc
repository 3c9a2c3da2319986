#include "encode/added_tokens.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

#include "scan/class_tables.h"
#include "scan/decode_char.h"
#include "scan/unicode_tables.h"

namespace beam_bpe {

namespace {

constexpr size_t kLongestChar = 4;  // bytes

struct CodePoint {
  uint32_t value;  // kInvalid for a byte that is no part of a character
  size_t size;     // bytes
};
constexpr uint32_t kInvalid = UINT32_MAX;

CodePoint code_point_at(const uint8_t* text, size_t left) {
  if (text[0] < 0x80) return {text[0], 1};
  const size_t size = decode_char(kClassTables, text, left).size;
  if (size == 1) return {kInvalid, 1};
  uint32_t value = text[0] & (0xFFu >> (size + 1));
  for (size_t i = 1; i < size; ++i) value = value << 6 | (text[i] & 0x3Fu);
  return {value, size};
}

// The character that ends at `position`, which is not 0.
CodePoint code_point_before(const uint8_t* text, size_t position) {
  for (size_t size = std::min(position, kLongestChar); size > 1; --size) {
    const CodePoint found = code_point_at(text + position - size, size);
    if (found.size == size) return found;
  }
  const uint8_t last = text[position - 1];
  return {last < 0x80 ? last : kInvalid, 1};
}

bool is_space(CodePoint c) {
  return c.value != kInvalid && kClassTables.of_code_point(c.value) & kSpace;
}

// Hugging Face's \w: letters, marks and numbers, but for the exceptions, which go the other way.
bool is_word(CodePoint c) {
  if (c.value == kInvalid) return false;
  const bool usual = kClassTables.of_code_point(c.value) & (kLetter | kMark | kNumber);
  const auto* const next =
      std::upper_bound(std::begin(bpe::kWordExceptions), std::end(bpe::kWordExceptions), c.value,
                       [](uint32_t value, const bpe::CodePointRange& r) { return value < r.first; });
  const bool is_exception =
      next != std::begin(bpe::kWordExceptions) && c.value <= std::prev(next)->last;
  return usual != is_exception;
}

std::vector<AddedToken> numbered(std::vector<AddedToken> tokens) {
  for (size_t i = 0; i < tokens.size(); ++i) tokens[i].number = i;
  return tokens;
}

template <class Condition>
std::vector<AddedToken> choose(const std::vector<AddedToken>& tokens, const Condition& is_chosen) {
  std::vector<AddedToken> chosen;
  std::copy_if(tokens.begin(), tokens.end(), std::back_inserter(chosen), is_chosen);
  return chosen;
}

bool is_first(const AddedToken& token) { return !token.normalized; }
bool is_second(const AddedToken& token) { return token.normalized; }
bool is_special(const AddedToken& token) { return token.special; }

}  // namespace

AddedTokenSet::AddedTokenSet(std::vector<AddedToken> tokens) : tokens_(std::move(tokens)) {
  if (tokens_.empty()) return;
  std::vector<uint32_t> sorted(tokens_.size());
  for (uint32_t i = 0; i < sorted.size(); ++i) sorted[i] = i;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [&](uint32_t a, uint32_t b) { return tokens_[a].text < tokens_[b].text; });
  build_trie(sorted);
  set_runs(sorted);
  for (const AddedToken& token : tokens_) {
    const auto first = static_cast<uint8_t>(token.text[0]);
    const bool is_single = token.text.size() == 1;
    singles_[first] |= is_single;
    for (unsigned second = 0; second < 256; ++second) {
      if (!is_single && second != static_cast<uint8_t>(token.text[1])) continue;
      const unsigned pair = first | second << 8;
      pairs_[pair >> 6] |= uint64_t{1} << (pair & 63);
    }
  }
  set_few_pairs();
}

void AddedTokenSet::set_few_pairs() {
  size_t count = 0;
  for (unsigned pair = 0; pair < 1u << 16; ++pair) {
    if (!(pairs_[pair >> 6] >> (pair & 63) & 1)) continue;
    if (count == kFewPairs) return;
    std::memset(few_first_[count], static_cast<int>(pair & 0xFF), kVector);
    std::memset(few_second_[count++], static_cast<int>(pair >> 8), kVector);
  }
  few_count_ = count;
  for (; count && count < kFewPairs; ++count) {  // the first one again, in place of none
    std::memcpy(few_first_[count], few_first_[0], kVector);
    std::memcpy(few_second_[count], few_second_[0], kVector);
  }
}

void AddedTokenSet::build_trie(const std::vector<uint32_t>& sorted) {
  struct Task {  // tokens sorted[begin, end) have their first `depth` bytes in common
    uint32_t node;
    size_t begin, end, depth;
  };
  nodes_.emplace_back();
  std::vector<Task> tasks{{0, 0, sorted.size(), 0}};
  while (!tasks.empty()) {  // not by recursion: a token may be long
    const Task task = tasks.back();
    tasks.pop_back();
    size_t at = task.begin;
    while (at < task.end && tokens_[sorted[at]].text.size() == task.depth) {
      if (nodes_[task.node].token == kNone) nodes_[task.node].token = sorted[at];
      ++at;
    }
    nodes_[task.node].first_edge = static_cast<uint32_t>(edges_.size());
    while (at < task.end) {
      const char byte = tokens_[sorted[at]].text[task.depth];
      size_t last = at;
      while (last < task.end && tokens_[sorted[last]].text[task.depth] == byte) ++last;
      edges_.push_back(static_cast<uint8_t>(byte));
      children_.push_back(static_cast<uint32_t>(nodes_.size()));
      tasks.push_back({static_cast<uint32_t>(nodes_.size()), at, last, task.depth + 1});
      nodes_.emplace_back();
      at = last;
    }
    Node& node = nodes_[task.node];
    node.edge_count = static_cast<uint32_t>(edges_.size()) - node.first_edge;
    if (node.edge_count == 1) {
      node.only_byte = edges_.back();
      node.only_child = children_.back();
    }
  }
}

void AddedTokenSet::set_runs(const std::vector<uint32_t>& sorted) {
  bool is_mixed[256] = {};
  for (const uint32_t number : sorted) {
    const std::string& text = tokens_[number].text;
    const char byte = text[0];
    if (text.size() > 1 && text[1] != byte) continue;
    std::vector<uint32_t>& run = runs_[static_cast<uint8_t>(byte)];
    is_mixed[static_cast<uint8_t>(byte)] |= text.find_first_not_of(byte) != std::string::npos;
    // Runs come in the order of their sizes, and of equal ones the first counts.
    if (run.size() > text.size()) continue;
    run.resize(text.size(), run.empty() ? kNone : run.back());
    run.push_back(number);
  }
  for (size_t byte = 0; byte < 256; ++byte) {
    if (is_mixed[byte] || runs_[byte].size() < 3) runs_[byte].clear();
  }
}

AddedTokenSet::Match AddedTokenSet::longest_run_at(const uint8_t* text, size_t size, size_t start,
                                                   const std::vector<uint32_t>& tokens) const {
  const size_t most = tokens.size() - 1;
  const size_t left = size - start;
  size_t count = 0;
#ifdef __SSE2__
  const __m128i byte = _mm_set1_epi8(static_cast<char>(text[start]));
  while (count < most && count + kVector <= left) {
    const __m128i here =
        _mm_loadu_si128(reinterpret_cast<const __m128i*>(text + start + count));
    const int others = _mm_movemask_epi8(_mm_cmpeq_epi8(here, byte)) ^ 0xFFFF;
    if (others) {
      count += static_cast<size_t>(__builtin_ctz(static_cast<unsigned>(others)));
      break;
    }
    count += kVector;
  }
#endif
  while (count < std::min(most, left) && text[start + count] == text[start]) ++count;
  const uint32_t token = tokens[std::min(count, most)];
  if (token == kNone) return {start, nullptr};
  return {start + tokens_[token].text.size(), &tokens_[token]};
}

AddedTokenSet::Match AddedTokenSet::longest_at(const uint8_t* text, size_t size,
                                               size_t start) const {
  const std::vector<uint32_t>& run = runs_[text[start]];
  if (!run.empty() && start + 1 < size && text[start + 1] == text[start]) {
    return longest_run_at(text, size, start, run);
  }
  uint32_t token = kNone;
  size_t end = start;
  const Node* node = nodes_.data();
  for (size_t at = start; at < size; ++at) {
    uint32_t child = node->only_child;
    if (node->edge_count != 1) {
      const uint8_t* const edges = edges_.data() + node->first_edge;
      const void* const found =
          node->edge_count ? std::memchr(edges, text[at], node->edge_count) : nullptr;
      if (!found) break;
      child = children_[node->first_edge +
                        static_cast<size_t>(static_cast<const uint8_t*>(found) - edges)];
    } else if (node->only_byte != text[at]) {
      break;
    }
    node = nodes_.data() + child;
    if (node->token != kNone) {
      token = node->token;
      end = at + 1;
    }
  }
  return {end, token == kNone ? nullptr : &tokens_[token]};
}

#ifdef __SSE2__
// Looks for the first `count` of the few pairs.
template <size_t count>
size_t AddedTokenSet::skip_few(const uint8_t* text, size_t size, size_t position) const {
  const auto load = [](const uint8_t* bytes) {
    return _mm_loadu_si128(reinterpret_cast<const __m128i*>(bytes));
  };
  __m128i firsts[count];
  __m128i seconds[count];
  for (size_t i = 0; i < count; ++i) {
    firsts[i] = load(few_first_[i]);
    seconds[i] = load(few_second_[i]);
  }
  for (; position + kVector < size; position += kVector) {
    const __m128i here = load(text + position);
    const __m128i next = load(text + position + 1);
    __m128i hits = _mm_setzero_si128();
    for (size_t i = 0; i < count; ++i) {
      const __m128i first = _mm_cmpeq_epi8(here, firsts[i]);
      const __m128i second = _mm_cmpeq_epi8(next, seconds[i]);
      hits = _mm_or_si128(hits, _mm_and_si128(first, second));
    }
    const int mask = _mm_movemask_epi8(hits);
    if (mask) return position + static_cast<size_t>(__builtin_ctz(static_cast<unsigned>(mask)));
  }
  return position;
}
#endif

// The first place at `position` or later where a token may start; or one before it.
size_t AddedTokenSet::skip(const uint8_t* text, size_t size, size_t position) const {
#ifdef __SSE2__
  if (few_count_) {
    return few_count_ <= kFewPairs / 2 ? skip_few<kFewPairs / 2>(text, size, position)
                                       : skip_few<kFewPairs>(text, size, position);
  }
#else
  static_cast<void>(text);
  static_cast<void>(size);
#endif
  return position;
}

AddedTokenSet::Match AddedTokenSet::find(const uint8_t* text, size_t size,
                                         size_t position) const {
  for (; position + 1 < size; ++position) {
    position = skip(text, size, position);
    if (position + 1 >= size) break;
    if (!may_start(text + position)) continue;
    const Match match = longest_at(text, size, position);
    if (match.token) return match;
  }
  if (position < size && singles_[text[position]]) return longest_at(text, size, position);
  return {size, nullptr};
}

AddedTokens::AddedTokens(std::vector<AddedToken> tokens)
    : AddedTokens(Numbered{numbered(std::move(tokens))}) {}

AddedTokens::AddedTokens(const Numbered& all)
    : first_(choose(all.tokens, is_first)),
      second_(choose(all.tokens, is_second)),
      specials_(choose(all.tokens, is_special)) {}

void AddedTokens::count_specials(const uint8_t* text, size_t size, AddedSearch search,
                                 int64_t* counts) const {
  if (!holds_special(text, size)) return;
  cut(text, size, search, [](size_t, size_t) {},
      [&](size_t, size_t, const AddedToken& token) { counts[token.number] += token.special; });
}

bool AddedTokens::touches_word(const uint8_t* text, size_t size, size_t start, size_t end) {
  return (start > 0 && is_word(code_point_before(text, start))) ||
         (end < size && is_word(code_point_at(text + end, size - end)));
}

size_t AddedTokens::space_before(const uint8_t* text, size_t position) {
  while (position > 0) {
    const CodePoint last = code_point_before(text, position);
    if (!is_space(last)) break;
    position -= last.size;
  }
  return position;
}

size_t AddedTokens::space_behind(const uint8_t* text, size_t size, size_t position) {
  while (position < size) {
    const CodePoint next = code_point_at(text + position, size - position);
    if (!is_space(next)) break;
    position += next.size;
  }
  return position;
}

}  // namespace beam_bpe
