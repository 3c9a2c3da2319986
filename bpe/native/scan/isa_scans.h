// The scans by name, for tests that compare instruction sets.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "scan/scan.h"

namespace beam_bpe {

// Scheme of a name of bpe/pretokenizing/schemes.py; none for none. Throws SettingsError where it has no scan.
std::optional<SchemeId> parse_scheme(const std::optional<std::string>& name);

// Names of the instruction sets that this build and this processor have.
std::vector<std::string> available_isas();

// Ends of the pre-tokens of a document, by the scan of one instruction set, `batch` at a time.
// Throws SettingsError for an instruction set that is missing here, and for no batch.
std::vector<uint64_t> scan_ends(std::string_view text, const std::string& scheme,
                                const std::string& isa, size_t batch);

}  // namespace beam_bpe
