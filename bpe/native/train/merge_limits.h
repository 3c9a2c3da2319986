// Which pairs may be merged at all.
#pragma once

#include <algorithm>
#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_set>
#include <vector>

#include "train/symbol_sequence.h"
#include "train/token_strings.h"

namespace beam_bpe {

// What no merge may make; the fields of bpe.backends.values.MergeRules.
struct TokenLimits {
  uint64_t max_token_bytes = 0;              // longest token; 0: no limit
  uint64_t max_words = 0;                    // words in a token; 0: no limit
  std::vector<std::string> forbidden;        // byte strings that no token may be
  std::vector<std::string> forbidden_parts;  // byte strings that no token may contain
};

class MergeLimits {
 public:
  // `tokens` must outlive the limits; it spells the symbols.
  MergeLimits(const TokenLimits& limits, const TokenStrings& tokens)
      : limits_(limits), forbidden_(limits.forbidden.begin(), limits.forbidden.end()),
        tokens_(tokens) {
    for (const std::string& text : forbidden_) forbidden_lengths_.insert(text.size());
    contained_free_ = limits_.max_token_bytes == 0 && limits_.max_words == 0 &&
                      limits_.forbidden_parts.empty();
  }

  // Whether the pair may be merged.
  bool allows(Symbol left, Symbol right) const {
    if (!allows_containing(left, right)) return false;
    if (forbidden_.empty()) return true;
    const size_t length = tokens_.length(left - kFirstToken) + tokens_.length(right - kFirstToken);
    if (forbidden_lengths_.count(length) == 0) return true;
    return forbidden_.count(joined(left, right)) == 0;
  }

  // Whether a token may contain what the pair would make. False stays false for all that grows
  // around it: `forbidden` alone has no say here.
  bool allows_containing(Symbol left, Symbol right) const {
    if (contained_free_) return true;
    const std::string_view l = tokens_[left - kFirstToken];
    const std::string_view r = tokens_[right - kFirstToken];
    if (limits_.max_token_bytes != 0 && l.size() + r.size() > limits_.max_token_bytes) return false;
    if (limits_.max_words != 0 && words_in(l, r) > limits_.max_words) return false;
    if (limits_.forbidden_parts.empty()) return true;
    const std::string token = joined(left, right);
    return std::none_of(
        limits_.forbidden_parts.begin(), limits_.forbidden_parts.end(),
        [&token](const std::string& part) { return token.find(part) != std::string::npos; });
  }

 private:
  // Words of a token, as bpe.backends.values.count_words_in has it: what stands between spaces.
  static uint64_t words_in(std::string_view left, std::string_view right) {
    uint64_t words = 0;
    bool in_word = false;
    for (const std::string_view part : {left, right}) {
      for (const char c : part) {
        words += c != ' ' && !in_word;
        in_word = c != ' ';
      }
    }
    return words;
  }

  std::string joined(Symbol left, Symbol right) const {
    return std::string(tokens_[left - kFirstToken]).append(tokens_[right - kFirstToken]);
  }

  TokenLimits limits_;
  bool contained_free_;  // every token may be contained in some
  std::unordered_set<std::string> forbidden_;
  std::unordered_set<size_t> forbidden_lengths_;  // of `forbidden_`, to look most pairs past
  const TokenStrings& tokens_;
};

}  // namespace beam_bpe
