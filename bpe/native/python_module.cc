// The Python face of the native core: converts arguments and results, releases the GIL, and turns
// the core's errors into the classes of bpe/errors.py. bpe/_native.pyi documents every name.
#include <pybind11/numpy.h>
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#if defined(__GLIBCXX__)
#include <cxxabi.h>
#endif

#include <chrono>
#include <optional>
#include <thread>

#include "arrow_columns.h"
#include "batch_encoder.h"
#include "cpu_dispatch.h"
#include "errors.h"
#include "isa_scans.h"
#include "merge_applier.h"
#include "page_pool.h"
#include "pair_counts.h"
#include "rank_merges.h"
#include "round_simulation.h"
#include "segment_cutter.h"
#include "token_decoder.h"
#include "training.h"
#include "word_counter.h"

namespace py = pybind11;

namespace beam_bpe {
namespace {

// Where the interpreter is ending, a thread that asks for its lock is ended on the spot. Unwinding
// its C++ frames would touch Python objects without the lock, and abort in a destructor: such a
// thread sleeps instead until the process is gone, as it does in Python from 3.14 on.
template <class Work>
void sleep_if_ended(const Work& work) {
#if defined(__GLIBCXX__)
  try {
    work();
  } catch (const abi::__forced_unwind&) {
    while (true) std::this_thread::sleep_for(std::chrono::hours(1));
  }
#else
  work();
#endif
}

// Lets other Python threads run while it lives.
class WithoutGil {
 public:
  WithoutGil() : state_(PyEval_SaveThread()) {}
  ~WithoutGil() {
    sleep_if_ended([this] { PyEval_RestoreThread(state_); });
  }
  WithoutGil(const WithoutGil&) = delete;
  WithoutGil& operator=(const WithoutGil&) = delete;

 private:
  PyThreadState* state_;
};

// Holds Python's lock, in a thread that has let it go, while work runs.
template <class Work>
void with_gil(const Work& work) {
  sleep_if_ended([&work] {
    const py::gil_scoped_acquire gil;
    work();
  });
}

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
  IntegerColumn integers(const char* what) const { return {schema(), array(), what}; }
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

// Calls the user's function, and lets Ctrl-C end the work.
TrainingProgress progress_of(const py::object& callback) {
  return [callback](int64_t done, int64_t most) {
    with_gil([&] {
      if (PyErr_CheckSignals() != 0) throw py::error_already_set();
      if (!callback.is_none()) callback(done, most);
    });
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
    const WithoutGil released;
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
    const WithoutGil released;
    return train_raw(view, rules, report);
  }();
  return merges_to_python(learned);
}

void add_column(WordCounter& counter, const py::object& texts,
                void (WordCounter::*add)(const BinaryColumn&)) {
  const ImportedColumn column(texts);
  const BinaryColumn view = column.binary("texts");
  const WithoutGil released;
  (counter.*add)(view);
}

py::tuple to_python(std::vector<OwnedColumn> columns) {
  py::tuple exported(columns.size());
  for (size_t i = 0; i < columns.size(); ++i) {
    exported[i] = ExportedColumn(std::move(columns[i]));
  }
  return exported;
}

py::tuple drain_counter(WordCounter& counter) {
  return to_python([&counter] {
    const WithoutGil released;
    return to_columns(counter.drain());
  }());
}

py::tuple recover_merges_from_python(const py::object& tokens) {
  const ImportedColumn column(tokens);
  const BinaryColumn view = column.binary("tokens");
  return to_python([&] {
    const WithoutGil released;
    return to_columns(recover_merges(view));
  }());
}

void define_counting(py::module_& module) {
  py::class_<WordCounter>(module, "WordCounter")
      .def(py::init([](const std::optional<std::string>& scheme, int threads) {
             return WordCounter(parse_scheme(scheme), threads);
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

// Text to ids for one model; safe to use from several Python threads.
class PythonEncoder {
 public:
  PythonEncoder(const py::dict& tokens, std::vector<std::array<uint32_t, 3>> merges, bool whole_piece,
        const std::optional<std::string>& scheme, size_t cache_bytes) {
    EncodingModel model;
    for (const auto& [id, token] : tokens) {
      model.ids.push_back(py::cast<uint32_t>(id));
      model.tokens.push_back(py::cast<std::string>(token));
    }
    for (const auto& [left, right, result] : merges) model.merges.push_back({left, right, result});
    model.whole_piece = whole_piece;
    model.has_scheme = scheme.has_value();
    model.scheme = parse_scheme(scheme).value_or(SchemeId::gpt2);
    const WithoutGil released;
    encoder_ = std::make_unique<BatchEncoder>(std::move(model), cache_bytes);
  }

  py::array_t<uint32_t> encode(const py::bytes& document) {
    const std::string_view text(document);
    const IdBuffer ids = [&] {
      const WithoutGil released;
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
    const WithoutGil released;
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
    const WithoutGil released;
    return ExportedColumn(encoder_->encode_split_documents(view, end_view, first_view));
  }

  bool wide_ids() const { return encoder_->id_bytes() == 4; }

 private:
  std::unique_ptr<BatchEncoder> encoder_;
};

// Ids to bytes; safe to use from several Python threads.
class PythonDecoder {
 public:
  explicit PythonDecoder(const py::dict& tokens) {
    std::vector<uint32_t> ids;
    std::vector<std::string> bytes;
    for (const auto& [id, token] : tokens) {
      ids.push_back(py::cast<uint32_t>(id));
      bytes.push_back(py::cast<std::string>(token));
    }
    const WithoutGil released;
    decoder_ = std::make_unique<TokenDecoder>(ids, bytes);
  }

  py::bytes decode(const py::object& ids) const {
    const ImportedColumn column(ids);
    const IntegerColumn view = column.integers("ids");
    return view.visit([&](const auto* values) {
      return decode_into_bytes(values, static_cast<size_t>(view.length));
    });
  }

  ExportedColumn decode_lists(const py::object& ids, const py::object& offsets,
                              size_t threads) const {
    const ImportedColumn id_column(ids);
    const ImportedColumn offset_column(offsets);
    const IntegerColumn view = id_column.integers("ids");
    const Int64Column offset_view = offset_column.int64("offsets");
    const WithoutGil released;
    return view.visit([&](const auto* values) {
      return ExportedColumn(decoder_->decode_lists(values, view.length, offset_view, threads));
    });
  }

 private:
  // Decodes straight into a bytes object about as large as needed, and cuts off what is too much.
  template <class Id>
  py::bytes decode_into_bytes(const Id* ids, size_t count) const {
    size_t room = 0;
    {
      const WithoutGil released;
      room = decoder_->estimate_size(ids, count) + decoder_->least_room();
    }
    PyObject* text = PyBytes_FromStringAndSize(nullptr, static_cast<py::ssize_t>(room));
    if (text == nullptr) throw py::error_already_set();
    TokenDecoder::Progress done;
    try {
      while (done.ids < count) {
        if (done.ids > 0) {
          room += room / 8 + decoder_->least_room();
          if (_PyBytes_Resize(&text, static_cast<py::ssize_t>(room)) != 0) {
            throw py::error_already_set();
          }
        }
        const WithoutGil released;  // nobody else knows the new object yet
        char* const start = PyBytes_AS_STRING(text);
        if (done.ids == 0) advise_huge_pages(start, room);
        done = decoder_->decode(ids, count, done, start, room);
      }
    } catch (const UnknownId& unknown) {
      Py_DECREF(text);
      const std::string place = "ids[" + std::to_string(unknown.position) + "]";
      throw InputError(decoder_->describe_unknown(place, unknown.id));
    }
    if (_PyBytes_Resize(&text, static_cast<py::ssize_t>(done.bytes)) != 0) {
      throw py::error_already_set();
    }
    return py::reinterpret_steal<py::bytes>(text);
  }

  std::unique_ptr<TokenDecoder> decoder_;
};

void define_encoding(py::module_& module) {
  py::class_<PythonEncoder>(module, "Encoder")
      .def(py::init<const py::dict&, std::vector<std::array<uint32_t, 3>>, bool,
                    const std::optional<std::string>&, size_t>(),
           py::kw_only(), py::arg("tokens"), py::arg("merges"), py::arg("whole_piece"),
           py::arg("scheme"), py::arg("cache_bytes"))
      .def_property_readonly("wide_ids", &PythonEncoder::wide_ids)
      .def("encode", &PythonEncoder::encode, py::arg("data"))
      .def("encode_documents", &PythonEncoder::encode_documents, py::arg("texts"), py::kw_only(),
           py::arg("threads"))
      .def("encode_split_documents", &PythonEncoder::encode_split_documents, py::arg("texts"),
           py::arg("piece_ends"), py::arg("first_pieces"));
  py::class_<PythonDecoder>(module, "Decoder")
      .def(py::init<const py::dict&>(), py::arg("tokens"))
      .def("decode", &PythonDecoder::decode, py::arg("ids"))
      .def("decode_lists", &PythonDecoder::decode_lists, py::arg("ids"), py::arg("offsets"),
           py::kw_only(), py::arg("threads"));
}

py::array_t<uint64_t> scan_ends_from_python(const py::bytes& data, const std::string& scheme,
                                            const std::string& isa, size_t batch) {
  const std::vector<uint64_t> ends = scan_ends(std::string_view(data), scheme, isa, batch);
  return py::array_t<uint64_t>(static_cast<py::ssize_t>(ends.size()), ends.data());
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
    const WithoutGil released;
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
    const WithoutGil released;
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
  define_encoding(module);
  module.def("recover_merges", &recover_merges_from_python, py::arg("tokens"));
  module.def("isa", [] { return isa_name(best_isa()); });
  module.def("available_isas", &available_isas);
  module.def("scan_ends", &scan_ends_from_python, py::arg("data"), py::arg("scheme"), py::arg("isa"),
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
