// Documents to ids: scan, cache, merge.
//
// An Encoder is immutable and shared; every thread has an EncodeContext of its own, which holds
// what it remembers of pre-tokens, warm across documents and calls.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>

#include "encode/encoding_model.h"
#include "encode/id_buffer.h"
#include "encode/pretoken_merger.h"

namespace beam_bpe {

class Encoder {
 public:
  // Throws VocabularyError for a model that contradicts itself.
  explicit Encoder(EncodingModel model);

  const EncodingModel& model() const { return *model_; }
  const PretokenMerger& merger() const { return merger_; }
  const AddedTokens& added() const { return added_; }

  // Bytes of an id in the output: 2 if the largest id of the model fits, else 4.
  unsigned id_bytes() const { return id_bytes_; }

 private:
  std::shared_ptr<const EncodingModel> model_;
  PretokenMerger merger_;
  AddedTokens added_;
  unsigned id_bytes_;
};

// A document, or any text that ends like one.
struct Document {
  const uint8_t* text;
  size_t size;      // bytes
  size_t readable;  // bytes that may be read from `text` on, at least `size`: a document that is
                    // followed by others in memory needs no copy of its end
};

class EncodeContext {
 public:
  // cache_bytes bounds what is remembered of pre-tokens.
  EncodeContext(std::shared_ptr<const Encoder> encoder, size_t cache_bytes);
  ~EncodeContext();
  EncodeContext(EncodeContext&&) noexcept;
  EncodeContext& operator=(EncodeContext&&) noexcept;

  // Appends the ids of a document. With a scheme its pre-tokens are encoded, without one (raw)
  // the whole document as one pre-token. `ids` is of the encoder's id_bytes.
  void encode(const Document& document, IdBuffer& ids);

  // The same of a document that may hold added tokens: what stands between them are documents.
  void encode(const Document& document, AddedSearch search, IdBuffer& ids);

  // Appends the ids of `count` pre-tokens of a document, whose ends (in bytes from its start,
  // ascending, the last one its size) the caller has found.
  void encode_pretokens(const Document& document, const uint64_t* ends, size_t count,
                        IdBuffer& ids);

  class Implementation;

 private:
  std::unique_ptr<Implementation> implementation_;
};

}  // namespace beam_bpe
