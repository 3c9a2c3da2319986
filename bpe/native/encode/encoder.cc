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
constexpr size_t kLongestGathered = 4096;
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
        scans_(scans_of(best_isa())),
        passes_(passes_of(best_isa())),
        probe_(probe_of<Id>(passes_)),
        cache_(passes_, cache_bytes) {}

  void encode(const Document& document, IdBuffer& ids) override {
    if (!document.size) return;
    ids.reserve<Id>(document.size / 3);
    if (!encoder_->model().has_scheme) {
      encode_whole(document.text, document.size, ids);
      return;
    }
    const ScanFunction scan = scans_[encoder_->model().scheme];
    size_t position = 0;
    while (position < document.size) {
      const ScanResult found = scan(document.text, document.size, position, ends_, kBatch);
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
    forget_gathered();  // of a call that failed
    encoder_->added().cut(
        document.text, document.size, search,
        [&](size_t start, size_t end) {
          const Document stretch{document.text + start, end - start, document.readable - start};
          text_left_ = document.size - start;
          if (encoder_->model().has_scheme && stretch.size <= kLongestGathered) {
            gather(stretch, ids);
          } else {
            flush(ids);
            encode(stretch, ids);
          }
        },
        [&](size_t, size_t, const AddedToken& token) {
          if (gathered_count_ == kBatch) flush(ids);
          gathered_[gathered_count_++] = {nullptr, 0, 0, token.id};
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
  // Pre-tokens whose ids are not made yet, or an added token where text is null. Short stretches
  // are encoded together, so that memory is asked for all of them before any is looked up.
  struct Gathered {
    const uint8_t* text;
    uint32_t first;  // of its ends and slots
    uint32_t count;
    uint32_t id;
  };

  // Appends what is gathered first, if need be; a stretch that needs care goes the usual way.
  void gather(const Document& stretch, IdBuffer& ids) {
    const ScanFunction scan = scans_[encoder_->model().scheme];
    size_t position = 0;
    while (position < stretch.size) {
      if (gathered_pretokens_ + kLeastCapacity > kBatch || gathered_count_ == kBatch) flush(ids);
      uint32_t* const ends = gathered_ends_ + gathered_pretokens_;
      const uint8_t* const text = stretch.text + position;
      const ScanResult found =
          scan(stretch.text, stretch.size, position, ends, kBatch - gathered_pretokens_);
      const size_t last = found.count > 1 ? ends[found.count - 2] : 0;
      const size_t span = found.position - position;
      if (stretch.readable - position - last < kKeyBytes || passes_.has_zero(text, span)) {
        flush(ids);
        encode({text, stretch.size - position, stretch.readable - position}, ids);
        return;
      }
      gathered_[gathered_count_++] = {text, static_cast<uint32_t>(gathered_pretokens_),
                                      static_cast<uint32_t>(found.count), 0};
      gathered_pretokens_ += found.count;
      gathered_bytes_ += span;
      position = found.position;
    }
  }

  void flush(IdBuffer& ids) {
    if (!gathered_count_) return;
    cache_.prepare(gathered_pretokens_, gathered_bytes_, std::max(gathered_bytes_, text_left_));
    const auto input_of = [&](const Gathered& part) {
      return PassInput{part.text, gathered_ends_ + part.first, part.count, slots_ + part.first,
                       cache_.table(), cache_.slot_mask()};
    };
    const Gathered* const end = gathered_ + gathered_count_;
    for (const Gathered* part = gathered_; part != end; ++part) {
      if (part->text) passes_.hash(input_of(*part));
    }
    Id* out = ids.reserve<Id>(gathered_bytes_ + gathered_count_);
    for (const Gathered* next = gathered_; next != end; ++next) {
      const Gathered& part = *next;
      if (part.text) {
        out = probe_(input_of(part), &TypedContext::miss, this, out);
      } else {
        *out++ = static_cast<Id>(part.id);
      }
    }
    ids.finish(out);
    forget_gathered();
  }

  void forget_gathered() {
    gathered_count_ = gathered_pretokens_ = gathered_bytes_ = 0;
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
  const ScanFunctions& scans_;
  const EncodePasses& passes_;
  const ProbeFunction<Id> probe_;
  PretokenCache<Id> cache_;
  MergeScratch scratch_;
  std::vector<uint32_t> long_ids_;
  uint32_t ends_[kBatch + kScanSlack];
  uint32_t slots_[kBatch];
  Gathered gathered_[kBatch];
  size_t gathered_count_ = 0;
  uint32_t gathered_ends_[kBatch + kScanSlack];
  size_t gathered_pretokens_ = 0;
  size_t gathered_bytes_ = 0;
  size_t text_left_ = 0;  // of the document, from the stretch at hand on
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
