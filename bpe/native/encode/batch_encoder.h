// Columns of documents to columns of ids, on several threads whose caches stay warm.
#pragma once

#include <cstdint>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "python/arrow_columns.h"
#include "encode/encoder.h"

namespace beam_bpe {

// Immutable but for the pool of contexts; used from many threads at once.
class BatchEncoder {
 public:
  // cache_bytes bounds what each context remembers. There are as many contexts as threads ever
  // encoded at the same time. Throws VocabularyError for a model that contradicts itself.
  BatchEncoder(EncodingModel model, size_t cache_bytes);

  unsigned id_bytes() const { return encoder_->id_bytes(); }

  // Ids of one document.
  IdBuffer encode(std::string_view document, AddedSearch search);

  // Ids of each document: a large_list column over ids of id_bytes. `threads`: at least 1.
  OwnedColumn encode_documents(const BinaryColumn& documents, size_t threads, AddedSearch search);

  // What the documents are made of, one segment after another.
  struct Segments {
    std::vector<int64_t> first{0};  // of each document, and after the last one
    std::vector<int64_t> starts;    // bytes from the document's start
    std::vector<int64_t> ends;
    std::vector<int64_t> ids;  // of an added token; -1: ordinary text
  };

  // Where the documents hold added tokens.
  Segments cut_documents(const BinaryColumn& documents, AddedSearch search) const;

  // The same for documents whose pre-tokens the caller has found: those of document i end at
  // pretoken_ends[first_pretokens[i]] to pretoken_ends[first_pretokens[i + 1] - 1], bytes from its
  // start. Throws InputError where these are no ascending ends of all documents.
  OwnedColumn encode_split_documents(const BinaryColumn& documents,
                                     const Int64Column& pretoken_ends,
                                     const Int64Column& first_pretokens);

 private:
  // Takes a context for as long as it lives.
  class Lease {
   public:
    explicit Lease(BatchEncoder* owner) : owner_(owner), context_(owner->take_context()) {}
    ~Lease() { owner_->return_context(std::move(context_)); }
    Lease(const Lease&) = delete;
    Lease& operator=(const Lease&) = delete;
    EncodeContext& operator*() { return *context_; }

   private:
    BatchEncoder* owner_;
    std::unique_ptr<EncodeContext> context_;
  };

  // A context that nobody uses right now, and the thread that did.
  struct Idle {
    std::unique_ptr<EncodeContext> context;
    std::thread::id user;
  };

  std::unique_ptr<EncodeContext> take_context();
  void return_context(std::unique_ptr<EncodeContext> context);
  OwnedColumn make_lists(std::vector<int64_t> offsets, IdBuffer ids) const;

  std::shared_ptr<const Encoder> encoder_;
  size_t cache_bytes_;
  std::mutex mutex_;
  std::vector<Idle> idle_;  // warm contexts, the last used one last
};

}  // namespace beam_bpe
