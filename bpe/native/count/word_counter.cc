#include "count/word_counter.h"

#include <algorithm>
#include <atomic>
#include <utility>

#include "memory/errors.h"
#include "memory/worker_threads.h"

namespace beam_bpe {

namespace {

constexpr int64_t kClaimBytes = int64_t{1} << 20;  // text that a thread takes at a time

// Borders of runs of documents of about kClaimBytes each.
std::vector<int64_t> make_claims(const BinaryColumn& documents) {
  std::vector<int64_t> claims{0};
  for (int64_t i = 0; i < documents.size(); ++i) {
    if (documents.start_of(i + 1) - documents.start_of(claims.back()) >= kClaimBytes) {
      claims.push_back(i + 1);
    }
  }
  if (claims.back() != documents.size()) claims.push_back(documents.size());
  return claims;
}

}  // namespace

WordCounter::WordCounter(std::optional<Scan> scan, int threads)
    : scan_(std::move(scan)) {
  if (threads < 1) throw SettingsError("threads must be at least 1");
  tables_.resize(static_cast<size_t>(threads));
}

void WordCounter::count_range(const BinaryColumn& documents, int64_t begin, int64_t end,
                              WordTable* table) {
  for (int64_t i = begin; i < end; ++i) {
    table->count_document(documents[i],
                          position_ + documents.start_of(i) - documents.start_of(0), *scan_);
  }
}

void WordCounter::add_documents(const BinaryColumn& documents) {
  if (!scan_.has_value()) throw InputError("this counter has no scheme: add words instead");
  if (documents.size() == 0) return;
  const std::vector<int64_t> claims = make_claims(documents);
  const size_t workers = std::min(tables_.size(), claims.size() - 1);
  std::atomic<size_t> next{0};
  run_workers(workers, [&](size_t worker) {
    for (size_t claim = next++; claim + 1 < claims.size(); claim = next++) {
      count_range(documents, claims[claim], claims[claim + 1], &tables_[worker]);
    }
  });
  position_ += documents.total_bytes();
}

void WordCounter::add_words(const BinaryColumn& words) {
  for (int64_t i = 0; i < words.size(); ++i) {
    tables_[0].add(words[i], 1, position_ + words.start_of(i) - words.start_of(0));
  }
  position_ += words.total_bytes();
}

size_t WordCounter::memory_bytes() const {
  size_t bytes = 0;
  for (const WordTable& table : tables_) bytes += table.memory_bytes();
  return bytes;
}

WordCounts WordCounter::drain() {
  for (size_t i = 1; i < tables_.size(); ++i) {
    tables_[0].add_all(tables_[i]);
    tables_[i].clear();
  }
  WordCounts words = tables_[0].sorted();
  tables_[0].clear();
  return words;
}

std::vector<OwnedColumn> to_columns(WordCounts words) {
  const auto length = static_cast<int64_t>(words.counts.size());
  std::vector<OwnedColumn> columns;
  columns.push_back({"Z", length, {}, {}});
  columns[0].buffers.push_back(own_buffer(std::move(words.offsets)));
  columns[0].buffers.push_back(own_buffer(std::move(words.bytes)));
  columns.push_back({"l", length, {own_buffer(std::move(words.counts))}, {}});
  columns.push_back({"l", length, {own_buffer(std::move(words.firsts))}, {}});
  return columns;
}

}  // namespace beam_bpe
