// Which pairs may be merged at all.
#pragma once

#include <cstdint>
#include <string>
#include <unordered_set>
#include <vector>

#include "symbol_sequence.h"
#include "token_strings.h"

namespace beam_bpe {

class MergeLimits {
 public:
  // `max_token_bytes` 0: no limit. No merge may spell one of `forbidden`.
  MergeLimits(uint64_t max_token_bytes, const std::vector<std::string>& forbidden,
              const TokenStrings& tokens)
      : max_token_bytes_(max_token_bytes), forbidden_(forbidden.begin(), forbidden.end()),
        tokens_(tokens) {
    for (const std::string& text : forbidden_) forbidden_lengths_.insert(text.size());
  }

  bool allows(Symbol left, Symbol right) const {
    if (max_token_bytes_ == 0 && forbidden_.empty()) return true;
    const size_t l = left - kFirstToken;
    const size_t r = right - kFirstToken;
    const size_t length = tokens_.length(l) + tokens_.length(r);
    if (max_token_bytes_ != 0 && length > max_token_bytes_) return false;
    if (forbidden_lengths_.count(length) == 0) return true;
    return forbidden_.count(std::string(tokens_[l]).append(tokens_[r])) == 0;
  }

 private:
  uint64_t max_token_bytes_;
  std::unordered_set<std::string> forbidden_;
  std::unordered_set<size_t> forbidden_lengths_;  // lengths of `forbidden_`, to look most pairs past
  const TokenStrings& tokens_;
};

}  // namespace beam_bpe
