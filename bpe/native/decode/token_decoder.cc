#include "decode/token_decoder.h"

#include <algorithm>
#include <cstring>
#include <type_traits>

#include "memory/byte_buffer.h"
#include "memory/errors.h"
#include "memory/worker_threads.h"

#if defined(__SSE2__)
#include <emmintrin.h>
#endif

namespace beam_bpe {
namespace {

// Entries fill whole huge pages, so that looking them up in any order is not bound by the TLB;
// ids beyond the most are looked up by hash.
constexpr size_t kLeastEntries = size_t{1} << 17;
constexpr size_t kMostEntries = size_t{1} << 22;

// Sizes are estimated from every so-manieth block of ids.
constexpr size_t kBlock = 1024;
constexpr size_t kSampled = 32;

// Ids as unsigned numbers: a negative one is larger than all that have tokens.
template <class Id>
inline uint64_t number(Id id) {
  return static_cast<uint64_t>(id);
}

// An entry of the table in a register.
#if defined(__SSE2__)
using Whole = __m128i;
inline Whole load(const void* entry) { return _mm_loadu_si128(static_cast<const __m128i*>(entry)); }
inline void store(Whole entry, char* out) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(out), entry);
}
#else
struct Whole {
  uint64_t halves[2];
};
inline Whole load(const void* entry) {
  Whole whole;
  std::memcpy(&whole, entry, sizeof(Whole));
  return whole;
}
inline void store(Whole entry, char* out) { std::memcpy(out, &entry, sizeof(Whole)); }
#endif

}  // namespace

void TokenDecoder::FreeEntries::operator()(Entry* entries) const noexcept {
  free_zeroed(reinterpret_cast<uint8_t*>(entries), bytes);
}

TokenDecoder::TokenDecoder(const std::vector<uint32_t>& ids,
                           const std::vector<std::string>& tokens)
    : id_count_(ids.size()) {
  size_t size = kLeastEntries;
  for (const uint32_t id : ids) {
    largest_id_ = std::max(largest_id_, id);
    while (size <= id && id < kMostEntries) size *= 2;
  }
  mask_ = size - 1;
  const size_t bytes = size * sizeof(Entry);
  entries_ = {reinterpret_cast<Entry*>(allocate_zeroed(bytes)), FreeEntries{bytes}};
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::string& token = tokens[i];
    longest_ = std::max(longest_, token.size());
    if (ids[i] > mask_ || token.empty() || token.size() > kInline) {
      other_tokens_.emplace(ids[i], token);
      continue;
    }
    Entry& entry = entries_[ids[i]];
    std::memcpy(entry.bytes, token.data(), token.size());
    entry.length = static_cast<uint8_t>(token.size());
  }
}

std::string TokenDecoder::describe_unknown(const std::string& place, const std::string& id) const {
  return place + " is " + id + ", which is no id of this vocabulary (" +
         std::to_string(id_count_) + " ids, the largest is " + std::to_string(largest_id_) + ")";
}

// The token of an id; a null view if there is none.
template <class Id>
std::string_view TokenDecoder::token_of(Id id) const {
  if (number(id) <= mask_) {
    const Entry& entry = entries_[number(id)];
    if (entry.length != kOther) return {entry.bytes, entry.length};
  }
  if (number(id) > UINT32_MAX) return {};
  const auto found = other_tokens_.find(static_cast<uint32_t>(id));
  return found == other_tokens_.end() ? std::string_view() : std::string_view(found->second);
}

template <class Id>
size_t TokenDecoder::total_size(const Id* ids, size_t count) const {
  size_t size = 0;
  for (size_t i = 0; i < count; ++i) size += token_of(ids[i]).size();
  return size;
}

template <class Id>
size_t TokenDecoder::estimate_size(const Id* ids, size_t count) const {
  if (count < kBlock * kSampled) return total_size(ids, count);
  size_t sampled = 0;
  size_t size = 0;
  for (size_t begin = 0; begin + kBlock <= count; begin += kBlock * kSampled) {
    size += total_size(ids + begin, kBlock);
    sampled += kBlock;
  }
  const double each = static_cast<double>(size) / static_cast<double>(sampled);
  return static_cast<size_t>(each * static_cast<double>(count) * 1.05);
}

template <class Id>
TokenDecoder::Progress TokenDecoder::decode(const Id* ids, size_t count, Progress done, char* out,
                                            size_t size) const {
  if (size < least_room()) return done;
  // Members are read once: for all the compiler knows the text may be written over them.
  const Entry* const entries = entries_.get();
  const uint64_t mask = mask_;
  const size_t last = size - least_room();  // where a group may still begin
  size_t i = done.ids;
  size_t at = done.bytes;
  while (i < count && at <= last) {
    for (; i + kGroup <= count && at <= last; i += kGroup) {
      const uint64_t a = number(ids[i]);
      const uint64_t b = number(ids[i + 1]);
      const uint64_t c = number(ids[i + 2]);
      const uint64_t d = number(ids[i + 3]);
      if (sizeof(Id) > 2 && (a | b | c | d) > mask) break;
      const size_t sizes[] = {entries[a].length, entries[b].length, entries[c].length,
                              entries[d].length};
      if (!sizes[0] || !sizes[1] || !sizes[2] || !sizes[3]) break;
      // All loads come before the first store, so that none waits for one.
      const Whole first = load(entries + a);
      const Whole second = load(entries + b);
      const Whole third = load(entries + c);
      const Whole fourth = load(entries + d);
      char* const to_second = out + at + sizes[0];
      char* const to_third = to_second + sizes[1];
      char* const to_fourth = to_third + sizes[2];
      store(first, out + at);
      store(second, to_second);
      store(third, to_third);
      store(fourth, to_fourth);
      at += sizes[0] + sizes[1] + sizes[2] + sizes[3];
    }
    if (i == count || at > last) break;
    const std::string_view token = token_of(ids[i]);
    if (token.data() == nullptr) throw UnknownId{i, std::to_string(ids[i])};
    std::memcpy(out + at, token.data(), token.size());
    at += token.size();
    ++i;
  }
  return {i, at};
}

// Decodes lists into buffers of the threads, each a run of lists of about the same number of ids.
template <class Id>
class TokenDecoder::ListDecoder {
 public:
  ListDecoder(const TokenDecoder& decoder, const Id* ids, const Int64Column& offsets,
              size_t threads)
      : decoder_(decoder), ids_(ids), offsets_(offsets), ends_(offsets.length), parts_(threads) {
    const int64_t rows = offsets.length - 1;
    const int64_t first = offsets.values[0];
    const int64_t total = offsets.values[rows] - first;
    const auto workers = static_cast<int64_t>(threads);
    for (int64_t part = 0; part < workers; ++part) {
      const int64_t most = first + total / workers * (part + 1) + total % workers;
      const int64_t* border = std::lower_bound(offsets.values, offsets.values + rows, most);
      parts_[part].begin = part == 0 ? 0 : parts_[part - 1].end;
      parts_[part].end = part + 1 == workers ? rows : border - offsets.values;
    }
  }

  OwnedColumn run() {
    run_workers(parts_.size(), [this](size_t part) { decode_part(parts_[part]); });
    // The first list at fault, whichever thread found it.
    for (const Part& part : parts_) {
      if (!part.failure.empty()) throw InputError(part.failure);
    }
    std::vector<size_t> starts;
    size_t size = 0;
    for (const Part& part : parts_) {
      starts.push_back(size);
      size += part.size;
    }
    ByteBuffer bytes = std::move(parts_[0].bytes);
    bytes.reserve(size);
    bytes.mark_written(size);
    run_workers(parts_.size(), [&](size_t index) {
      const Part& part = parts_[index];
      for (int64_t row = part.begin; row < part.end; ++row) {
        ends_[row + 1] += static_cast<int64_t>(starts[index]);
      }
      if (index > 0 && part.size > 0) {
        std::memcpy(bytes.data() + starts[index], part.bytes.data(), part.size);
      }
    });
    OwnedColumn column{"Z", offsets_.length - 1, {}, {}};
    column.buffers.push_back(own_buffer(std::move(ends_)));
    column.buffers.push_back(own_buffer(std::move(bytes)));
    return column;
  }

 private:
  struct Part {
    int64_t begin = 0;  // first list
    int64_t end = 0;    // after the last one
    ByteBuffer bytes;
    size_t size = 0;
    std::string failure;
  };

  void decode_part(Part& part) {
    const Id* const first = ids_ + offsets_.values[part.begin];
    const auto count =
        static_cast<size_t>(offsets_.values[part.end] - offsets_.values[part.begin]);
    part.bytes.reserve(decoder_.estimate_size(first, count) + decoder_.least_room());
    for (int64_t row = part.begin; row < part.end; ++row) {
      const Id* const ids = ids_ + offsets_.values[row];
      const auto length = static_cast<size_t>(offsets_.values[row + 1] - offsets_.values[row]);
      Progress done{0, part.size};
      try {
        while (done.ids < length) {
          done = decoder_.decode(ids, length, done, part.bytes.data(), part.bytes.size());
          if (done.ids < length) part.bytes.reserve(part.bytes.size() + decoder_.least_room());
        }
      } catch (const UnknownId& unknown) {
        const std::string place =
            "ids[" + std::to_string(row) + "][" + std::to_string(unknown.position) + "]";
        part.failure = decoder_.describe_unknown(place, unknown.id);
        return;
      }
      part.size = done.bytes;
      part.bytes.mark_written(part.size);
      ends_[row + 1] = static_cast<int64_t>(part.size);
    }
  }

  const TokenDecoder& decoder_;
  const Id* ids_;
  const Int64Column& offsets_;
  std::vector<int64_t> ends_;
  std::vector<Part> parts_;
};

template <class Id>
OwnedColumn TokenDecoder::decode_lists(const Id* ids, int64_t id_count, const Int64Column& offsets,
                                       size_t threads) const {
  if (threads < 1) throw SettingsError("threads is 0: it must be at least 1");
  if (offsets.length < 1 || offsets.values[0] < 0 ||
      offsets.values[offsets.length - 1] > id_count ||
      !std::is_sorted(offsets.values, offsets.values + offsets.length)) {
    throw InputError("offsets must ascend within the ids, one more than there are lists");
  }
  return ListDecoder<Id>(*this, ids, offsets, threads).run();
}

#define BEAM_BPE_DECODE(Id)                                                                      \
  template size_t TokenDecoder::estimate_size(const Id*, size_t) const;                          \
  template TokenDecoder::Progress TokenDecoder::decode(const Id*, size_t, Progress, char*,       \
                                                       size_t) const;                            \
  template OwnedColumn TokenDecoder::decode_lists(const Id*, int64_t, const Int64Column&, size_t) \
      const;
BEAM_BPE_DECODE(uint16_t)
BEAM_BPE_DECODE(uint32_t)
BEAM_BPE_DECODE(uint64_t)
BEAM_BPE_DECODE(int32_t)
BEAM_BPE_DECODE(int64_t)
#undef BEAM_BPE_DECODE

}  // namespace beam_bpe
