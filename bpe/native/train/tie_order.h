// Which of several equally frequent pairs is merged first. The order is part of a tokenizer's
// identity, so it is named and total.
#pragma once

#include <array>
#include <cstdint>
#include <string_view>

namespace beam_bpe {

enum class TieOrder {
  kHuggingFace,  // lower (left id, right id); single bytes in the order of GPT-2's characters
  kId,           // lower (left id, right id); single bytes by value
  kBytes,        // smaller (left bytes, right bytes)
  kFirst,        // earliest occurrence in the current text
  kGreatest,     // greater (left bytes, right bytes)
};

// The order called `hf`, `id`, `bytes`, `first` or `greatest`; throws SettingsError for any other name.
TieOrder parse_tie_order(std::string_view name);

// Byte values in the order of their ids: element i is the byte whose id is i.
std::array<uint8_t, 256> bytes_in_id_order(TieOrder order);

}  // namespace beam_bpe
