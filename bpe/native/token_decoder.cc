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
  limit_ = ids.empty() ? 0 : *std::max_element(ids.begin(), ids.end()) + size_t{1};
  const size_t size = std::max(limit_, size_t{1} << 16) + 1;
  entries_.resize(size, Entry{{}, kOther});
  lengths_.resize(size, kOther);
  for (size_t i = 0; i < ids.size(); ++i) {
    const std::string& token = tokens[i];
    if (token.size() <= kInline) {
      Entry& entry = entries_[ids[i]];
      std::memcpy(entry.bytes, token.data(), token.size());
      entry.length = static_cast<uint8_t>(token.size());
    } else {
      long_tokens_.emplace(ids[i], token);
    }
    if (token.size() < kOther) lengths_[ids[i]] = static_cast<uint8_t>(token.size());
  }
}

// Where an id stands in the tables; ids beyond all tokens share an empty entry.
template <class Id>
inline size_t TokenDecoder::index_of(Id id) const {
  if constexpr (sizeof(Id) == 2) return id;
  return std::min<size_t>(id, limit_);
}

// The token of an id; a null view if there is none.
std::string_view TokenDecoder::token_of(size_t index) const {
  const Entry& entry = entries_[index];
  if (entry.length != kOther) return {entry.bytes, entry.length};
  const auto found = long_tokens_.find(static_cast<uint32_t>(index));
  return found == long_tokens_.end() ? std::string_view() : std::string_view(found->second);
}

template <class Id>
size_t TokenDecoder::careful_size(const Id* ids, size_t begin, size_t end) const {
  size_t size = 0;
  for (size_t i = begin; i < end; ++i) {
    const std::string_view token = token_of(index_of(ids[i]));
    if (token.data() == nullptr) {
      throw InputError("ids[" + std::to_string(i) + "] is " + std::to_string(ids[i]) +
                       ", which is no token of this vocabulary");
    }
    size += token.size();
  }
  return size;
}

template <class Id>
size_t TokenDecoder::decoded_size(const Id* ids, size_t count) const {
  const uint8_t* const lengths = lengths_.data();
  size_t size = 0;
  for (size_t begin = 0; begin < count; begin += kBlock) {
    const size_t end = std::min(begin + kBlock, count);
    size_t block_size = 0;
    uint8_t longest = 0;
    for (size_t i = begin; i < end; ++i) {
      const uint8_t length = lengths[index_of(ids[i])];
      block_size += length;
      longest = std::max(longest, length);
    }
    size += longest == kOther ? careful_size(ids, begin, end) : block_size;
  }
  return size;
}

template <class Id>
void TokenDecoder::decode(const Id* ids, size_t count, char* out, size_t size) const {
  const Entry* const entries = entries_.data();
  size_t i = 0;
  // Whole entries, while there is room for what is written past the token.
  if (size >= sizeof(Entry)) {
    char* const last_entry = out + size - sizeof(Entry);
    for (; i < count && out <= last_entry; ++i) {
      const Entry entry = entries[index_of(ids[i])];
      if (entry.length == kOther) {
        const std::string_view token = token_of(index_of(ids[i]));
        std::memcpy(out, token.data(), token.size());
        out += token.size();
        continue;
      }
      std::memcpy(out, &entry, sizeof(Entry));
      out += entry.length;
    }
  }
  for (; i < count; ++i) {
    const std::string_view token = token_of(index_of(ids[i]));
    std::memcpy(out, token.data(), token.size());
    out += token.size();
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
