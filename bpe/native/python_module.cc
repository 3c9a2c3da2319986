// The Python face of the native core: converts arguments and results, releases the GIL, and turns
// the core's errors into the classes of bpe/errors.py. bpe/_native.pyi documents every name.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include <optional>

#include "arrow_columns.h"
#include "batch_encoder.h"
#include "cpu_dispatch.h"
#include "errors.h"
#include "merge_applier.h"
#include "pair_counts.h"
#include "round_simulation.h"
#include "segment_cutter.h"
#include "token_decoder.h"
#include "training.h"
#include "word_counter.h"

namespace py = pybind11;

namespace beam_bpe {
namespace {

// An Arrow column that Python handed in, kept alive while the core reads it.
class ImportedColumn {
 public:
  explicit ImportedColumn(const py::object& column) {
    py::tuple capsules = column.attr("__arrow_c_array__")();
    schema_ = capsules[0];
    array_ = capsules[1];
  }

  const ArrowSchema& schema() const { return *schema_.get_pointer<ArrowSchema>(); }
  const ArrowArray& array() const { return *array_.get_pointer<ArrowArray>(); }
  IdColumn ids(const char* what) const { return {schema(), array(), what}; }
  BinaryColumn binary(const char* what) const { return {schema(), array(), what}; }
  Int64Column int64(const char* what) const { return {schema(), array(), what}; }

 private:
  py::capsule schema_;
  py::capsule array_;
};

// A result on its way to pyarrow, which takes it through Arrow's capsule protocol, once.
class ExportedColumn {
 public:
  explicit ExportedColumn(OwnedColumn column) : column_(std::move(column)) {}

  // `schema`: the type that the consumer would like; the protocol lets us ignore it.
  py::tuple export_capsules(const py::object& schema) {
    static_cast<void>(schema);
    if (taken_) throw py::value_error("this column was handed over already");
    taken_ = true;
    auto* exported_schema = new ArrowSchema;
    auto* exported_array = new ArrowArray;
    export_column(std::move(column_), exported_schema, exported_array);
    return py::make_tuple(
        py::capsule(exported_schema, "arrow_schema", &drop<ArrowSchema, capsule_name_schema>),
        py::capsule(exported_array, "arrow_array", &drop<ArrowArray, capsule_name_array>));
  }

 private:
  static constexpr const char* capsule_name_schema() { return "arrow_schema"; }
  static constexpr const char* capsule_name_array() { return "arrow_array"; }

  // A consumer marks what it took as released; what nobody took is released here.
  template <class Structure, const char* (*Name)()>
  static void drop(PyObject* capsule) {
    auto* structure = static_cast<Structure*>(PyCapsule_GetPointer(capsule, Name()));
    if (structure->release != nullptr) structure->release(structure);
    delete structure;
  }

  OwnedColumn column_;
  bool taken_ = false;
};

std::optional<SchemeId> scheme_of(const std::optional<std::string>& name) {
  if (!name.has_value()) return std::nullopt;
  const char* const names[] = {"gpt2", "cl100k", "o200k", "llama3", "qwen2", "whitespace"};
  for (size_t i = 0; i < kSchemeCount; ++i) {
    if (*name == names[i]) return static_cast<SchemeId>(i);
  }
  throw SettingsError("no native scan for the scheme '" + *name + "'");
}

// Calls the user's function, and lets Ctrl-C end the work.
TrainingProgress progress_of(const py::object& callback) {
  return [callback](int64_t done, int64_t most) {
    py::gil_scoped_acquire gil;
    if (PyErr_CheckSignals() != 0) throw py::error_already_set();
    if (!callback.is_none()) callback(done, most);
  };
}

TrainingRules rules_of(int64_t max_merges, const std::string& tie_order, int64_t min_frequency,
                       std::optional<int64_t> max_token_bytes,
                       const std::vector<py::bytes>& forbidden, std::optional<int64_t> max_words,
                       const std::vector<py::bytes>& forbidden_parts, size_t spare_seams) {
  TrainingRules rules;
  rules.spare_seams = spare_seams;
  rules.max_merges = max_merges;
  rules.tie_order = parse_tie_order(tie_order);
  rules.min_frequency = min_frequency;
  const auto limit = [](const char* name, std::optional<int64_t> value) {
    if (value.value_or(1) < 1) throw SettingsError(std::string(name) + " must be at least 1");
    return static_cast<uint64_t>(value.value_or(0));
  };
  rules.limits.max_token_bytes = limit("max_token_bytes", max_token_bytes);
  rules.limits.max_words = limit("max_words", max_words);
  for (const py::bytes& text : forbidden) rules.limits.forbidden.emplace_back(text);
  for (const py::bytes& part : forbidden_parts) rules.limits.forbidden_parts.emplace_back(part);
  return rules;
}

const char* name_of(StopReason reason) {
  if (reason == StopReason::kVocabSize) return "vocab_size";
  return reason == StopReason::kMinFrequency ? "min_frequency" : "exhausted";
}

py::tuple merges_to_python(const LearnedMerges& learned) {
  std::vector<py::bytes> tokens;
  tokens.reserve(learned.tokens.size());
  for (size_t id = 0; id < learned.tokens.size(); ++id) tokens.emplace_back(learned.tokens[id]);
  py::list merges(learned.left.size());
  py::list counts(learned.left.size());
  for (size_t i = 0; i < learned.left.size(); ++i) {
    merges[i] = py::make_tuple(tokens[learned.left[i]], tokens[learned.right[i]]);
    counts[i] = py::int_(learned.counts[i]);
  }
  return py::make_tuple(merges, counts, name_of(learned.stop_reason));
}

py::tuple train_words_from_python(const py::object& words, const py::object& counts,
                                  const py::object& first_positions, int64_t max_merges,
                                  const std::string& tie_order, int64_t min_frequency,
                                  std::optional<int64_t> max_token_bytes,
                                  const std::vector<py::bytes>& forbidden,
                                  const py::object& progress, size_t spare_seams,
                                  std::optional<int64_t> max_words,
                                  const std::vector<py::bytes>& forbidden_parts) {
  const TrainingRules rules = rules_of(max_merges, tie_order, min_frequency, max_token_bytes,
                                       forbidden, max_words, forbidden_parts, spare_seams);
  const ImportedColumn word_column(words);
  const ImportedColumn count_column(counts);
  std::optional<ImportedColumn> first_column;
  Int64Column first;
  if (!first_positions.is_none()) {
    first_column.emplace(first_positions);
    first = first_column->int64("first_positions");
  }
  const auto report = progress_of(progress);
  const LearnedMerges learned = [&] {
    const BinaryColumn word_view = word_column.binary("words");
    const Int64Column count_view = count_column.int64("counts");
    py::gil_scoped_release release;
    return train_words(word_view, count_view, first_column.has_value() ? &first : nullptr, rules,
                       report);
  }();
  return merges_to_python(learned);
}

py::tuple train_raw_from_python(const py::object& documents, int64_t max_merges,
                                const std::string& tie_order, int64_t min_frequency,
                                std::optional<int64_t> max_token_bytes,
                                const std::vector<py::bytes>& forbidden,
                                const py::object& progress, size_t spare_seams,
                                std::optional<int64_t> max_words,
                                const std::vector<py::bytes>& forbidden_parts) {
  const TrainingRules rules = rules_of(max_merges, tie_order, min_frequency, max_token_bytes,
                                       forbidden, max_words, forbidden_parts, spare_seams);
  const ImportedColumn column(documents);
  const auto report = progress_of(progress);
  const LearnedMerges learned = [&] {
    const BinaryColumn view = column.binary("documents");
    py::gil_scoped_release release;
    return train_raw(view, rules, report);
  }();
  return merges_to_python(learned);
}

void add_column(WordCounter& counter, const py::object& texts,
                void (WordCounter::*add)(const BinaryColumn&)) {
  const ImportedColumn column(texts);
  const BinaryColumn view = column.binary("texts");
  py::gil_scoped_release release;
  (counter.*add)(view);
}

py::tuple drain_counter(WordCounter& counter) {
  WordCounts words = [&counter] {
    py::gil_scoped_release release;
    return counter.drain();
  }();
  const auto length = static_cast<int64_t>(words.counts.size());
  OwnedColumn bytes{"Z", length, {}, {}};
  bytes.buffers.push_back(own_buffer(std::move(words.offsets)));
  bytes.buffers.push_back(own_buffer(std::move(words.bytes)));
  OwnedColumn counts{"l", length, {own_buffer(std::move(words.counts))}, {}};
  OwnedColumn firsts{"l", length, {own_buffer(std::move(words.firsts))}, {}};
  return py::make_tuple(ExportedColumn(std::move(bytes)), ExportedColumn(std::move(counts)),
                        ExportedColumn(std::move(firsts)));
}

void define_counting(py::module_& module) {
  py::class_<WordCounter>(module, "WordCounter")
      .def(py::init([](const std::optional<std::string>& scheme, int threads) {
             return WordCounter(scheme_of(scheme), threads);
           }),
           py::arg("scheme"), py::kw_only(), py::arg("threads"))
      .def("add_documents",
           [](WordCounter& counter, const py::object& texts) {
             add_column(counter, texts, &WordCounter::add_documents);
           },
           py::arg("texts"))
      .def("add_words",
           [](WordCounter& counter, const py::object& words) {
             add_column(counter, words, &WordCounter::add_words);
           },
           py::arg("words"))
      .def_property_readonly("memory_bytes", &WordCounter::memory_bytes)
      .def("drain", &drain_counter);
}

// Ids to bytes and back for one model; safe to use from several Python threads.
class Codec {
 public:
  Codec(const py::dict& tokens, std::vector<std::array<uint32_t, 3>> merges, bool whole_piece,
        const std::optional<std::string>& scheme, size_t cache_bytes) {
    EncodingModel model;
    for (const auto& [id, token] : tokens) {
      model.ids.push_back(py::cast<uint32_t>(id));
      model.tokens.push_back(py::cast<std::string>(token));
    }
    for (const auto& [left, right, result] : merges) model.merges.push_back({left, right, result});
    model.whole_piece = whole_piece;
    model.has_scheme = scheme.has_value();
    model.scheme = scheme_of(scheme).value_or(SchemeId::gpt2);
    const py::gil_scoped_release release;
    decoder_ = std::make_unique<TokenDecoder>(model.ids, model.tokens);
    encoder_ = std::make_unique<BatchEncoder>(std::move(model), cache_bytes);
  }

  py::array_t<uint32_t> encode(const py::bytes& document) {
    const std::string_view text(document);
    const IdBuffer ids = [&] {
      const py::gil_scoped_release release;
      return encoder_->encode(text);
    }();
    py::array_t<uint32_t> result(static_cast<py::ssize_t>(ids.size()));
    if (ids.id_bytes() == 2) {
      const auto* values = static_cast<const uint16_t*>(ids.data());
      std::copy(values, values + ids.size(), result.mutable_data());
    } else {
      const auto* values = static_cast<const uint32_t*>(ids.data());
      std::copy(values, values + ids.size(), result.mutable_data());
    }
    return result;
  }

  ExportedColumn encode_documents(const py::object& documents, size_t threads) {
    const ImportedColumn column(documents);
    const BinaryColumn view = column.binary("texts");
    const py::gil_scoped_release release;
    return ExportedColumn(encoder_->encode_documents(view, threads));
  }

  ExportedColumn encode_split_documents(const py::object& documents, const py::object& piece_ends,
                                        const py::object& first_pieces) {
    const ImportedColumn column(documents);
    const ImportedColumn ends(piece_ends);
    const ImportedColumn firsts(first_pieces);
    const BinaryColumn view = column.binary("texts");
    const Int64Column end_view = ends.int64("piece_ends");
    const Int64Column first_view = firsts.int64("first_pieces");
    const py::gil_scoped_release release;
    return ExportedColumn(encoder_->encode_split_documents(view, end_view, first_view));
  }

  py::bytes decode(const py::object& ids) const {
    const ImportedColumn column(ids);
    const IdColumn view = column.ids("ids");
    return view.visit([&](const auto* values) {
      const auto count = static_cast<size_t>(view.length);
      const size_t size = [&] {
        const py::gil_scoped_release release;
        return decoder_->decoded_size(values, count);
      }();
      auto text = py::reinterpret_steal<py::bytes>(
          PyBytes_FromStringAndSize(nullptr, static_cast<py::ssize_t>(size)));
      if (!text) throw py::error_already_set();
      char* out = PyBytes_AS_STRING(text.ptr());
      const py::gil_scoped_release release;  // nobody else knows the new object yet
      decoder_->decode(values, count, out, size);
      return text;
    });
  }

  ExportedColumn decode_lists(const py::object& ids, const py::object& offsets,
                              size_t threads) const {
    const ImportedColumn id_column(ids);
    const ImportedColumn offset_column(offsets);
    const IdColumn view = id_column.ids("ids");
    const Int64Column offset_view = offset_column.int64("offsets");
    const py::gil_scoped_release release;
    return view.visit([&](const auto* values) {
      return ExportedColumn(
          decoder_->decode_lists(values, view.length, offset_view, threads));
    });
  }

  bool wide_ids() const { return encoder_->id_bytes() == 4; }

 private:
  std::unique_ptr<TokenDecoder> decoder_;
  std::unique_ptr<BatchEncoder> encoder_;
};

void define_codec(py::module_& module) {
  py::class_<Codec>(module, "Codec")
      .def(py::init<const py::dict&, std::vector<std::array<uint32_t, 3>>, bool,
                    const std::optional<std::string>&, size_t>(),
           py::kw_only(), py::arg("tokens"), py::arg("merges"), py::arg("whole_piece"),
           py::arg("scheme"), py::arg("cache_bytes"))
      .def_property_readonly("wide_ids", &Codec::wide_ids)
      .def("encode", &Codec::encode, py::arg("data"))
      .def("encode_documents", &Codec::encode_documents, py::arg("texts"), py::kw_only(),
           py::arg("threads"))
      .def("encode_split_documents", &Codec::encode_split_documents, py::arg("texts"),
           py::arg("piece_ends"), py::arg("first_pieces"))
      .def("decode", &Codec::decode, py::arg("ids"))
      .def("decode_lists", &Codec::decode_lists, py::arg("ids"), py::arg("offsets"),
           py::kw_only(), py::arg("threads"));
}

std::vector<std::string> available_isas() {
  std::vector<std::string> names;
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512}) {
    if (has_isa(isa)) names.emplace_back(isa_name(isa));
  }
  return names;
}

// Ends of the pre-tokens of a document, by the scan of one instruction set, `batch` at a time.
py::array_t<uint64_t> scan_ends(const py::bytes& data, const std::string& scheme,
                                const std::string& isa_wanted, size_t batch) {
  const ScanFunctions* scans = nullptr;
  for (const Isa isa : {Isa::scalar, Isa::avx2, Isa::avx512}) {
    if (isa_wanted == isa_name(isa) && has_isa(isa)) scans = &scans_of(isa);
  }
  if (scans == nullptr) throw SettingsError("this machine has no '" + isa_wanted + "'");
  if (batch == 0) throw SettingsError("batch is 0: it must be at least 1");
  const std::string_view text(data);
  // A copy of exactly the right size: a scan that reads past the end is caught by sanitizers.
  const std::vector<uint8_t> bytes(text.begin(), text.end());
  std::vector<uint32_t> ends(batch + kScanSlack);
  std::vector<uint64_t> found;
  for (size_t position = 0; position < bytes.size();) {
    const ScanResult result = (*scans)[*scheme_of(scheme)](bytes.data(), bytes.size(), position,
                                                          ends.data(), batch);
    if (result.count == 0 || result.count > batch || result.position <= position) {
      throw std::logic_error("a scan did not keep to its contract");
    }
    for (size_t i = 0; i < result.count; ++i) found.push_back(position + ends[i]);
    position = result.position;
  }
  return py::array_t<uint64_t>(static_cast<py::ssize_t>(found.size()), found.data());
}

// Throws the class of bpe/errors.py that bears the C++ class's name.
void register_errors() {
  py::register_exception_translator([](std::exception_ptr pointer) {
    const auto raise = [](const char* name, const std::exception& error) {
      const py::object type = py::module_::import("bpe.errors").attr(name);
      PyErr_SetString(type.ptr(), error.what());
    };
    try {
      if (pointer) std::rethrow_exception(pointer);
    } catch (const SettingsError& error) {
      raise("SettingsError", error);
    } catch (const VocabularyError& error) {
      raise("VocabularyError", error);
    } catch (const CountTableError& error) {
      raise("CountTableError", error);
    } catch (const InputError& error) {
      raise("InputError", error);
    }
  });
}

// Sequences of ids that Python handed in, with weights or None.
class ImportedSequences {
 public:
  ImportedSequences(const py::object& ids, const py::object& offsets, const py::object& weights)
      : ids_(ids), offsets_(offsets) {
    if (!weights.is_none()) weights_.emplace(weights);
  }

  // Calls work(const TokenSequences<Id>&) without Python's lock.
  template <class Work>
  auto visit(const Work& work) const {
    const IdColumn ids = ids_.ids("ids");
    const Int64Column offsets = offsets_.int64("offsets");
    const Int64Column weights = weights_.has_value() ? weights_->int64("weights") : Int64Column();
    const py::gil_scoped_release release;
    return ids.visit([&](const auto* values) {
      return work(make_sequences(values, ids.length, offsets,
                                 weights_.has_value() ? &weights : nullptr));
    });
  }

 private:
  ImportedColumn ids_;
  ImportedColumn offsets_;
  std::optional<ImportedColumn> weights_;
};

std::vector<uint32_t> ids_from_python(const py::object& ids, const char* what) {
  const ImportedColumn column(ids);
  const IdColumn view = column.ids(what);
  return view.visit([&](const auto* values) {
    return std::vector<uint32_t>(values, values + view.length);
  });
}

TokenStrings tokens_from_python(const py::object& tokens) {
  const ImportedColumn column(tokens);
  const BinaryColumn view = column.binary("tokens");
  TokenStrings strings;
  for (int64_t i = 0; i < view.size(); ++i) strings.append(view[i]);
  return strings;
}

ExportedColumn export_numbers(const char* format, OwnedBuffer numbers, size_t length) {
  return ExportedColumn({format, static_cast<int64_t>(length), {std::move(numbers)}, {}});
}

template <class Pairs>
py::tuple export_pairs(Pairs pairs) {
  const size_t length = pairs.counts.size();
  return py::make_tuple(export_numbers("I", own_buffer(std::move(pairs.left)), length),
                        export_numbers("I", own_buffer(std::move(pairs.right)), length),
                        export_numbers("l", own_buffer(std::move(pairs.counts)), length));
}

py::tuple count_state_pairs(const py::object& ids, const py::object& offsets,
                            const py::object& weights, const py::object& tokens,
                            std::optional<int64_t> max_token_bytes,
                            std::optional<int64_t> max_words,
                            const std::vector<py::bytes>& forbidden_parts) {
  const TrainingRules rules =
      rules_of(0, "id", 1, max_token_bytes, {}, max_words, forbidden_parts, 0);
  const TokenStrings strings = tokens_from_python(tokens);
  const MergeLimits limits(rules.limits, strings);
  return export_pairs(ImportedSequences(ids, offsets, weights).visit([&](const auto& sequences) {
    sequences.check_ids(strings.size(), "the state belongs to another round");
    return count_pairs(sequences, strings.size(), limits);
  }));
}

py::tuple cut_segments_from_python(const py::object& ids, const py::object& offsets,
                                   const py::object& weights, const py::object& heavy_left,
                                   const py::object& heavy_right,
                                   const std::vector<int64_t>& sizes, int64_t cap_bytes,
                                   bool open_left, bool open_right) {
  const PairRanks heavy(ids_from_python(heavy_left, "heavy_left"),
                        ids_from_python(heavy_right, "heavy_right"));
  CutSegments cut = ImportedSequences(ids, offsets, weights).visit([&](const auto& sequences) {
    return cut_segments(sequences, heavy, sizes, cap_bytes, {open_left, open_right});
  });
  const size_t length = cut.segments.counts.size();
  OwnedColumn segments{"Z", static_cast<int64_t>(length), {}, {}};
  segments.buffers.push_back(own_buffer(std::move(cut.segments.offsets)));
  segments.buffers.push_back(own_buffer(std::move(cut.segments.bytes)));
  return py::make_tuple(
      cut.size, ExportedColumn(std::move(segments)),
      export_numbers("l", own_buffer(std::move(cut.segments.counts)), length),
      py::bytes(cut.head.data(), cut.head.size()), py::bytes(cut.tail.data(), cut.tail.size()),
      cut.head_tokens, cut.tail_tokens, cut.has_cut);
}

ExportedColumn apply_merges(const py::object& ids, const py::object& offsets,
                            const py::object& left, const py::object& right, uint32_t first_id,
                            bool wide) {
  MergeApplier applier(ids_from_python(left, "left"), ids_from_python(right, "right"), first_id);
  if (!wide && applier.id_limit() > (uint64_t{1} << 16)) {
    throw SettingsError("merges make token " + std::to_string(applier.id_limit() - 1) +
                        ", which is no uint16: ask for uint32");
  }
  return ImportedSequences(ids, offsets, py::none()).visit([&](const auto& sequences) {
    IdBuffer merged(wide ? 4 : 2);
    std::vector<int64_t> merged_offsets;
    applier.apply(sequences, &merged, &merged_offsets);
    OwnedColumn values{wide ? "I" : "S", static_cast<int64_t>(merged.size()), {}, {}};
    values.buffers.push_back(own_buffer(std::move(merged)));
    OwnedColumn lists{"+L", sequences.count, {own_buffer(std::move(merged_offsets))}, {}};
    lists.children.push_back(std::move(values));
    return ExportedColumn(std::move(lists));
  });
}

py::tuple simulate_merges_from_python(
    const py::object& segments, const py::object& weights, const py::object& tokens,
    const std::optional<std::tuple<int64_t, uint32_t, uint32_t>>& stop, int64_t max_merges,
    const std::string& tie_order, int64_t min_frequency, std::optional<int64_t> max_token_bytes,
    const std::vector<py::bytes>& forbidden, std::optional<int64_t> max_words,
    const std::vector<py::bytes>& forbidden_parts, size_t spare_seams) {
  const TrainingRules rules = rules_of(max_merges, tie_order, min_frequency, max_token_bytes,
                                       forbidden, max_words, forbidden_parts, spare_seams);
  const ImportedColumn segment_column(segments);
  const ImportedColumn weight_column(weights);
  const BinaryColumn segment_view = segment_column.binary("segments");
  const Int64Column weight_view = weight_column.int64("weights");
  std::optional<StopBefore> bound;
  if (stop.has_value()) {
    const auto [count, left, right] = *stop;
    bound = StopBefore{count, left, right};
  }
  const auto check_interrupt = progress_of(py::none());
  return export_pairs([&] {
    TokenStrings strings = tokens_from_python(tokens);
    const py::gil_scoped_release release;
    return simulate_merges(segment_view, weight_view, std::move(strings), rules,
                           bound.has_value() ? &*bound : nullptr, check_interrupt);
  }());
}

void define_rounds(py::module_& module) {
  module.def("count_state_pairs", &count_state_pairs, py::arg("ids"), py::arg("offsets"),
             py::arg("weights"), py::arg("tokens"), py::kw_only(), py::arg("max_token_bytes"),
             py::arg("max_words"), py::arg("forbidden_parts"));
  module.def("cut_segments", &cut_segments_from_python, py::arg("ids"), py::arg("offsets"),
             py::arg("weights"), py::arg("heavy_left"), py::arg("heavy_right"), py::kw_only(),
             py::arg("sizes"), py::arg("cap_bytes"), py::arg("open_left"), py::arg("open_right"));
  module.def("apply_merges", &apply_merges, py::arg("ids"), py::arg("offsets"), py::arg("left"),
             py::arg("right"), py::kw_only(), py::arg("first_id"), py::arg("wide"));
  module.def("simulate_merges", &simulate_merges_from_python, py::arg("segments"),
             py::arg("weights"), py::arg("tokens"), py::arg("stop"), py::kw_only(),
             py::arg("max_merges"), py::arg("tie_order"), py::arg("min_frequency"),
             py::arg("max_token_bytes"), py::arg("forbidden"), py::arg("max_words"),
             py::arg("forbidden_parts"), py::arg("spare_seams") = TrainingRules().spare_seams);
}

}  // namespace

PYBIND11_MODULE(_native, module) {
  module.doc() = "The native core of beam-bpe; see bpe/_native.pyi.";
  register_errors();
  py::class_<ExportedColumn>(module, "Column")
      .def("__arrow_c_array__", &ExportedColumn::export_capsules,
           py::arg("requested_schema") = py::none());
  define_counting(module);
  define_codec(module);
  module.def("isa", [] { return isa_name(best_isa()); });
  module.def("available_isas", &available_isas);
  module.def("scan_ends", &scan_ends, py::arg("data"), py::arg("scheme"), py::arg("isa"),
             py::kw_only(), py::arg("batch"));
  const size_t spare_seams = TrainingRules().spare_seams;
  module.def("train_words", &train_words_from_python, py::arg("words"), py::arg("counts"),
             py::arg("first_positions"), py::kw_only(), py::arg("max_merges"),
             py::arg("tie_order"), py::arg("min_frequency"), py::arg("max_token_bytes"),
             py::arg("forbidden"), py::arg("progress"), py::arg("spare_seams") = spare_seams,
             py::arg("max_words") = py::none(),
             py::arg("forbidden_parts") = std::vector<py::bytes>());
  module.def("train_raw", &train_raw_from_python, py::arg("documents"), py::kw_only(),
             py::arg("max_merges"), py::arg("tie_order"), py::arg("min_frequency"),
             py::arg("max_token_bytes"), py::arg("forbidden"), py::arg("progress"),
             py::arg("spare_seams") = spare_seams, py::arg("max_words") = py::none(),
             py::arg("forbidden_parts") = std::vector<py::bytes>());
  define_rounds(module);
}

}  // namespace beam_bpe
