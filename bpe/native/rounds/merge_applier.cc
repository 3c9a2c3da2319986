#include "rounds/merge_applier.h"

#include <algorithm>
#include <string>

#include "memory/errors.h"

namespace beam_bpe {

namespace {

constexpr size_t kChunk = 1024;          // neighbours that are looked up together
constexpr size_t kShortPart = 32;     // tokens up to which repeated scans are fastest
constexpr size_t kMostCached = 1 << 16;  // parts

void check_merges(const std::vector<uint32_t>& left, const std::vector<uint32_t>& right,
                  uint64_t first_id) {
  for (size_t i = 0; i < std::min(left.size(), right.size()); ++i) {
    if (std::max(left[i], right[i]) < first_id + i) continue;
    throw InputError("merge " + std::to_string(i) + " of (" + std::to_string(left[i]) + ", " +
                     std::to_string(right[i]) + ") makes token " + std::to_string(first_id + i) +
                     ": its parts must be made before");
  }
  if (first_id + left.size() > UINT32_MAX - 2) {
    throw InputError("merges make token " + std::to_string(first_id + left.size()) +
                     ", beyond 2^32 - 4: ids are too large");
  }
}

}  // namespace

MergeApplier::MergeApplier(std::vector<uint32_t> left, std::vector<uint32_t> right,
                           uint32_t first_id)
    : left_((check_merges(left, right, first_id), std::move(left))), right_(std::move(right)),
      first_id_(first_id), ranks_(left_, right_), seams_(find_seams()),
      linear_(left_, right_, first_id_, ranks_) {}

PairLookup MergeApplier::find_seams() const {
  std::vector<uint32_t> firsts;  // by merge: first old token of what it makes
  std::vector<uint32_t> lasts;
  std::vector<uint64_t> keys;
  const auto old_token = [this](uint32_t token, const std::vector<uint32_t>& olds) {
    return token < first_id_ ? token : olds[token - first_id_];
  };
  for (size_t i = 0; i < left_.size(); ++i) {
    firsts.push_back(old_token(left_[i], firsts));
    lasts.push_back(old_token(right_[i], lasts));
    keys.push_back(pair_key(old_token(left_[i], lasts), old_token(right_[i], firsts)));
  }
  std::sort(keys.begin(), keys.end());
  keys.erase(std::unique(keys.begin(), keys.end()), keys.end());
  std::vector<uint32_t> left;
  std::vector<uint32_t> right;
  for (const uint64_t key : keys) {
    left.push_back(left_of(key));
    right.push_back(right_of(key));
  }
  return {left, right};
}

template <class Id>
void MergeApplier::apply(const TokenSequences<Id>& sequences, IdBuffer* out,
                         std::vector<int64_t>* offsets) {
  sequences.check_ids(first_id_, "the state belongs to another round");
  size_t entries = 64;
  while (entries < kMostCached && entries * 8 < sequences.total()) entries *= 2;
  cache_.assign(entries, Cached{});
  if (out->id_bytes() == 2) {
    apply_as<Id, uint16_t>(sequences, out, offsets);
  } else {
    apply_as<Id, uint32_t>(sequences, out, offsets);
  }
}

template <class Id, class Out>
void MergeApplier::apply_as(const TokenSequences<Id>& sequences, IdBuffer* out,
                            std::vector<int64_t>* offsets) {
  Out* const start = out->reserve<Out>(sequences.total());
  Out* end = start;
  offsets->reserve(static_cast<size_t>(sequences.count) + 1);
  offsets->push_back(0);
  for (int64_t i = 0; i < sequences.count; ++i) {
    end = apply_to_sequence(sequences.begin(i), sequences.length(i), end);
    offsets->push_back(end - start);
  }
  out->finish(end);
}

template <class Id, class Out>
Out* MergeApplier::apply_to_sequence(const Id* ids, size_t length, Out* out) {
  size_t start = 0;
  uint32_t ranks[kChunk];
  uint32_t cuts[kChunk];
  for (size_t at = 0; at + 1 < length;) {
    const size_t count = std::min(kChunk, length - 1 - at);
    seams_.ranks_of(ids + at, count, ranks);
    size_t found = 0;
    for (size_t i = 0; i < count; ++i) {  // without a branch: half of them are cuts
      cuts[found] = static_cast<uint32_t>(i);
      found += ranks[i] == PairLookup::kNone;
    }
    for (size_t i = 0; i < found; ++i) {
      const size_t end = at + cuts[i] + 1;
      out = apply_to_part(ids + start, end - start, out);
      start = end;
    }
    at += count;
  }
  return length == 0 ? out : apply_to_part(ids + start, length - start, out);
}

template <class Id, class Out>
Out* MergeApplier::apply_to_part(const Id* ids, size_t length, Out* out) {
  if (length == 1) {
    *out++ = static_cast<Out>(ids[0]);
    return out;
  }
  if (length == 2) {
    const uint32_t rank = ranks_.rank(ids[0], ids[1]);
    const bool merges = rank != PairLookup::kNone;
    out[0] = static_cast<Out>(merges ? first_id_ + rank : ids[0]);
    out[1] = static_cast<Out>(ids[1]);
    return out + 2 - merges;
  }
  if (length < kCachedTokens) return apply_cached(ids, length, out);
  if (length <= kShortPart) {
    uint32_t tokens[kShortPart];
    std::copy(ids, ids + length, tokens);
    const size_t merged = merge_short(tokens, length);
    return std::transform(tokens, tokens + merged, out,
                          [](uint32_t token) { return static_cast<Out>(token); });
  }
  linear_.start(ids, length);
  linear_.merge_all();
  return linear_.write(out);
}

template <class Id, class Out>
Out* MergeApplier::apply_cached(const Id* ids, size_t length, Out* out) {
  uint64_t hash = length;
  for (size_t i = 0; i < length; ++i) hash = (hash ^ ids[i]) * 0x9e3779b97f4a7c15;
  Cached& cached = cache_[mix_key(hash) >> 40 & (cache_.size() - 1)];
  const uint32_t* result = cached.tokens + length;
  size_t merged = cached.merged_length;
  uint32_t tokens[kCachedTokens];
  if (cached.length != length || !std::equal(ids, ids + length, cached.tokens)) {
    std::copy(ids, ids + length, tokens);
    merged = merge_short(tokens, length);
    result = tokens;
    if (length + merged <= kCachedTokens) {
      cached.length = static_cast<uint16_t>(length);
      cached.merged_length = static_cast<uint16_t>(merged);
      std::copy(ids, ids + length, cached.tokens);
      std::copy(tokens, tokens + merged, cached.tokens + length);
    }
  }
  for (size_t i = 0; i < merged; ++i) *out++ = static_cast<Out>(result[i]);
  return out;
}

// Merges in place; returns how many tokens are left.
size_t MergeApplier::merge_short(uint32_t* tokens, size_t length) const {
  uint32_t ranks[kShortPart];  // of the pair that starts at each token
  for (size_t i = 0; i + 1 < length; ++i) ranks[i] = ranks_.rank(tokens[i], tokens[i + 1]);
  while (length > 1) {
    const uint32_t* const best = std::min_element(ranks, ranks + length - 1);
    if (*best == PairLookup::kNone) break;
    const auto at = static_cast<size_t>(best - ranks);
    tokens[at] = first_id_ + *best;
    --length;
    std::copy(tokens + at + 2, tokens + length + 1, tokens + at + 1);
    std::copy(ranks + at + 1, ranks + length, ranks + at);
    if (at + 1 < length) ranks[at] = ranks_.rank(tokens[at], tokens[at + 1]);
    if (at > 0) ranks[at - 1] = ranks_.rank(tokens[at - 1], tokens[at]);
  }
  return length;
}

template void MergeApplier::apply(const TokenSequences<uint16_t>&, IdBuffer*,
                                  std::vector<int64_t>*);
template void MergeApplier::apply(const TokenSequences<uint32_t>&, IdBuffer*,
                                  std::vector<int64_t>*);

}  // namespace beam_bpe
