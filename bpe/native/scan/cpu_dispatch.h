// Which instruction set is used: the best one of the processor, unless a test forces another.
#pragma once

#include "encode/encode_passes.h"
#include "scan/scan.h"

namespace beam_bpe {

enum class Isa : uint8_t { scalar, avx2, avx512 };

// Name as the environment variable BPE_ISA has it.
const char* isa_name(Isa isa);

// Whether this build and this processor have it.
bool has_isa(Isa isa);

// The best instruction set of this processor, or the one that BPE_ISA names (scalar, avx2,
// avx512); decided once per process. Throws SettingsError for another name, and for an
// instruction set that is missing here.
Isa best_isa();

// The instruction set must be there, see has_isa.
const ScanFunctions& scans_of(Isa isa);
const EncodePasses& passes_of(Isa isa);

}  // namespace beam_bpe
