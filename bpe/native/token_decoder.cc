#include "token_decoder.h"

#include <algorithm>
#include <atomic>
#include <cstring>

#include "errors.h"
#include "large_array.h"
#include "worker_threads.h"

namespace beam_bpe {

TokenDecoder::TokenDecoder(const std::vector<uint32_t>& ids,
                           const std::vector<std::string>& tokens) {
  const size_t size = ids.empty() ? 0 : *std::max_element(ids.begin(), ids.end()) + size_t{1};
  entries_.resize(size, Entry{{}, kNone});
  for (size_t i = 0; i < ids.size(); ++i) {
    Entry& entry = entries_[ids[i]];
    if (tokens[i].size() <= kInline) {
      std::memcpy(entry.bytes, tokens[i].data(), tokens[i].size());
      entry.length = static_cast<uint8_t>(tokens[i].size());
    } else {
      const auto index = static_cast<uint32_t>(long_tokens_.size());
      std::memcpy(entry.bytes, &index, sizeof index);
      entry.length = kLong;
      long_tokens_.push_back(tokens[i]);
    }
  }
}

inline const std::string& TokenDecoder::long_token(const Entry& entry) const {
  uint32_t index;
  std::memcpy(&index, entry.bytes, sizeof index);
  return long_tokens_[index];
}

template <class Id>
size_t TokenDecoder::decoded_size(const Id* ids, size_t count) const {
  size_t size = 0;
  for (size_t i = 0; i < count; ++i) {
    const uint8_t length = ids[i] < entries_.size() ? entries_[ids[i]].length : kNone;
    if (length <= kInline) {
      size += length;
    } else if (length == kLong) {
      size += long_token(entries_[ids[i]]).size();
    } else {
      throw InputError("ids[" + std::to_string(i) + "] is " + std::to_string(ids[i]) +
                       ", which is no token of this vocabulary");
    }
  }
  return size;
}

template <class Id>
void TokenDecoder::decode(const Id* ids, size_t count, char* out, size_t size) const {
  char* const end = out + size;
  size_t i = 0;
  // Whole entries, while there is room for what is written past the token.
  for (; i < count && static_cast<size_t>(end - out) >= sizeof(Entry); ++i) {
    const Entry& entry = entries_[ids[i]];
    std::memcpy(out, &entry, sizeof(Entry));
    if (entry.length <= kInline) {
      out += entry.length;
    } else {
      const std::string& token = long_token(entry);
      std::memcpy(out, token.data(), token.size());
      out += token.size();
    }
  }
  for (; i < count; ++i) {
    const Entry& entry = entries_[ids[i]];
    const bool is_long = entry.length == kLong;
    const size_t length = is_long ? long_token(entry).size() : entry.length;
    std::memcpy(out, is_long ? long_token(entry).data() : entry.bytes, length);
    out += length;
  }
}

template <class Id>
OwnedColumn TokenDecoder::decode_lists(const Id* ids, int64_t id_count, const Int64Column& offsets,
                                       size_t threads) const {
  if (offsets.length < 1 || offsets.values[0] < 0 ||
      offsets.values[offsets.length - 1] > id_count ||
      !std::is_sorted(offsets.values, offsets.values + offsets.length)) {
    throw InputError("offsets must ascend within the ids, one more than there are lists");
  }
  const int64_t rows = offsets.length - 1;
  std::vector<int64_t> ends(static_cast<size_t>(rows) + 1);
  const auto each_row = [&](auto work) {
    // Rows differ in length, so threads take a few at a time.
    constexpr int64_t kRows = 16;
    std::atomic<int64_t> next{0};
    run_workers(std::max<size_t>(1, threads), [&](size_t) {
      for (int64_t begin = next.fetch_add(kRows); begin < rows; begin = next.fetch_add(kRows)) {
        for (int64_t row = begin; row < std::min(begin + kRows, rows); ++row) {
          const int64_t first = offsets.values[row];
          work(row, ids + first, static_cast<size_t>(offsets.values[row + 1] - first));
        }
      }
    });
  };
  each_row([&](int64_t row, const Id* first, size_t count) {
    ends[row + 1] = static_cast<int64_t>(decoded_size(first, count));
  });
  for (int64_t row = 0; row < rows; ++row) ends[row + 1] += ends[row];
  LargeArray<char> bytes(static_cast<size_t>(ends[rows]));
  each_row([&](int64_t row, const Id* first, size_t count) {
    decode(first, count, bytes.data() + ends[row], static_cast<size_t>(ends[row + 1] - ends[row]));
  });
  OwnedColumn column{"Z", rows, {}, {}};
  column.buffers.push_back(own_buffer(std::move(ends)));
  column.buffers.push_back(own_buffer(std::move(bytes)));
  return column;
}

template size_t TokenDecoder::decoded_size(const uint16_t*, size_t) const;
template size_t TokenDecoder::decoded_size(const uint32_t*, size_t) const;
template void TokenDecoder::decode(const uint16_t*, size_t, char*, size_t) const;
template void TokenDecoder::decode(const uint32_t*, size_t, char*, size_t) const;
template OwnedColumn TokenDecoder::decode_lists(const uint16_t*, int64_t, const Int64Column&,
                                                size_t) const;
template OwnedColumn TokenDecoder::decode_lists(const uint32_t*, int64_t, const Int64Column&,
                                                size_t) const;

}  // namespace beam_bpe
