// Runs of equal tokens as bytes: how segments and the ends of shards travel between rounds.
//
// For each run of one token: varint(2 * token + (run > 1)), then varint(run) if run > 1; varints
// are LEB128, unsigned, in their shortest form. Runs are as long as possible, so equal tokens are
// equal bytes and the other way round.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace beam_bpe {

// Appends LEB128 digits of a value.
inline void append_varint(uint64_t value, std::vector<char>* out) {
  for (; value >= 0x80; value >>= 7) out->push_back(static_cast<char>(value | 0x80));
  out->push_back(static_cast<char>(value));
}

// Appends the code of ids[0, count). False if that leaves more than `most` bytes in `out`: it then
// holds the code's first part.
template <class Id>
bool append_runs(const Id* ids, size_t count, uint64_t most, std::vector<char>* out) {
  for (size_t i = 0; i < count;) {
    const Id token = ids[i];
    size_t end = i + 1;
    while (end < count && ids[end] == token) ++end;
    append_varint(uint64_t{token} * 2 + (end - i > 1), out);
    if (end - i > 1) append_varint(end - i, out);
    if (out->size() > most) return false;
    i = end;
  }
  return true;
}

struct TokenRun {
  uint32_t token;
  uint64_t length;  // at least 1
};

// Reads a code run by run.
class RunReader {
 public:
  // `what` names the code in errors.
  RunReader(std::string_view code, std::string what) : code_(code), what_(std::move(what)) {}

  // The next run, false at the end. Throws CountTableError for bytes that no sequence is coded as.
  bool next(TokenRun* run);

 private:
  uint64_t varint();
  [[noreturn]] void refuse(const char* fault) const;

  std::string_view code_;
  std::string what_;
  size_t at_ = 0;
  bool first_ = true;
  uint32_t previous_ = 0;  // token of the run before, unless `first_`
};

}  // namespace beam_bpe
