#include "scan/cpu_dispatch.h"

#include <cstdlib>
#include <string>

#include "memory/errors.h"

namespace beam_bpe {
namespace {

constexpr Isa kAll[] = {Isa::avx512, Isa::avx2, Isa::scalar};  // best first

Isa choose_isa() {
  const char* forced = std::getenv("BPE_ISA");
  std::string names;
  for (const Isa isa : kAll) {
    if (!has_isa(isa)) continue;
    if (!forced || !*forced || std::string(forced) == isa_name(isa)) return isa;
    names += (names.empty() ? "" : ", ") + std::string(isa_name(isa));
  }
  throw SettingsError("environment variable BPE_ISA is '" + std::string(forced) +
                      "': this machine has " + names);
}

}  // namespace

const char* isa_name(Isa isa) {
  if (isa == Isa::scalar) return "scalar";
  return isa == Isa::avx2 ? "avx2" : "avx512";
}

bool has_isa(Isa isa) {
  if (isa == Isa::scalar) return true;
#if defined(__x86_64__)
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi") &&
                    __builtin_cpu_supports("bmi2") && __builtin_cpu_supports("aes") &&
                    __builtin_cpu_supports("popcnt");
  if (isa == Isa::avx2) return avx2;
  return avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512dq") &&
         __builtin_cpu_supports("avx512vbmi") && __builtin_cpu_supports("avx512vbmi2");
#else
  return false;
#endif
}

Isa best_isa() {
  static const Isa chosen = choose_isa();
  return chosen;
}

#if defined(__x86_64__)

const ScanFunctions& scans_of(Isa isa) {
  if (isa == Isa::scalar) return scalar_scans();
  return isa == Isa::avx2 ? avx2_scans() : avx512_scans();
}

// Wider vectors would not help: an entry of the cache is two vectors of AVX2.
const EncodePasses& passes_of(Isa isa) {
  return isa == Isa::scalar ? scalar_passes() : avx2_passes();
}

#else

const ScanFunctions& scans_of(Isa) { return scalar_scans(); }
const EncodePasses& passes_of(Isa) { return scalar_passes(); }

#endif

}  // namespace beam_bpe
