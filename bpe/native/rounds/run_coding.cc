#include "rounds/run_coding.h"

#include "memory/errors.h"

namespace beam_bpe {

void RunReader::refuse(const char* fault) const {
  throw CountTableError(what_ + ": " + fault + " at byte " + std::to_string(at_) + " of " +
                   std::to_string(code_.size()) + "; the data was damaged on its way");
}

uint64_t RunReader::varint() {
  uint64_t value = 0;
  for (int shift = 0; shift < 64; shift += 7) {
    if (at_ == code_.size()) refuse("the code of a run ends early");
    const auto byte = static_cast<uint8_t>(code_[at_++]);
    if (shift == 63 && byte > 1) refuse("a number is larger than 64 bits");
    value |= uint64_t{byte & 0x7fu} << shift;
    if (byte < 0x80) {
      if (byte == 0 && shift != 0) refuse("a number is not in its shortest form");
      return value;
    }
  }
  refuse("a number is larger than 64 bits");
}

bool RunReader::next(TokenRun* run) {
  if (at_ == code_.size()) return false;
  const uint64_t head = varint();
  if (head >> 1 > 0xffffffff) refuse("a token id is larger than 32 bits");
  run->token = static_cast<uint32_t>(head >> 1);
  run->length = (head & 1) != 0 ? varint() : 1;
  if ((head & 1) != 0 && run->length < 2) refuse("a run is too short");
  if (!first_ && run->token == previous_) refuse("a run goes on as another one");
  first_ = false;
  previous_ = run->token;
  return true;
}

}  // namespace beam_bpe
