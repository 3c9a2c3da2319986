#include "recipes/wordpiece_trainer.h"

#include <algorithm>
#include <string_view>
#include <utility>

#include "memory/errors.h"
#include "memory/pair_key.h"

namespace beam_bpe {

namespace {

constexpr std::string_view kContinues = "##";
constexpr int64_t kProgressStep = 64;    // merges
constexpr size_t kLeastQueue = 1 << 16;  // entries before the queue is made anew
constexpr size_t kQueueFactor = 4;       // entries of a pair, on average, before that

}  // namespace

WordPieceTrainer::WordPieceTrainer(WordPieceWords words, WordPieceRules rules)
    : words_(std::move(words)),
      rules_(std::move(rules)),
      forbidden_(rules_.forbidden.begin(), rules_.forbidden.end()) {
  for (const std::string& text : rules_.reserved) add_symbol({text, false, 0});
  const auto first = static_cast<uint32_t>(symbols_.size());
  for (const WordPiece& piece : words_.alphabet) {
    if (symbol_of_.count(piece.written) != 0) {
      throw SettingsError("special token '" + piece.written + "' is a character of the alphabet");
    }
    add_symbol(piece);
  }
  for (uint32_t& symbol : words_.symbols) symbol += first;
  count_all();
}

uint32_t WordPieceTrainer::add_symbol(WordPiece piece) {
  const auto symbol = static_cast<uint32_t>(symbols_.size());
  symbol_of_.emplace(piece.written, symbol);
  symbols_.push_back({std::move(piece), 0, {}});
  return symbol;
}

void WordPieceTrainer::count_all() {
  for (uint32_t word = 0; word < words_.weights.size(); ++word) {
    const uint32_t* units = words_.symbols.data() + words_.starts[word];
    const auto size = static_cast<uint32_t>(words_.starts[word + 1] - words_.starts[word]);
    sizes_.push_back(size);
    for (uint32_t i = 0; i < size; ++i) {
      symbols_[units[i]].count += words_.weights[word];
      if (i + 1 < size) add_pair(units[i], units[i + 1], words_.weights[word], word);
    }
  }
  rebuild_queue();
}

void WordPieceTrainer::add_pair(uint32_t left, uint32_t right, int64_t weight, uint32_t word) {
  const uint64_t key = pair_key(left, right);
  uint32_t record = pairs_.find(key);
  if (record == PairIndex::kNone) {
    record = pairs_.insert(key);
    places_.emplace_back();
    places_[record].is_allowed = allows(key);
    symbols_[left].records.push_back(record);
    if (left != right) symbols_[right].records.push_back(record);
  }
  pairs_[record].count += weight;
  std::vector<uint32_t>& places = places_[record].words;
  if (places.empty() || places.back() != word) places.push_back(word);
}

bool WordPieceTrainer::allows(uint64_t key) const {
  const WordPiece& left = symbols_[left_of(key)].piece;
  const WordPiece& right = symbols_[right_of(key)].piece;
  const std::string made =
      left.written + std::string(right.written, right.continues ? kContinues.size() : 0);
  // The text of a word's beginning would read as that of a continuation.
  if (!left.continues && made.compare(0, kContinues.size(), kContinues) == 0) return false;
  return forbidden_.empty() || forbidden_.count(made) == 0;
}

uint64_t WordPieceTrainer::order_of(uint32_t record) {
  const uint64_t key = pairs_[record].key;
  if (rules_.tie_order != TieOrder::kFirst) return key;
  Places& places = places_[record];
  for (; places.head < places.words.size(); ++places.head) {
    const uint32_t word = places.words[places.head];
    const uint32_t* units = words_.symbols.data() + words_.starts[word];
    uint32_t characters = 0;  // in front: this does not change while the pair is there
    for (uint32_t i = 0; i + 1 < sizes_[word]; ++i) {
      if (pair_key(units[i], units[i + 1]) == key) return uint64_t{word} << 32 | characters;
      characters += symbols_[units[i]].piece.characters;
    }
  }
  return UINT64_MAX;
}

LikelihoodScore WordPieceTrainer::score_of(uint32_t record) {
  const PairRecord& pair = pairs_[record];
  return {pair.count, symbols_[left_of(pair.key)].count, symbols_[right_of(pair.key)].count};
}

// Whether `a` is merged before `b`.
bool WordPieceTrainer::before(const Entry& a, const Entry& b) const {
  const int compared = compare_scores(a.score, b.score);
  if (compared != 0) return compared > 0;
  if (rules_.tie_order != TieOrder::kBytes || a.order == b.order) return a.order < b.order;
  const auto written = [this](uint32_t symbol) -> const std::string& {
    return symbols_[symbol].piece.written;
  };
  if (left_of(a.order) != left_of(b.order)) return written(left_of(a.order)) < written(left_of(b.order));
  return written(right_of(a.order)) < written(right_of(b.order));
}

void WordPieceTrainer::push(uint32_t record) {
  queue_.push_back({score_of(record), order_of(record), record});
  std::push_heap(queue_.begin(), queue_.end(),
                 [this](const Entry& a, const Entry& b) { return before(b, a); });
}

// Queues the pairs of a symbol that can still be merged, but for those with the other symbols, which
// were queued before. Counts only fall, so that those below the least one are forgotten.
void WordPieceTrainer::push_all(uint32_t symbol, uint32_t but, uint32_t and_but) {
  std::vector<uint32_t>& records = symbols_[symbol].records;
  size_t kept = 0;
  for (const uint32_t record : records) {
    if (pairs_[record].count < rules_.min_frequency || !places_[record].is_allowed) continue;
    const uint64_t key = pairs_[record].key;
    records[kept++] = record;
    const uint32_t other = left_of(key) == symbol ? right_of(key) : left_of(key);
    if (other != but && other != and_but) push(record);
  }
  records.resize(kept);
}

void WordPieceTrainer::rebuild_queue() {
  queue_.clear();
  for (uint32_t record = 0; record < pairs_.size(); ++record) {
    if (pairs_[record].count < rules_.min_frequency || !places_[record].is_allowed) continue;
    queue_.push_back({score_of(record), order_of(record), record});
  }
  std::make_heap(queue_.begin(), queue_.end(),
                 [this](const Entry& a, const Entry& b) { return before(b, a); });
}

bool WordPieceTrainer::take_best(Entry* best) {
  while (!queue_.empty()) {
    std::pop_heap(queue_.begin(), queue_.end(),
                  [this](const Entry& a, const Entry& b) { return before(b, a); });
    *best = queue_.back();
    queue_.pop_back();
    if (best->score == score_of(best->record)) return true;
  }
  return false;
}

uint32_t WordPieceTrainer::made_by(uint32_t left, uint32_t right) {
  const WordPiece& l = symbols_[left].piece;
  const WordPiece& r = symbols_[right].piece;
  WordPiece made{l.written + std::string(r.written, r.continues ? kContinues.size() : 0),
                 l.continues, l.characters + r.characters};
  const auto known = symbol_of_.find(made.written);
  if (known == symbol_of_.end()) return add_symbol(std::move(made));
  symbols_[known->second].piece = std::move(made);  // a reserved one, which had no characters
  return known->second;
}

// Merges in one word, and counts what came and went; false if it holds the pair no more.
bool WordPieceTrainer::merge_in_word(uint32_t word, uint32_t left, uint32_t right, uint32_t made) {
  uint32_t* units = words_.symbols.data() + words_.starts[word];
  const uint32_t size = sizes_[word];
  uint32_t first = 0;
  while (first + 1 < size && (units[first] != left || units[first + 1] != right)) ++first;
  if (first + 1 >= size) return false;
  const int64_t weight = words_.weights[word];
  before_.assign(units, units + size);
  touched_.assign(size, 0);
  uint32_t write = 0;
  for (uint32_t read = 0; read < size;) {
    if (read + 1 < size && before_[read] == left && before_[read + 1] == right) {
      touched_[read] = touched_[read + 1] = 1;
      units[write++] = made;
      read += 2;
      symbols_[left].count -= weight;
      symbols_[right].count -= weight;
      symbols_[made].count += weight;
    } else {
      units[write++] = before_[read++];
    }
  }
  sizes_[word] = write;
  for (uint32_t i = 0; i + 1 < size; ++i) {
    if (touched_[i] == 0 && touched_[i + 1] == 0) continue;
    pairs_[pairs_.find(pair_key(before_[i], before_[i + 1]))].count -= weight;
  }
  for (uint32_t i = 0; i + 1 < write; ++i) {
    if (units[i] == made || units[i + 1] == made) add_pair(units[i], units[i + 1], weight, word);
  }
  return true;
}

uint32_t WordPieceTrainer::merge(uint32_t record) {
  const uint32_t left = left_of(pairs_[record].key);
  const uint32_t right = right_of(pairs_[record].key);
  const uint32_t made = made_by(left, right);
  const std::vector<uint32_t> words = std::move(places_[record].words);
  places_[record] = Places();
  for (const uint32_t word : words) merge_in_word(word, left, right, made);
  push_all(left, PairIndex::kNone, PairIndex::kNone);
  if (right != left) push_all(right, left, PairIndex::kNone);
  push_all(made, left, right);
  return made;
}

LearnedWordPieces WordPieceTrainer::train(const TrainingProgress& progress) {
  LearnedWordPieces learned{};
  const int64_t most = std::min(
      rules_.max_merges, std::max<int64_t>(0, rules_.max_tokens - static_cast<int64_t>(symbols_.size())));
  learned.stop_reason = StopReason::kVocabSize;
  Entry best{};
  while (static_cast<int64_t>(symbols_.size()) < rules_.max_tokens &&
         static_cast<int64_t>(learned.left.size()) < rules_.max_merges) {
    if (!take_best(&best)) {
      learned.stop_reason = StopReason::kExhausted;
      break;
    }
    const uint64_t key = pairs_[best.record].key;
    learned.left.push_back(left_of(key));
    learned.right.push_back(right_of(key));
    learned.scores.push_back(best.score);
    merge(best.record);
    if (queue_.size() > kLeastQueue && queue_.size() > kQueueFactor * pairs_.size()) rebuild_queue();
    const auto made = static_cast<int64_t>(learned.left.size());
    if (made % kProgressStep == 0) progress(made, most);
  }
  progress(static_cast<int64_t>(learned.left.size()), most);
  for (const Symbol& symbol : symbols_) learned.tokens.push_back(symbol.piece.written);
  return learned;
}

}  // namespace beam_bpe
