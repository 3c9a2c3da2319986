// The scans by name, for tests that compare instruction sets.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "scan/pattern_scan.h"

namespace beam_bpe {

// The name of a scheme of bpe/pretokenizing/schemes.py, or a pattern's own scan; none for none.
using ScanSpec = std::optional<std::variant<std::string, std::shared_ptr<PatternScan>>>;

// Its scan, with the best instructions here. Throws SettingsError for a name that has none.
std::optional<Scan> find_scan(const ScanSpec& spec);

// Names of the instruction sets that this build and this processor have.
std::vector<std::string> available_isas();

// Ends of the pre-tokens of a document, by the scan of one instruction set, `batch` at a time.
// Throws SettingsError for an instruction set that is missing here, and for no batch.
std::vector<uint64_t> scan_ends(std::string_view text, const ScanSpec& scheme,
                                const std::string& isa, size_t batch);

}  // namespace beam_bpe
