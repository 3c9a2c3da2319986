// Choice of the instruction set, once per process.
#include <cstdlib>
#include <stdexcept>
#include <string>

#include "scan.h"

namespace beam_bpe {
namespace {

const ScanFunctions& choose_scans() {
  const char* forced = std::getenv("BPE_ISA");
  if (!forced || !*forced || std::string(forced) == "scalar") return scalar_scans();
  throw std::invalid_argument("environment variable BPE_ISA is '" + std::string(forced) +
                              "': this processor has scalar");
}

}  // namespace

const ScanFunctions& best_scans() {
  static const ScanFunctions& chosen = choose_scans();
  return chosen;
}

}  // namespace beam_bpe
