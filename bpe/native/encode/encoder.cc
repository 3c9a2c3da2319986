#include "encode/encoder.h"

#include <algorithm>
#include <cstring>
#include <vector>

#include "scan/cpu_dispatch.h"
#include "encode/encode_passes.h"
#include "encode/pretoken_cache.h"
#include "scan/scan.h"

namespace beam_bpe {
namespace {

// Pre-tokens of a batch: enough to hide the latency of the cache's memory, few enough for the
// batch to stay in the processor's first cache.
constexpr size_t kBatch = 512;
// Segments between added tokens up to so many bytes are encoded together.
constexpr size_t kLongestQueued = 4096;
constexpr size_t kLeastCapacity = 128;  // of a scan, to go by blocks

}  // namespace

class EncodeContext::Implementation {
 public:
  virtual ~Implementation() = default;
  virtual void encode(const Document& document, IdBuffer& ids) = 0;
  virtual void encode(const Document& document, AddedSearch search, IdBuffer& ids) = 0;
  virtual void encode_pretokens(const Document& document, const uint64_t* ends, size_t count,
                                IdBuffer& ids) = 0;
};

namespace {

template <typename Id>
ProbeFunction<Id> probe_of(const EncodePasses& passes);
template <>
ProbeFunction<uint16_t> probe_of(const EncodePasses& passes) {
  return passes.probe16;
}
template <>
ProbeFunction<uint32_t> probe_of(const EncodePasses& passes) {
  return passes.probe32;
}

template <typename Id>
class TypedContext final : public EncodeContext::Implementation {
 public:
  TypedContext(std::shared_ptr<const Encoder> encoder, size_t cache_bytes)
      : encoder_(std::move(encoder)),
        merger_(encoder_->merger()),
        passes_(passes_of(best_isa())),
        probe_(probe_of<Id>(passes_)),
        cache_(passes_, cache_bytes, encoder_->model().added) {}

  void encode(const Document& document, IdBuffer& ids) override {
    if (!document.size) return;
    ids.reserve<Id>(document.size / 3);
    if (!encoder_->model().scan) {
      encode_whole(document.text, document.size, ids);
      return;
    }
    const Scan& scan = *encoder_->model().scan;
    const ScanText whole = {document.text, document.size, document.readable};
    size_t position = 0;
    while (position < document.size) {
      const ScanResult found = scan(whole, position, ends_, kBatch);
      const size_t span = found.position - position;
      const size_t count = span > UINT32_MAX ? found.count - 1 : found.count;
      encode_batch(document, position, count, ids);
      if (count < found.count) {
        const size_t start = position + (count ? ends_[count - 1] : 0);
        encode_whole(document.text + start, found.position - start, ids);
      }
      position = found.position;
    }
  }

  void encode(const Document& document, AddedSearch search, IdBuffer& ids) override {
    queued_ = queued_added_ = 0;  // of a call that failed
    checked_end_ = nullptr;
    const auto part = [&](size_t start, size_t end) {
      text_left_ = document.size - start;
      return Document{document.text + start, end - start, document.readable - start};
    };
    encoder_->added().cut(
        document.text, document.size, search,
        [&](size_t start, size_t end) {
          const Document segment = part(start, end);
          if (may_queue(segment) && is_free_of_zeros(segment)) {
            queue(segment, ids);
          } else {
            flush(ids);
            encode(segment, ids);
          }
        },
        [&](size_t start, size_t end, const AddedToken& token) {
          queue_added(part(start, end), token, ids);
        });
    flush(ids);
  }

  void encode_pretokens(const Document& document, const uint64_t* ends, size_t count,
                        IdBuffer& ids) override {
    size_t position = 0;
    for (size_t i = 0; i < count;) {
      size_t taken = 0;
      while (taken < kBatch && i + taken < count && ends[i + taken] - position <= UINT32_MAX) {
        ends_[taken] = static_cast<uint32_t>(ends[i + taken] - position);
        ++taken;
      }
      if (taken) {
        encode_batch(document, position, taken, ids);
      } else {
        encode_whole(document.text + position, ends[i] - position, ids);
        taken = 1;
      }
      i += taken;
      position = ends[i - 1];
    }
  }

 private:
  // Short segments and the added tokens between them are encoded together: the queue is a batch
  // of pre-tokens, some of which are added tokens and have their slots for that.
  struct QueuedAdded {
    uint32_t index;  // of the pre-token
    uint32_t number;
  };

  bool may_queue(const Document& part) const {
    return encoder_->model().scan && part.size <= kLongestQueued &&
           part.readable - part.size >= kKeyBytes;
  }

  // Looks at more text at a time than short segments have.
  bool is_free_of_zeros(const Document& segment) {
    const uint8_t* const end = segment.text + segment.size;
    if (end > checked_end_) {
      const size_t size = std::max(segment.size, std::min(text_left_, kLongestQueued));
      has_no_zero_ = !passes_.has_zero(segment.text, size);
      checked_end_ = segment.text + size;
    }
    return has_no_zero_ || !passes_.has_zero(segment.text, segment.size);
  }

  // Makes room for more at `text`, which goes on from the end of the queue or begins a new one.
  void make_room(const uint8_t* text, IdBuffer& ids) {
    const bool goes_on = queued_ && text == queue_text_ + ends_[queued_ - 1];
    if (goes_on && queued_ + kLeastCapacity <= kBatch) return;
    flush(ids);
    queue_text_ = text;
  }

  void queue(const Document& segment, IdBuffer& ids) {
    const Scan& scan = *encoder_->model().scan;
    for (size_t position = 0; position < segment.size;) {
      make_room(segment.text + position, ids);
      const auto shift = static_cast<uint32_t>(segment.text + position - queue_text_);
      const ScanResult found = scan({segment.text, segment.size, segment.readable, shift},
                                    position, ends_ + queued_, kBatch - queued_);
      queued_ += found.count;
      position = found.position;
    }
  }

  void queue_added(const Document& place, const AddedToken& token, IdBuffer& ids) {
    if (!may_queue(place) || !cache_.has_added_slot(token.number)) {
      flush(ids);
      Id* const out = ids.reserve<Id>(1);
      *out = static_cast<Id>(token.id);
      ids.finish(out + 1);
      return;
    }
    make_room(place.text, ids);
    queued_tokens_[queued_added_++] = {static_cast<uint32_t>(queued_),
                                       static_cast<uint32_t>(token.number)};
    ends_[queued_++] = static_cast<uint32_t>(place.text + place.size - queue_text_);
  }

  void flush(IdBuffer& ids) {
    if (!queued_) return;
    const size_t span = ends_[queued_ - 1];
    cache_.prepare(queued_, span, std::max(span, text_left_));
    const PassInput input = {queue_text_, ends_, queued_, slots_, cache_.table(),
                             cache_.slot_mask()};
    passes_.hash(input);
    for (size_t i = 0; i < queued_added_; ++i) {
      slots_[queued_tokens_[i].index] = cache_.added_slot(queued_tokens_[i].number);
    }
    ids.finish(probe_(input, &TypedContext::miss, this, ids.reserve<Id>(span)));
    queued_ = queued_added_ = 0;
  }

  // Ids of the pre-tokens at `position` whose ends are in ends_.
  void encode_batch(const Document& document, size_t position, size_t count, IdBuffer& ids) {
    if (!count) return;
    const uint8_t* const text = document.text + position;
    const size_t readable = document.readable - position;
    const size_t span = ends_[count - 1];
    cache_.prepare(count, span, document.size - position);
    Id* out = ids.reserve<Id>(span);
    // Pre-tokens near the end of what may be read, and those with zero bytes, go one by one.
    const size_t fast = passes_.has_zero(text, span) ? 0 : count_readable(count, readable);
    if (fast) {
      const PassInput input = {text, ends_, fast, slots_, cache_.table(), cache_.slot_mask()};
      passes_.hash(input);
      out = probe_(input, &TypedContext::miss, this, out);
    }
    for (size_t i = fast; i < count; ++i) {
      out = encode_one(text + start_of(i), ends_[i] - start_of(i), out);
    }
    ids.finish(out);
  }

  // How many of the pre-tokens have kKeyBytes readable bytes from their starts on.
  size_t count_readable(size_t count, size_t readable) const {
    if (readable < kKeyBytes) return 0;
    const size_t last_start = readable - kKeyBytes;
    if (start_of(count - 1) <= last_start) return count;
    return 1 + static_cast<size_t>(
                   std::upper_bound(ends_, ends_ + count - 1, last_start) - ends_);
  }

  size_t start_of(size_t i) const { return i ? ends_[i - 1] : 0; }

  static Id* miss(void* owner, const uint8_t* pretoken, size_t size, uint32_t slot, Id* out) {
    auto& self = *static_cast<TypedContext*>(owner);
    if (self.cache_.is_added_slot(slot)) {
      *out = self.cache_.added_id(slot);
      return out + 1;
    }
    if (size > kLongestKey) return self.encode_long(pretoken, size, out);
    uint8_t key[kKeyBytes] = {};
    std::memcpy(key, pretoken, size);
    return self.encode_short(key, size, slot, out);
  }

  Id* encode_one(const uint8_t* pretoken, size_t size, Id* out) {
    if (size > kLongestKey || std::memchr(pretoken, 0, size)) {
      return encode_long(pretoken, size, out);
    }
    uint8_t key[kKeyBytes] = {};
    std::memcpy(key, pretoken, size);
    return encode_short(key, size, cache_.slot_of(key, size), out);
  }

  Id* encode_short(const uint8_t* key, size_t size, uint32_t slot, Id* out) {
    const auto known = cache_.find(key, slot);
    if (known.data) return std::copy(known.data, known.data + known.count, out);
    uint32_t ids[kKeyBytes];
    const size_t count = merger_.encode_short(key, size, ids, scratch_);
    cache_.insert(key, slot, ids, count);
    for (size_t i = 0; i < count; ++i) out[i] = static_cast<Id>(ids[i]);
    return out + count;
  }

  Id* encode_long(const uint8_t* pretoken, size_t size, Id* out) {
    const bool remembered = size <= PretokenCache<Id>::kLongestPretoken;
    const uint64_t hash = remembered ? cache_.long_hash(pretoken, size) : 0;
    if (remembered) {
      const auto known = cache_.find_long(pretoken, size, hash);
      if (known.data) return std::copy(known.data, known.data + known.count, out);
    }
    merger_.encode(pretoken, size, long_ids_, scratch_);
    if (remembered) cache_.insert_long(pretoken, size, hash, long_ids_.data(), long_ids_.size());
    for (const uint32_t id : long_ids_) *out++ = static_cast<Id>(id);
    return out;
  }

  void encode_whole(const uint8_t* pretoken, size_t size, IdBuffer& ids) {
    ids.finish(encode_long(pretoken, size, ids.reserve<Id>(size)));
  }

  std::shared_ptr<const Encoder> encoder_;
  const PretokenMerger& merger_;
  const EncodePasses& passes_;
  const ProbeFunction<Id> probe_;
  PretokenCache<Id> cache_;
  MergeScratch scratch_;
  std::vector<uint32_t> long_ids_;
  uint32_t ends_[kBatch + kScanSlack];
  uint32_t slots_[kBatch];
  const uint8_t* queue_text_ = nullptr;
  size_t queued_ = 0;  // pre-tokens
  QueuedAdded queued_tokens_[kBatch];
  size_t queued_added_ = 0;
  const uint8_t* checked_end_ = nullptr;  // text up to there was looked at for zero bytes
  bool has_no_zero_ = false;
  size_t text_left_ = 0;  // of the document, from the segment at hand on
};

}  // namespace

Encoder::Encoder(EncodingModel model)
    : model_(std::make_shared<const EncodingModel>(std::move(model))),
      merger_(model_),
      added_(model_->added) {
  uint32_t largest = *std::max_element(model_->ids.begin(), model_->ids.end());
  for (const AddedToken& token : model_->added) largest = std::max(largest, token.id);
  id_bytes_ = largest < (1u << 16) ? 2 : 4;
}

EncodeContext::EncodeContext(std::shared_ptr<const Encoder> encoder, size_t cache_bytes) {
  if (encoder->id_bytes() == 2) {
    implementation_ = std::make_unique<TypedContext<uint16_t>>(std::move(encoder), cache_bytes);
  } else {
    implementation_ = std::make_unique<TypedContext<uint32_t>>(std::move(encoder), cache_bytes);
  }
}

EncodeContext::~EncodeContext() = default;
EncodeContext::EncodeContext(EncodeContext&&) noexcept = default;
EncodeContext& EncodeContext::operator=(EncodeContext&&) noexcept = default;

void EncodeContext::encode(const Document& document, IdBuffer& ids) {
  implementation_->encode(document, ids);
}

void EncodeContext::encode(const Document& document, AddedSearch search, IdBuffer& ids) {
  if (search.wanted) {
    implementation_->encode(document, search, ids);
  } else {
    implementation_->encode(document, ids);
  }
}

void EncodeContext::encode_pretokens(const Document& document, const uint64_t* ends, size_t count,
                                     IdBuffer& ids) {
  implementation_->encode_pretokens(document, ends, count, ids);
}

}  // namespace beam_bpe
