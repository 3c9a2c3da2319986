#include "scan.h"
namespace beam_bpe { const ScanFunctions& avx512_scans(){return scalar_scans();} }
