// Unicode normal forms and lower case; bpe/pretokenizing/normalization.py is the specification.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "python/arrow_columns.h"

namespace beam_bpe {

enum class NormalForm { kNfc, kNfd, kNfkc, kNfkd, kLowercase };

// Throws SettingsError for a name that is none of the five.
NormalForm parse_form(std::string_view name);

// How to normalize. is_latest: by Unicode 16.0, else by 9.0.
struct Normalization {
  NormalForm form;
  bool is_latest;
};

// None if the text has the form already. Text that has it costs a scan; memory is linear in the
// text.
std::optional<std::string> normalize(std::string_view text, Normalization how);

// The same for each text: large_binary, or none if no text changes.
std::optional<OwnedColumn> normalize_documents(const BinaryColumn& texts, Normalization how);

}  // namespace beam_bpe
