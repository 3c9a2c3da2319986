#include "scan/normal_tables.h"

#include <algorithm>
#include <iterator>

#include "memory/pair_key.h"
#include "scan/normalization_tables.h"

namespace beam_bpe {
namespace {

// Hangul syllables are composed by arithmetic: Unicode Standard, section 3.12.
constexpr uint32_t kSyllables = 0xAC00, kLeads = 0x1100, kVowels = 0x1161, kTails = 0x11A7;
constexpr uint32_t kLeadCount = 19, kVowelCount = 21, kTailCount = 28;
constexpr uint32_t kSyllableCount = kLeadCount * kVowelCount * kTailCount;

bool is_syllable(uint32_t code_point) { return code_point - kSyllables < kSyllableCount; }

template <class Ranges>
bool holds(const Ranges& ranges, uint32_t code_point) {
  const auto after = std::upper_bound(std::begin(ranges), std::end(ranges), code_point,
                                      [](uint32_t key, const auto& range) { return key < range.first; });
  return after != std::begin(ranges) && code_point <= std::prev(after)->last;
}

bool is_known(uint32_t code_point, bool is_latest) {
  return is_latest || !holds(kLater, code_point);
}

std::unordered_map<uint32_t, std::vector<uint32_t>> steps_of(bool is_compatibility,
                                                            bool is_latest) {
  std::unordered_map<uint32_t, std::vector<uint32_t>> steps;
  for (const DecompositionRange& range : kDecompositionRanges) {
    if (range.is_compatibility != is_compatibility) continue;
    for (uint32_t code_point = range.first; code_point <= range.last; ++code_point) {
      if (!is_known(code_point, is_latest)) continue;
      const uint32_t* targets = kDecompositionTargets + range.start;
      std::vector<uint32_t> step(targets, targets + range.size);
      step.back() += code_point - range.first;
      steps.emplace(code_point, std::move(step));
    }
  }
  return steps;
}

// Appends the full decomposition. The tables have no cycles and few levels.
void expand(uint32_t code_point, const std::unordered_map<uint32_t, std::vector<uint32_t>>& steps,
            std::vector<uint32_t>& into) {
  const auto step = steps.find(code_point);
  if (step == steps.end()) {
    into.push_back(code_point);
    return;
  }
  for (const uint32_t part : step->second) expand(part, steps, into);
}

}  // namespace

NormalTables::NormalTables(bool composes, bool is_compatibility, bool is_latest)
    : composes_(composes) {
  for (const CombiningRange& range : kCombiningRanges) {
    for (uint32_t code_point = range.first; code_point <= range.last; ++code_point) {
      if (!is_known(code_point, is_latest)) continue;
      NormalProperty& property = properties_.at(code_point);
      property.combining_class = range.value;
      property.is_boundary = false;
    }
  }
  const Steps canonical = steps_of(false, is_latest);
  Steps steps = canonical;
  if (is_compatibility) steps.merge(steps_of(true, is_latest));
  std::vector<uint32_t> code_points;
  for (const auto& [code_point, step] : steps) {
    set_decomposition(code_point, steps);
    code_points.push_back(code_point);
  }
  if (composes_) {
    set_composites(canonical, is_latest);
  } else {
    for (uint32_t i = 0; i < kSyllableCount; ++i) properties_.at(kSyllables + i).is_quick = false;
  }
  set_flags(code_points);
}

void NormalTables::set_decomposition(uint32_t code_point, const Steps& steps) {
  NormalProperty& property = properties_.at(code_point);
  property.start = static_cast<uint32_t>(decomposed_.size());
  expand(code_point, steps, decomposed_);
  property.size = static_cast<uint8_t>(decomposed_.size() - property.start);
}

// The pairs that compose, and the marks of what may be the second of one.
void NormalTables::set_composites(const Steps& canonical, bool is_latest) {
  for (const auto& [code_point, step] : canonical) {
    if (step.size() != 2 || holds(kExclusions, code_point)) continue;
    if (!is_known(code_point, is_latest)) continue;
    composites_.emplace(pair_key(step[0], step[1]), code_point);
    NormalProperty& second = properties_.at(step[1]);
    second.is_quick = second.is_boundary = false;
  }
  const auto join = [this](uint32_t first, uint32_t count) {
    for (uint32_t i = 0; i < count; ++i) {
      NormalProperty& jamo = properties_.at(first + i);
      jamo.is_quick = jamo.is_boundary = false;
    }
  };
  join(kVowels, kVowelCount);
  join(kTails + 1, kTailCount - 1);
}

// What decomposes is a boundary if its first part is, and quick if it is composed again as it was.
void NormalTables::set_flags(const std::vector<uint32_t>& code_points) {
  std::vector<uint32_t> form;
  for (const uint32_t code_point : code_points) {
    NormalProperty& property = properties_.at(code_point);
    property.is_boundary = property.is_boundary && properties_[decomposed_[property.start]].is_boundary;
    form.clear();
    append_decomposed(code_point, form);
    arrange(form);
    property.is_quick = property.is_quick && property.is_boundary && form.size() == 1 &&
                        form[0] == code_point;
  }
}

void NormalTables::append_decomposed(uint32_t code_point, std::vector<uint32_t>& code_points) const {
  const NormalProperty& property = properties_[code_point];
  if (property.size > 0) {
    const uint32_t* parts = decomposed_.data() + property.start;
    code_points.insert(code_points.end(), parts, parts + property.size);
  } else if (is_syllable(code_point)) {
    const uint32_t index = code_point - kSyllables;
    const uint32_t tail = index % kTailCount;
    code_points.push_back(kLeads + index / kTailCount / kVowelCount);
    code_points.push_back(kVowels + index / kTailCount % kVowelCount);
    if (tail > 0) code_points.push_back(kTails + tail);
  } else {
    code_points.push_back(code_point);
  }
}

void NormalTables::arrange(std::vector<uint32_t>& code_points) const {
  order(code_points);
  if (composes_) compose(code_points);
}

void NormalTables::order(std::vector<uint32_t>& code_points) const {
  const auto class_of = [this](uint32_t code_point) {
    return properties_[code_point].combining_class;
  };
  const auto is_starter = [&](uint32_t code_point) { return class_of(code_point) == 0; };
  const auto lower = [&](uint32_t a, uint32_t b) { return class_of(a) < class_of(b); };
  auto at = code_points.begin();
  while (at != code_points.end()) {
    const auto marks = std::find_if_not(at, code_points.end(), is_starter);
    at = std::find_if(marks, code_points.end(), is_starter);
    if (at - marks > 1) std::stable_sort(marks, at, lower);
  }
}

// Composes each with the last starter, unless one between them blocks it.
void NormalTables::compose(std::vector<uint32_t>& code_points) const {
  size_t starter = code_points.size();  // where the last starter is; the size: none yet
  int last_class = -1;                  // of the last after it that stayed
  size_t kept = 0;
  for (const uint32_t code_point : code_points) {
    const int this_class = properties_[code_point].combining_class;
    if (starter < code_points.size() && last_class < this_class) {
      const uint32_t composite = composite_of(code_points[starter], code_point);
      if (composite != 0) {
        code_points[starter] = composite;
        continue;
      }
    }
    last_class = this_class;
    if (this_class == 0) {
      starter = kept;
      last_class = -1;
    }
    code_points[kept++] = code_point;
  }
  code_points.resize(kept);
}

// 0 if the two do not compose.
uint32_t NormalTables::composite_of(uint32_t first, uint32_t second) const {
  const uint32_t lead = first - kLeads;
  const uint32_t vowel = second - kVowels;
  if (lead < kLeadCount && vowel < kVowelCount) {
    return kSyllables + (lead * kVowelCount + vowel) * kTailCount;
  }
  const uint32_t tail = second - kTails;
  if (is_syllable(first) && (first - kSyllables) % kTailCount == 0 && tail - 1 < kTailCount - 1) {
    return first + tail;
  }
  const auto found = composites_.find(pair_key(first, second));
  return found == composites_.end() ? 0 : found->second;
}

}  // namespace beam_bpe
