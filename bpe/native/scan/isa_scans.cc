#include "scan/isa_scans.h"

#include <stdexcept>

#include "scan/cpu_dispatch.h"
#include "memory/errors.h"

namespace beam_bpe {
namespace {

constexpr Isa kIsas[] = {Isa::scalar, Isa::avx2, Isa::avx512};
constexpr size_t kReadableBehind = 64;
constexpr uint32_t kShift = 1000;

std::vector<uint64_t> ends_of(const ScanText& text, const Scan& scan, size_t batch) {
  std::vector<uint32_t> ends(batch + kScanSlack);
  std::vector<uint64_t> found;
  for (size_t position = 0; position < text.length;) {
    const ScanResult result = scan(text, position, ends.data(), batch);
    if (result.count == 0 || result.count > batch || result.position <= position) {
      throw std::logic_error("a scan did not keep to its contract");
    }
    for (size_t i = 0; i < result.count; ++i) found.push_back(position + ends[i] - text.shift);
    position = result.position;
  }
  return found;
}

std::optional<Scan> find_scan_of(const ScanSpec& spec, const ScanFunctions& scans) {
  if (!spec.has_value()) return std::nullopt;
  if (const auto* pattern = std::get_if<std::shared_ptr<PatternScan>>(&*spec)) {
    return Scan(*pattern);
  }
  const auto& name = std::get<std::string>(*spec);
  const char* const names[] = {"gpt2",  "cl100k",     "o200k",   "llama3",
                               "qwen2", "whitespace", "superbpe"};
  for (size_t i = 0; i < kSchemeCount; ++i) {
    if (name == names[i]) return Scan(scans[static_cast<SchemeId>(i)]);
  }
  throw SettingsError("no native scan for the scheme '" + name + "'");
}

}  // namespace

std::optional<Scan> find_scan(const ScanSpec& spec) {
  return find_scan_of(spec, scans_of(best_isa()));
}

std::vector<std::string> available_isas() {
  std::vector<std::string> names;
  for (const Isa isa : kIsas) {
    if (has_isa(isa)) names.emplace_back(isa_name(isa));
  }
  return names;
}

std::vector<uint64_t> scan_ends(std::string_view text, const ScanSpec& scheme,
                                const std::string& isa_wanted, size_t batch) {
  const ScanFunctions* scans = nullptr;
  for (const Isa isa : kIsas) {
    if (isa_wanted == isa_name(isa) && has_isa(isa)) scans = &scans_of(isa);
  }
  if (scans == nullptr) throw SettingsError("this machine has no '" + isa_wanted + "'");
  if (batch == 0) throw SettingsError("batch is 0: it must be at least 1");
  const std::optional<Scan> found_scan = find_scan_of(scheme, *scans);
  if (!found_scan) throw SettingsError("no scheme: name one");
  const Scan& scan = *found_scan;
  // A copy of exactly the right size: a scan that reads past the end is caught by sanitizers.
  std::vector<uint8_t> bytes(text.begin(), text.end());
  const std::vector<uint64_t> found = ends_of({bytes.data(), text.size(), text.size()}, scan, batch);
  // What is there to read after the end, and where the ends count from, must change nothing.
  const char next = "a \n\xc3"[text.size() % 4];
  bytes.resize(text.size() + kReadableBehind, static_cast<uint8_t>(next));
  if (ends_of({bytes.data(), text.size(), bytes.size(), kShift}, scan, batch) != found) {
    throw std::logic_error("a scan depends on what is after the text");
  }
  return found;
}

}  // namespace beam_bpe
