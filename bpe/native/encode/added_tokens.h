// Added tokens: texts with an id of their own that are found in a document before anything else.
//
// bpe/encoding/added_tokens.py is the specification. A set is searched from left to right for the longest
// token at the leftmost place; tokens that are looked for in the normal form are searched for in a
// second pass, between what the first one found.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace beam_bpe {

struct AddedToken {
  std::string text;  // to look for; not empty
  uint32_t id = 0;
  bool special = false;
  bool normalized = false;  // of the second pass
  bool lstrip = false;      // takes white space before it, too
  bool rstrip = false;      // and after it
  bool single_word = false; // only without word characters next to it
  size_t number = 0;        // among all added tokens; set by AddedTokens
};

// What a search is for.
struct AddedSearch {
  bool wanted = false;       // at all
  bool specials = false;     // special tokens count; if not, they are passed over as text
  bool first_pass = true;
  bool second_pass = true;   // alone: the text is a segment between two tokens of the first one
};

// Tokens of one pass: a trie, and a filter of two bytes before it.
class AddedTokenSet {
 public:
  // As small as this it is handed over in registers.
  struct Match {
    size_t end;
    const AddedToken* token;  // null: there is none

    size_t start() const { return end - token->text.size(); }
  };

  // Of tokens with the same text the first one counts. Keeps copies.
  explicit AddedTokenSet(std::vector<AddedToken> tokens);

  bool empty() const { return tokens_.empty(); }

  // The first match at or after `position`.
  Match find(const uint8_t* text, size_t size, size_t position) const;

 private:
  struct Node {
    uint32_t first_edge = 0;  // in edges_ and children_
    uint32_t edge_count = 0;
    uint32_t token = kNone;
    uint32_t only_child = 0;  // of a node with one edge, and its byte
    uint8_t only_byte = 0;
  };
  static constexpr uint32_t kNone = UINT32_MAX;

  Match longest_at(const uint8_t* text, size_t size, size_t start) const;
  Match longest_run_at(const uint8_t* text, size_t size, size_t start,
                       const std::vector<uint32_t>& tokens) const;
  void set_few_pairs();
  void set_runs(const std::vector<uint32_t>& sorted);
  void build_trie(const std::vector<uint32_t>& sorted);  // tokens in the order of their texts
  template <size_t count>
  size_t skip_few(const uint8_t* text, size_t size, size_t position) const;
  size_t skip(const uint8_t* text, size_t size, size_t position) const;
  bool may_start(const uint8_t* text) const {
    const unsigned pair = text[0] | unsigned{text[1]} << 8;
    return pairs_[pair >> 6] >> (pair & 63) & 1;
  }

  std::vector<AddedToken> tokens_;
  std::vector<Node> nodes_;
  std::vector<uint8_t> edges_;      // bytes that lead on, ascending in each node
  std::vector<uint32_t> children_;  // where they lead
  uint64_t pairs_[1 << 10] = {};    // first two bytes that a token may start with
  bool singles_[256] = {};          // first bytes of tokens of one byte

  // For each byte whose tokens of two such bytes and more are runs of it: the token to take from a
  // run of 0, 1, 2 … bytes, the last one from longer runs, too. Empty for other bytes.
  std::vector<uint32_t> runs_[256];

  // The same as pairs, if they are few: text without any is skipped by vectors.
  static constexpr size_t kFewPairs = 8;
  static constexpr size_t kVector = 16;
  size_t few_count_ = 0;                          // 0: they are more
  uint8_t few_first_[kFewPairs][kVector] = {};    // each byte, over and over
  uint8_t few_second_[kFewPairs][kVector] = {};
};

class AddedTokens {
 public:
  explicit AddedTokens(std::vector<AddedToken> tokens);

  bool empty() const { return first_.empty() && second_.empty(); }

  // Whether the text of a special token occurs; where none does, no search finds one.
  bool holds_special(const uint8_t* text, size_t size) const {
    return specials_.find(text, size, 0).token != nullptr;
  }

  // Adds up how often each special token is found, by number.
  void count_specials(const uint8_t* text, size_t size, AddedSearch search,
                      int64_t* counts) const;

  // Calls on_text(start, end) for each segment of ordinary text and on_token(start, end, token)
  // for each token, in order. Both may overlap where tokens take white space.
  template <class OnText, class OnToken>
  void cut(const uint8_t* text, size_t size, AddedSearch search, const OnText& on_text,
           const OnToken& on_token) const {
    const auto cut_again = [&](size_t start, size_t end) {
      pass(second_, text + start, end - start, search.specials,
           [&](size_t from, size_t to) { on_text(start + from, start + to); },
           [&](size_t from, size_t to, const AddedToken& token) {
             on_token(start + from, start + to, token);
           });
    };
    if (search.first_pass && (second_.empty() || !search.second_pass)) {
      pass(first_, text, size, search.specials, on_text, on_token);
    } else if (!search.first_pass || first_.empty()) {
      cut_again(0, size);
    } else {
      pass(first_, text, size, search.specials, cut_again, on_token);
    }
  }

 private:
  struct Numbered {
    std::vector<AddedToken> tokens;
  };
  explicit AddedTokens(const Numbered& all);

  template <class OnText, class OnToken>
  static void pass(const AddedTokenSet& set, const uint8_t* text, size_t size, bool specials,
                   const OnText& on_text, const OnToken& on_token) {
    size_t done = 0;  // after the token before, and the white space that it took
    if (!set.empty()) {
      for (auto match = set.find(text, size, 0); match.token;
           match = set.find(text, size, match.end)) {
        const AddedToken& token = *match.token;
        if (token.special && !specials) continue;
        size_t start = match.start();
        if (token.single_word && touches_word(text, size, start, match.end)) continue;
        size_t end = match.end;
        if (token.lstrip) {
          start = space_before(text, start);
          if (start < done) start = done;
        }
        if (token.rstrip) end = space_behind(text, size, end);
        if (done < start) on_text(done, start);
        // Nothing is left of white space that the token before took.
        if (start < end) on_token(start, end, token);
        done = start < end ? end : start;
      }
    }
    if (done != size) on_text(done, size);
  }

  static bool touches_word(const uint8_t* text, size_t size, size_t start, size_t end);
  static size_t space_before(const uint8_t* text, size_t position);
  static size_t space_behind(const uint8_t* text, size_t size, size_t position);

  AddedTokenSet first_;
  AddedTokenSet second_;
  AddedTokenSet specials_;  // of both passes
};

}  // namespace beam_bpe
