#include "train/tie_order.h"

#include <string>

#include "memory/errors.h"

namespace beam_bpe {

TieOrder parse_tie_order(std::string_view name) {
  if (name == "hf") return TieOrder::kHuggingFace;
  if (name == "id") return TieOrder::kId;
  if (name == "bytes") return TieOrder::kBytes;
  if (name == "first") return TieOrder::kFirst;
  if (name == "greatest") return TieOrder::kGreatest;
  throw SettingsError("unknown tie order '" + std::string(name) +
                      "'; choose one of hf, id, bytes, first, greatest");
}

namespace {

// GPT-2 writes these bytes as themselves and shifts the others after them.
bool is_gpt2_printable(int byte) {
  return (byte >= 0x21 && byte <= 0x7e) || (byte >= 0xa1 && byte <= 0xac) || byte >= 0xae;
}

}  // namespace

std::array<uint8_t, 256> bytes_in_id_order(TieOrder order) {
  std::array<uint8_t, 256> bytes{};
  if (order != TieOrder::kHuggingFace) {
    for (int byte = 0; byte < 256; ++byte) bytes[byte] = static_cast<uint8_t>(byte);
    return bytes;
  }
  int id = 0;
  for (const bool printable : {true, false}) {
    for (int byte = 0; byte < 256; ++byte) {
      if (is_gpt2_printable(byte) == printable) bytes[id++] = static_cast<uint8_t>(byte);
    }
  }
  return bytes;
}

}  // namespace beam_bpe
