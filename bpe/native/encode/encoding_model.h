// What an encoder is made from: tokens, merges and the scheme, as a caller gives them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "encode/added_tokens.h"
#include "scan/pattern_scan.h"

namespace beam_bpe {

struct Merge {
  uint32_t left;    // id
  uint32_t right;   // id
  uint32_t result;  // id of the token that replaces the pair
};

struct EncodingModel {
  std::vector<uint32_t> ids;        // of each token, distinct, below kMaxIds
  std::vector<std::string> tokens;  // bytes of each, parallel to ids; every single byte is there
  std::vector<Merge> merges;        // index = rank
  std::vector<AddedToken> added;    // looked for in a document before it is cut into pre-tokens
  bool whole_pretoken = false;      // look a whole pre-token up among the tokens first
  std::optional<Scan> scan;         // without, a document is one pre-token, or the caller splits it
};

// The pre-token cache keeps ids in 24 bits.
inline constexpr uint32_t kMaxIds = 1u << 24;

}  // namespace beam_bpe
