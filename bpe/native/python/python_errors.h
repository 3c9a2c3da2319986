// The core's errors as Python's.
#pragma once

namespace beam_bpe {

// Has this module throw, for each class of memory/errors.h, the class of bpe/errors.py that bears
// its name.
void register_errors();

}  // namespace beam_bpe
