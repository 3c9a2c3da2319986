#include "scan/pattern_scan.h"

#include <algorithm>
#include <cstring>
#include <string>

#include "memory/errors.h"
#include "scan/decode_char.h"

namespace beam_bpe {
namespace {

constexpr uint32_t kDead = 0;  // row of the state from which no match goes on
constexpr size_t kMostStates = 100000;

// An entry for one match: twice the next state's row, and whether a match ends before the atom.
// An entry for one match after another: the next state's row, above these bits.
constexpr uint32_t kEmits = 1;   // a pre-token ends before the atom, and the next begins with it
constexpr uint32_t kMarks = 2;   // a match ends before the atom, and a longer one may follow
constexpr uint32_t kStops = 4;   // no match goes on: the last one counts, or there is none
constexpr uint32_t kFlagBits = 3;

// Characters that a scan may look at again for each byte, and at most beyond that. A pattern that
// looks over a long run again and again takes a time that grows with the square of it.
constexpr size_t kLooksPerByte = 64;
constexpr size_t kFreeLooks = size_t{1} << 22;

constexpr size_t kLaneBytes = 384;    // of text, about
constexpr size_t kLongestLook = 64;   // bytes in which a certain cut is looked for
constexpr size_t kFewestBytes = 256;  // of text, for more than one lane
constexpr size_t kLongestCharacter = 4;

std::string classes_of(const std::vector<uint32_t>& starts, const std::vector<uint8_t>& atoms) {
  if (starts.empty() || starts[0] != 0 || starts.size() != atoms.size()) {
    throw SettingsError("atoms: one is needed for each range, and the first range starts at 0");
  }
  std::string classes(kCodePoints, '\0');
  for (size_t i = 0; i < starts.size(); ++i) {
    const size_t end = i + 1 < starts.size() ? starts[i + 1] : kCodePoints;
    if (starts[i] >= end || end > kCodePoints) {
      throw SettingsError("starts: code points in ascending order are needed");
    }
    classes.replace(starts[i], end - starts[i], end - starts[i], static_cast<char>(atoms[i]));
  }
  return classes;
}

}  // namespace

// How much of a text was looked at more than once.
class PatternScan::Looks {
 public:
  // The text from `first` to `last` was looked at.
  void add(const uint8_t* first, const uint8_t* last) {
    const uint8_t* const known = std::min(last, farthest_);
    if (known > first) again_ += static_cast<size_t>(known - first);
    farthest_ = std::max(farthest_, last);
  }

  // Throws SettingsError if that is out of proportion to the text.
  void check(size_t text_bytes) const {
    if (again_ <= kFreeLooks || again_ / kLooksPerByte <= text_bytes) return;
    throw SettingsError(
        "the pre-tokenizer's pattern looks at the same text again and again; write it without "
        "nested or overlapping repetitions");
  }

 private:
  const uint8_t* farthest_ = nullptr;
  size_t again_ = 0;  // bytes
};

struct PatternScan::Search {
  const uint8_t* text;
  size_t length;
  Looks* looks;
};

// A part of a document that is scanned by itself. Lanes take turns, character by character: a
// processor works on several at once, where one would wait for each state to look up the next.
struct PatternScan::Lane {
  const uint8_t* base;  // what `out` counts from
  const uint8_t* at;
  const uint8_t* stop;
  const uint8_t* last;  // end of the last match; start of the pre-token if there was none
  uint32_t* out;        // ends
  uint32_t row;
  const uint8_t* begin;
  uint32_t* first_out;
  Looks* looks;

  // Of the pre-token that `at` is in.
  const uint8_t* start() const { return out == first_out ? begin : base + out[-1]; }
  size_t left() const { return static_cast<size_t>(stop - at); }
  size_t size() const { return static_cast<size_t>(stop - begin); }
  void emit(const uint8_t* end) { *out++ = static_cast<uint32_t>(end - base); }
};

PatternScan::PatternScan(const Tables& tables)
    : classes_(make_class_tables(classes_of(tables.starts, tables.atoms))) {
  check(tables);
  width_ = static_cast<uint32_t>(tables.next_states[0].size());
  for (size_t state = 0; state < tables.next_states.size(); ++state) {
    for (size_t atom = 0; atom < width_; ++atom) {
      searches_.push_back(tables.next_states[state][atom] * width_ << 1 |
                          static_cast<uint32_t>(tables.ends[state][atom]));
    }
  }
  for (const std::vector<bool>& row : tables.certain_cuts) {
    cuts_.insert(cuts_.end(), row.begin(), row.end());
  }
  for (size_t i = 0; i < searches_.size(); ++i) {
    const uint32_t next = searches_[i] >> 1;
    const bool is_end = searches_[i] & 1;
    // Where a match ends, what follows it begins with the atom.
    const uint32_t after = searches_[width_ + i % width_] >> 1;
    uint32_t flags = is_end ? kMarks : 0;
    if (next == kDead) flags = is_end ? kEmits : 0;
    const uint32_t goes_on = next == kDead && is_end ? after : next;
    if (goes_on == kDead) flags |= kStops;
    entries_.push_back(goes_on << kFlagBits | flags);
  }
}

void PatternScan::check(const Tables& tables) const {
  const size_t states = tables.next_states.size();
  if (states < 2 || states > kMostStates || tables.ends.size() != states) {
    throw SettingsError("states: from two to 100,000 are needed, with as many rows of ends");
  }
  const size_t width = tables.next_states[0].size();
  if (width == 0 || tables.certain_cuts.size() != width - 1) {
    throw SettingsError("certain_cuts: a row for each atom is needed");
  }
  for (const std::vector<bool>& row : tables.certain_cuts) {
    if (row.size() != width - 1) throw SettingsError("certain_cuts: a row has too few atoms");
  }
  for (const uint8_t atom : tables.atoms) {
    if (atom + size_t{1} >= width) throw SettingsError("atoms: one has no column");
  }
  for (size_t state = 0; state < states; ++state) {
    if (tables.next_states[state].size() != width || tables.ends[state].size() != width) {
      throw SettingsError("states: all need as many columns");
    }
    for (const uint32_t next : tables.next_states[state]) {
      if (next >= states) throw SettingsError("states: one goes on at none");
    }
  }
}

// End of the match that begins at `position`; `position` if none does.
size_t PatternScan::match_end(Search& search, size_t position) const {
  uint32_t row = width_;
  size_t end = position;
  size_t at = position;
  while (at < search.length) {
    const Char next = decode_char(*classes_, search.text + at, search.length - at);
    const uint32_t entry = searches_[row + next.classes];
    end = entry & 1 ? at : end;
    row = entry >> 1;
    if (row == kDead) {
      search.looks->add(search.text + position, search.text + at);
      return end;
    }
    at += next.size;
  }
  search.looks->add(search.text + position, search.text + at);
  return searches_[row + width_ - 1] & 1 ? search.length : end;
}

// End of the match that begins at `position`, or else where the next one begins.
size_t PatternScan::next_boundary(Search& search, size_t position) const {
  const size_t end = match_end(search, position);
  if (end != position) return end;
  for (size_t at = position; at < search.length;) {
    const Char first = decode_char(*classes_, search.text + at, search.length - at);
    at += first.size;
    // Where a character leads to one state from the start and from there, all characters of its
    // kind that follow are in no match, as the first is.
    const uint32_t row = searches_[width_ + first.classes] >> 1;
    const bool stays = row != kDead && searches_[row + first.classes] >> 1 == row;
    while (stays && at < search.length) {
      const Char next = decode_char(*classes_, search.text + at, search.length - at);
      if (next.classes != first.classes) break;
      at += next.size;
    }
    if (at < search.length && match_end(search, at) != at) return at;
  }
  return search.length;
}

// Takes a character; whether the lane has to go back.
inline bool PatternScan::step(Lane& lane) const {
  const Char next = decode_char(*classes_, lane.at, lane.left());
  const uint32_t entry = entries_[lane.row + next.classes];
  *lane.out = static_cast<uint32_t>(lane.at - lane.base);
  lane.out += entry & kEmits;
  lane.last = entry & (kEmits | kMarks) ? lane.at : lane.last;
  lane.row = entry >> kFlagBits;
  if (__builtin_expect(entry & kStops, 0)) return true;
  lane.at += next.size;
  return false;
}

// Where no match goes on from the lane's state: ends the pre-token with its last match, or where
// the next match begins.
void PatternScan::go_back(Lane& lane) const {
  if (lane.last > lane.start()) {
    lane.looks->add(lane.last, lane.at);
  } else {
    Search search{lane.start(), static_cast<size_t>(lane.stop - lane.start()), lane.looks};
    lane.last = search.text + next_boundary(search, 0);
  }
  lane.looks->check(lane.size());
  lane.emit(lane.last);
  lane.at = lane.last;
  lane.row = width_;
}

// Scans a lane to its end.
void PatternScan::finish(Lane& lane) const {
  while (lane.start() != lane.stop) {
    if (lane.at == lane.stop) {
      if (searches_[lane.row + width_ - 1] & 1) {
        lane.emit(lane.stop);
      } else {
        go_back(lane);
      }
    } else if (step(lane)) {
      go_back(lane);
    }
  }
}

// Scans lanes side by side until one is near its end.
void PatternScan::scan_together(Lane (&lanes)[kLanes]) const {
  // Local copies, since ends are written through pointers that the compiler could take for theirs.
  Lane a = lanes[0], b = lanes[1], c = lanes[2], d = lanes[3];
  const auto advance = [this](Lane& lane) {
    if (!step(lane)) return false;
    Lane copy = lane;
    go_back(copy);
    lane = copy;
    return true;
  };
  for (;;) {
    size_t steps = std::min({a.left(), b.left(), c.left(), d.left()}) / kLongestCharacter;
    if (steps == 0) break;
    bool went_back = false;
    while (steps-- > 0 && !went_back) {
      went_back = advance(a);
      went_back |= advance(b);
      went_back |= advance(c);
      went_back |= advance(d);
    }
  }
  lanes[0] = a, lanes[1] = b, lanes[2] = c, lanes[3] = d;
}

// First certain cut after `position`, less than kLongestLook bytes on; 0 if there is none.
size_t PatternScan::find_cut(const ScanText& document, size_t position) const {
  const size_t end = std::min(document.length, position + kLongestLook);
  for (size_t i = 0; i < 3 && position < end && is_continuation(document.text[position]); ++i) {
    ++position;  // of a character that begins before
  }
  const uint8_t* row = nullptr;
  while (position < end) {
    const Char next = decode_char(*classes_, document.text + position, document.length - position);
    if (row != nullptr && row[next.classes]) return position;
    row = &cuts_[next.classes * (width_ - 1)];
    position += next.size;
  }
  return 0;
}

// In lanes that begin at certain cuts; no pre-token where there are too few of those.
ScanResult PatternScan::scan_lanes(const ScanText& document, size_t position, uint32_t* ends,
                                   size_t capacity) const {
  const size_t lane_bytes =
      std::min({kLaneBytes, capacity / 2, (document.length - position) / kLanes});
  size_t borders[kLanes + 1] = {position};
  for (size_t i = 1; i <= kLanes; ++i) {
    const size_t mark = position + i * lane_bytes;
    const bool is_end = i == kLanes && document.length - mark < kLongestLook;
    borders[i] = is_end ? document.length : find_cut(document, mark);
    if (borders[i] <= borders[i - 1]) return {0, position};
  }
  uint32_t buffers[kLanes][kLaneBytes + kLongestLook];
  const uint8_t* const base = document.text + position - document.shift;
  Lane lanes[kLanes];
  Looks looks[kLanes];
  for (size_t i = 0; i < kLanes; ++i) {
    const uint8_t* const begin = document.text + borders[i];
    uint32_t* const out = i ? buffers[i] : ends;
    lanes[i] = {base, begin, document.text + borders[i + 1], begin, out, width_, begin, out, &looks[i]};
  }
  scan_together(lanes);
  size_t count = 0;
  for (size_t i = 0; i < kLanes; ++i) {
    finish(lanes[i]);
    const size_t found =
        std::min(static_cast<size_t>(lanes[i].out - lanes[i].first_out), capacity - count);
    if (i) std::memcpy(ends + count, buffers[i], found * sizeof(uint32_t));
    count += found;
  }
  return {count, position + ends[count - 1] - document.shift};
}

ScanResult PatternScan::scan_slowly(const ScanText& document, size_t position, uint32_t* ends,
                                    size_t capacity) const {
  Looks looks;
  Search search{document.text, document.length, &looks};
  const size_t origin = position - document.shift;  // of what is in `ends`; may wrap
  const size_t begin = position;
  size_t count = 0;
  while (count < capacity && position < document.length) {
    const size_t next = next_boundary(search, position);
    if (next - origin > UINT32_MAX && count) break;
    position = next;
    ends[count++] = static_cast<uint32_t>(position - origin);
    looks.check(position - begin);
  }
  return {count, position};
}

ScanResult PatternScan::scan(const ScanText& document, size_t position, uint32_t* ends,
                             size_t capacity) const {
  const size_t left = document.length - position;
  if (left <= kFewestBytes && left <= capacity) {
    const uint8_t* const begin = document.text + position;
    Looks looks;
    Lane lane{begin - document.shift, begin, begin + left, begin, ends, width_, begin, ends, &looks};
    finish(lane);
    return {static_cast<size_t>(lane.out - ends), document.length};
  }
  if (capacity >= kFewestBytes) {
    const ScanResult found = scan_lanes(document, position, ends, capacity);
    if (found.count) return found;
  }
  return scan_slowly(document, position, ends, capacity);
}

}  // namespace beam_bpe
