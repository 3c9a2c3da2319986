#include "encode/batch_encoder.h"

#include <algorithm>
#include <cstring>
#include <iterator>

#include "memory/errors.h"
#include "memory/worker_threads.h"

namespace beam_bpe {

namespace {

constexpr int64_t kClaimBytes = int64_t{512} << 10;  // text that a thread takes at a time

// Consecutive documents that a thread takes together, and where their ids went.
struct Claim {
  int64_t begin;       // first document
  int64_t end;         // after the last one
  size_t worker;       // who encoded it
  size_t first_id;     // where its ids start in the worker's buffer
  size_t id_count;     // how many they are
};

std::vector<Claim> make_claims(const BinaryColumn& documents) {
  std::vector<Claim> claims;
  int64_t begin = 0;
  for (int64_t i = 0; i < documents.size(); ++i) {
    if (documents.start_of(i + 1) - documents.start_of(begin) < kClaimBytes) continue;
    claims.push_back({begin, i + 1, 0, 0, 0});
    begin = i + 1;
  }
  if (begin < documents.size()) claims.push_back({begin, documents.size(), 0, 0, 0});
  return claims;
}

// The first worker takes claims from the front, all others from the back: so the ids of the first
// lie in their final place, and only those of the others are copied.
class ClaimQueue {
 public:
  explicit ClaimQueue(size_t claims) : back_(claims) {}

  // Index of the next claim for a worker; `none` if there is none.
  static constexpr size_t none = static_cast<size_t>(-1);
  size_t take(size_t worker) {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (front_ == back_) return none;
    return worker == 0 ? front_++ : --back_;
  }

 private:
  std::mutex mutex_;
  size_t front_ = 0;
  size_t back_;
};

Document document_at(const BinaryColumn& documents, int64_t i) {
  const std::string_view text = documents[i];
  const auto readable = documents.start_of(documents.size()) - documents.start_of(i);
  return {reinterpret_cast<const uint8_t*>(text.data()), text.size(),
          static_cast<size_t>(readable)};
}

void copy_ids(const IdBuffer& from, size_t first, size_t count, size_t at, uint8_t* target) {
  const size_t width = from.id_bytes();
  std::memcpy(target + at * width, static_cast<const uint8_t*>(from.data()) + first * width,
              count * width);
}

uint8_t* make_room(IdBuffer* ids, size_t more) {
  if (ids->id_bytes() == 2) {
    uint16_t* end = ids->reserve<uint16_t>(more);
    ids->finish(end + more);
  } else {
    uint32_t* end = ids->reserve<uint32_t>(more);
    ids->finish(end + more);
  }
  return static_cast<uint8_t*>(const_cast<void*>(ids->data()));
}

// Appends the ids that other workers encoded to those of the first, in the documents' order, and
// turns the offsets within each worker's buffer into those of the whole.
void join_buffers(const std::vector<Claim>& claims, std::vector<IdBuffer>* buffers,
                  std::vector<int64_t>* offsets) {
  const size_t kept = (*buffers)[0].size();
  size_t total = 0;
  for (const Claim& claim : claims) total += claim.id_count;
  uint8_t* target = make_room(&(*buffers)[0], total - kept);
  std::vector<size_t> starts;
  size_t start = 0;
  for (const Claim& claim : claims) {
    starts.push_back(start);
    start += claim.id_count;
  }
  run_workers(buffers->size(), [&](size_t worker) {
    for (size_t i = worker; i < claims.size(); i += buffers->size()) {
      const Claim& claim = claims[i];
      if (claim.worker == 0) continue;
      copy_ids((*buffers)[claim.worker], claim.first_id, claim.id_count, starts[i], target);
      const auto shift = static_cast<int64_t>(starts[i]) - static_cast<int64_t>(claim.first_id);
      for (int64_t row = claim.begin; row < claim.end; ++row) (*offsets)[row + 1] += shift;
    }
  });
}

}  // namespace

BatchEncoder::BatchEncoder(EncodingModel model, size_t cache_bytes)
    : encoder_(std::make_shared<const Encoder>(std::move(model))), cache_bytes_(cache_bytes) {}

std::unique_ptr<EncodeContext> BatchEncoder::take_context() {
  {
    const std::lock_guard<std::mutex> lock(mutex_);
    if (!idle_.empty()) {
      // What a thread remembers is in the caches of its core, and slow to fetch for another's. A
      // thread without a context takes the one that was not used for longest.
      const auto is_own = [user = std::this_thread::get_id()](const Idle& idle) {
        return idle.user == user;
      };
      const auto own = std::find_if(idle_.rbegin(), idle_.rend(), is_own);
      const auto chosen = own == idle_.rend() ? idle_.begin() : std::prev(own.base());
      std::unique_ptr<EncodeContext> context = std::move(chosen->context);
      idle_.erase(chosen);
      return context;
    }
  }
  return std::make_unique<EncodeContext>(encoder_, cache_bytes_);
}

void BatchEncoder::return_context(std::unique_ptr<EncodeContext> context) {
  const std::lock_guard<std::mutex> lock(mutex_);
  idle_.push_back({std::move(context), std::this_thread::get_id()});
}

IdBuffer BatchEncoder::encode(std::string_view document, AddedSearch search) {
  IdBuffer ids(id_bytes());
  Lease context(this);
  (*context).encode(
      {reinterpret_cast<const uint8_t*>(document.data()), document.size(), document.size()},
      search, ids);
  return ids;
}

BatchEncoder::Segments BatchEncoder::cut_documents(const BinaryColumn& documents,
                                                   AddedSearch search) const {
  Segments found;
  const auto add = [&](size_t start, size_t end, int64_t id) {
    found.starts.push_back(static_cast<int64_t>(start));
    found.ends.push_back(static_cast<int64_t>(end));
    found.ids.push_back(id);
  };
  for (int64_t row = 0; row < documents.size(); ++row) {
    const Document document = document_at(documents, row);
    encoder_->added().cut(
        document.text, document.size, search,
        [&](size_t start, size_t end) { add(start, end, -1); },
        [&](size_t start, size_t end, const AddedToken& token) { add(start, end, token.id); });
    found.first.push_back(static_cast<int64_t>(found.ids.size()));
  }
  return found;
}

OwnedColumn BatchEncoder::encode_documents(const BinaryColumn& documents, size_t threads,
                                           AddedSearch search) {
  if (threads < 1) throw SettingsError("threads must be at least 1");
  std::vector<Claim> claims = make_claims(documents);
  std::vector<int64_t> offsets(static_cast<size_t>(documents.size()) + 1);
  std::vector<IdBuffer> buffers;
  const size_t workers = std::max<size_t>(1, std::min(threads, claims.size()));
  for (size_t worker = 0; worker < workers; ++worker) buffers.emplace_back(id_bytes());
  ClaimQueue queue(claims.size());
  run_workers(workers, [&](size_t worker) {
    Lease context(this);
    IdBuffer& ids = buffers[worker];
    for (size_t i = queue.take(worker); i != ClaimQueue::none; i = queue.take(worker)) {
      Claim& claim = claims[i];
      claim.worker = worker;
      claim.first_id = ids.size();
      for (int64_t row = claim.begin; row < claim.end; ++row) {
        (*context).encode(document_at(documents, row), search, ids);
        offsets[row + 1] = static_cast<int64_t>(ids.size());
      }
      claim.id_count = ids.size() - claim.first_id;
    }
  });
  if (workers > 1) join_buffers(claims, &buffers, &offsets);
  return make_lists(std::move(offsets), std::move(buffers[0]));
}

OwnedColumn BatchEncoder::encode_split_documents(const BinaryColumn& documents,
                                                 const Int64Column& pretoken_ends,
                                                 const Int64Column& first_pretokens) {
  const int64_t rows = documents.size();
  if (first_pretokens.length != rows + 1 || first_pretokens.values[0] != 0 ||
      first_pretokens.values[rows] != pretoken_ends.length) {
    throw InputError(
        "first_pretokens must go from 0 to the number of pre-tokens, one more than documents");
  }
  std::vector<int64_t> offsets(static_cast<size_t>(rows) + 1);
  IdBuffer ids(id_bytes());
  Lease context(this);
  for (int64_t row = 0; row < rows; ++row) {
    const Document document = document_at(documents, row);
    const int64_t begin = first_pretokens.values[row];
    const int64_t end = first_pretokens.values[row + 1];
    int64_t position = 0;
    for (int64_t i = begin; i < end; ++i) {
      if (pretoken_ends.values[i] <= position) throw InputError("pretoken_ends must ascend");
      position = pretoken_ends.values[i];
    }
    if (end < begin || position != static_cast<int64_t>(document.size)) {
      throw InputError("the pre-tokens of document " + std::to_string(row) +
                       " do not end where it does");
    }
    const auto* ends = reinterpret_cast<const uint64_t*>(pretoken_ends.values + begin);
    (*context).encode_pretokens(document, ends, static_cast<size_t>(end - begin), ids);
    offsets[row + 1] = static_cast<int64_t>(ids.size());
  }
  return make_lists(std::move(offsets), std::move(ids));
}

OwnedColumn BatchEncoder::make_lists(std::vector<int64_t> offsets, IdBuffer ids) const {
  OwnedColumn lists{"+L", static_cast<int64_t>(offsets.size()) - 1, {}, {}};
  lists.buffers.push_back(own_buffer(std::move(offsets)));
  OwnedColumn values{id_bytes() == 2 ? "S" : "I", static_cast<int64_t>(ids.size()), {}, {}};
  values.buffers.push_back(own_buffer(std::move(ids)));
  lists.children.push_back(std::move(values));
  return lists;
}

}  // namespace beam_bpe
