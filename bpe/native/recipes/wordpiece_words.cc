#include "recipes/wordpiece_words.h"

#include <algorithm>
#include <numeric>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <utility>

#include "memory/checked_math.h"
#include "memory/errors.h"
#include "scan/utf8.h"

namespace beam_bpe {

namespace {

bool is_white_space(uint32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 ||
         (c >= 0x2000 && c <= 0x200A) || c == 0x2028 || c == 0x2029 || c == 0x202F ||
         c == 0x205F || c == 0x3000;
}

// Code points of a word; false if it is not valid UTF-8.
bool decode_word(std::string_view word, std::vector<uint32_t>* code_points) {
  code_points->clear();
  const auto* text = reinterpret_cast<const uint8_t*>(word.data());
  for (size_t i = 0; i < word.size();) {
    if (text[i] < 0x80) {
      code_points->push_back(text[i++]);
      continue;
    }
    const size_t size = multibyte_size(text + i, word.size() - i);
    if (size == 0) return false;
    uint32_t code_point = text[i] & (0xFFu >> (size + 1));
    for (size_t k = 1; k < size; ++k) code_point = code_point << 6 | (text[i + k] & 0x3Fu);
    code_points->push_back(code_point);
    i += size;
  }
  return true;
}

std::vector<uint32_t> word_order(const BinaryColumn& words, const Int64Column& counts,
                                 const Int64Column* first_positions) {
  if (words.size() != counts.length ||
      (first_positions != nullptr && words.size() != first_positions->length)) {
    throw CountTableError("words, counts and first positions must be columns of one length");
  }
  if (words.size() > UINT32_MAX) throw CountTableError("more than 2^32 - 1 distinct words");
  std::vector<uint32_t> order(static_cast<size_t>(words.size()));
  std::iota(order.begin(), order.end(), 0u);
  if (first_positions != nullptr) {
    std::stable_sort(order.begin(), order.end(), [first_positions](uint32_t a, uint32_t b) {
      return first_positions->values[a] < first_positions->values[b];
    });
  }
  return order;
}

// Reads words, and keeps those of code points that training can use.
class WordReader {
 public:
  explicit WordReader(const WordPieceLimits& limits) : limits_(limits) {}

  void add(std::string_view word, int64_t count) {
    uses_ = checked_add(uses_, count, "a word");
    const bool is_text = decode_word(word, &code_points_) && !code_points_.empty();
    if (is_text && std::all_of(code_points_.begin(), code_points_.end(), is_white_space)) return;
    if (!is_text || code_points_.size() > static_cast<uint64_t>(limits_.max_word_chars)) {
      leave_out(count);
      return;
    }
    for (const uint32_t c : code_points_) {
      characters_ = checked_add(characters_, count, "a character");
      uses_of_[c] += count;
    }
    text_.insert(text_.end(), code_points_.begin(), code_points_.end());
    ends_.push_back(text_.size());
    weights_.push_back(count);
  }

  WordPieceWords finish() {
    choose_alphabet();
    number_pieces();
    return std::move(result_);
  }

 private:
  void leave_out(int64_t count) {
    ++result_.left_out_words;
    result_.left_out_uses += count;
  }

  void choose_alphabet() {
    if (limits_.alphabet == 0 || uses_of_.size() <= static_cast<uint64_t>(limits_.alphabet)) return;
    std::vector<std::pair<int64_t, uint32_t>> ranked;
    for (const auto& [c, uses] : uses_of_) ranked.emplace_back(-uses, c);
    std::sort(ranked.begin(), ranked.end());
    for (auto it = ranked.begin() + limits_.alphabet; it != ranked.end(); ++it) {
      outside_.insert(it->second);
    }
  }

  // Key of the piece of one character.
  static uint32_t key_of(uint32_t c, bool continues) { return c << 1 | (continues ? 1u : 0u); }

  void number_pieces() {
    std::unordered_map<uint32_t, uint32_t> number_of;
    uint64_t start = 0;
    std::vector<uint32_t>& symbols = result_.symbols;
    result_.starts.push_back(0);
    for (size_t i = 0; i < ends_.size(); start = ends_[i++]) {
      const auto from = text_.begin() + static_cast<std::ptrdiff_t>(start);
      const auto to = text_.begin() + static_cast<std::ptrdiff_t>(ends_[i]);
      if (std::any_of(from, to, [this](uint32_t c) { return outside_.count(c) != 0; })) {
        leave_out(weights_[i]);
        continue;
      }
      for (auto it = from; it != to; ++it) symbols.push_back(key_of(*it, it != from));
      result_.starts.push_back(symbols.size());
      result_.weights.push_back(weights_[i]);
    }
    std::vector<std::pair<std::string, uint32_t>> written;
    for (const uint32_t key : std::unordered_set<uint32_t>(symbols.begin(), symbols.end())) {
      char bytes[4];
      const size_t size = write_utf8(key >> 1, bytes);
      written.emplace_back(((key & 1) != 0 ? "##" : "") + std::string(bytes, size), key);
    }
    std::sort(written.begin(), written.end());
    for (const auto& [text, key] : written) {
      number_of.emplace(key, static_cast<uint32_t>(result_.alphabet.size()));
      result_.alphabet.push_back({text, (key & 1) != 0, 1});
    }
    for (uint32_t& symbol : symbols) symbol = number_of.at(symbol);
  }

  WordPieceLimits limits_;
  WordPieceWords result_;
  std::vector<uint32_t> code_points_;  // of the word that is read
  std::vector<uint32_t> text_;         // code points of all kept words
  std::vector<uint64_t> ends_;         // of each in `text_`
  std::vector<int64_t> weights_;
  std::unordered_map<uint32_t, int64_t> uses_of_;  // of each character
  std::unordered_set<uint32_t> outside_;           // characters outside the alphabet
  int64_t uses_ = 0;
  int64_t characters_ = 0;
};

}  // namespace

WordPieceWords read_wordpiece_words(const BinaryColumn& words, const Int64Column& counts,
                                    const Int64Column* first_positions,
                                    const WordPieceLimits& limits) {
  WordReader reader(limits);
  for (const uint32_t i : word_order(words, counts, first_positions)) {
    if (counts.values[i] < 1) {
      throw CountTableError("words[" + std::to_string(i) + "] has count " +
                            std::to_string(counts.values[i]) + ": counts start at 1");
    }
    reader.add(words[i], counts.values[i]);
  }
  return reader.finish();
}

}  // namespace beam_bpe
