// Encoders and decoders, as Python sees them.
#include "python/bind.h"

#include <pybind11/numpy.h>

#include <algorithm>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <tuple>
#include <vector>

#include "encode/batch_encoder.h"
#include "encode/recover_merges.h"
#include "python/python_columns.h"
#include "memory/errors.h"
#include "scan/isa_scans.h"
#include "memory/page_pool.h"
#include "decode/token_decoder.h"

namespace beam_bpe {
namespace {

// Text, id, special, normalized, lstrip, rstrip, single_word.
using AddedRow = std::tuple<std::string, uint32_t, bool, bool, bool, bool, bool>;

std::vector<AddedToken> read_added(const std::vector<AddedRow>& rows) {
  std::vector<AddedToken> added;
  for (const auto& [text, id, special, normalized, lstrip, rstrip, single_word] : rows) {
    added.push_back({text, id, special, normalized, lstrip, rstrip, single_word});
  }
  return added;
}

// Bits of `Find` in bpe/encoding/added_tokens.py.
AddedSearch search_of(unsigned find) {
  return {(find & 1) != 0, (find & 2) != 0, (find & 4) == 0, (find & 8) == 0};
}

// Text to ids for one model; safe to use from several Python threads.
class PythonEncoder {
 public:
  PythonEncoder(const py::dict& tokens, std::vector<std::array<uint32_t, 3>> merges,
                bool whole_pretoken, const ScanSpec& scheme, size_t cache_bytes,
                const std::vector<AddedRow>& added) {
    EncodingModel model;
    for (const auto& [id, token] : tokens) {
      model.ids.push_back(py::cast<uint32_t>(id));
      model.tokens.push_back(py::cast<std::string>(token));
    }
    for (const auto& [left, right, result] : merges) model.merges.push_back({left, right, result});
    model.added = read_added(added);
    model.whole_pretoken = whole_pretoken;
    model.scan = find_scan(scheme);
    const WithoutGil released;
    encoder_ = std::make_unique<BatchEncoder>(std::move(model), cache_bytes);
  }

  py::array_t<uint32_t> encode(const py::bytes& document, unsigned find) {
    const std::string_view text(document);
    const IdBuffer ids = [&] {
      const WithoutGil released;
      return encoder_->encode(text, search_of(find));
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

  ExportedColumn encode_documents(const py::object& documents, size_t threads, unsigned find) {
    const ImportedColumn column(documents);
    const BinaryColumn view = column.binary("texts");
    const WithoutGil released;
    return ExportedColumn(encoder_->encode_documents(view, threads, search_of(find)));
  }

  // Columns: the first segment of each document (and one more), starts, ends, ids.
  py::tuple cut_documents(const py::object& documents, unsigned find) const {
    const ImportedColumn column(documents);
    const BinaryColumn view = column.binary("texts");
    BatchEncoder::Segments found = [&] {
      const WithoutGil released;
      return encoder_->cut_documents(view, search_of(find));
    }();
    std::vector<OwnedColumn> columns;
    for (auto* values : {&found.first, &found.starts, &found.ends, &found.ids}) {
      OwnedColumn column_of{"l", static_cast<int64_t>(values->size()), {}, {}};
      column_of.buffers.push_back(own_buffer(std::move(*values)));
      columns.push_back(std::move(column_of));
    }
    return to_python(std::move(columns));
  }

  ExportedColumn encode_split_documents(const py::object& documents,
                                        const py::object& pretoken_ends,
                                        const py::object& first_pretokens) {
    const ImportedColumn column(documents);
    const ImportedColumn ends(pretoken_ends);
    const ImportedColumn firsts(first_pretokens);
    const BinaryColumn view = column.binary("texts");
    const Int64Column end_view = ends.int64("pretoken_ends");
    const Int64Column first_view = firsts.int64("first_pretokens");
    const WithoutGil released;
    return ExportedColumn(encoder_->encode_split_documents(view, end_view, first_view));
  }

  bool wide_ids() const { return encoder_->id_bytes() == 4; }

 private:
  std::unique_ptr<BatchEncoder> encoder_;
};

// Special tokens among added ones, in documents; safe to use from several Python threads.
class PythonAddedTokens {
 public:
  explicit PythonAddedTokens(const std::vector<AddedRow>& rows)
      : count_(rows.size()), added_(read_added(rows)) {}

  // Of all documents, by number of the added token.
  ExportedColumn count_specials(const py::object& documents, unsigned find) const {
    const ImportedColumn column(documents);
    const BinaryColumn view = column.binary("texts");
    std::vector<int64_t> counts(count_);
    const WithoutGil released;
    for (int64_t row = 0; row < view.size(); ++row) {
      added_.count_specials(bytes_of(view[row]), view[row].size(), search_of(find), counts.data());
    }
    return int64_column(std::move(counts));
  }

  // Documents in which the text of a special token occurs, ascending.
  ExportedColumn rows_with_specials(const py::object& documents) const {
    const ImportedColumn column(documents);
    const BinaryColumn view = column.binary("texts");
    std::vector<int64_t> rows;
    const WithoutGil released;
    for (int64_t row = 0; row < view.size(); ++row) {
      if (added_.holds_special(bytes_of(view[row]), view[row].size())) rows.push_back(row);
    }
    return int64_column(std::move(rows));
  }

 private:
  static const uint8_t* bytes_of(std::string_view text) {
    return reinterpret_cast<const uint8_t*>(text.data());
  }
  static ExportedColumn int64_column(std::vector<int64_t> values) {
    OwnedColumn column{"l", static_cast<int64_t>(values.size()), {}, {}};
    column.buffers.push_back(own_buffer(std::move(values)));
    return ExportedColumn(std::move(column));
  }

  size_t count_;
  AddedTokens added_;
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

py::tuple recover_merges_from_python(const py::object& tokens) {
  const ImportedColumn column(tokens);
  const BinaryColumn view = column.binary("tokens");
  return to_python([&] {
    const WithoutGil released;
    return to_columns(recover_merges(view));
  }());
}

}  // namespace

void define_encoding(py::module_& module) {
  py::class_<PythonEncoder>(module, "Encoder")
      .def(py::init<const py::dict&, std::vector<std::array<uint32_t, 3>>, bool,
                    const ScanSpec&, size_t, const std::vector<AddedRow>&>(),
           py::kw_only(), py::arg("tokens"), py::arg("merges"), py::arg("whole_piece"),
           py::arg("scheme"), py::arg("cache_bytes"), py::arg("added"))
      .def_property_readonly("wide_ids", &PythonEncoder::wide_ids)
      .def("encode", &PythonEncoder::encode, py::arg("data"), py::arg("find"))
      .def("encode_documents", &PythonEncoder::encode_documents, py::arg("texts"), py::kw_only(),
           py::arg("threads"), py::arg("find"))
      .def("cut_documents", &PythonEncoder::cut_documents, py::arg("texts"), py::kw_only(),
           py::arg("find"))
      .def("encode_split_documents", &PythonEncoder::encode_split_documents, py::arg("texts"),
           py::arg("pretoken_ends"), py::arg("first_pretokens"));
  py::class_<PythonAddedTokens>(module, "AddedTokens")
      .def(py::init<const std::vector<AddedRow>&>(), py::arg("added"))
      .def("count_specials", &PythonAddedTokens::count_specials, py::arg("texts"), py::kw_only(),
           py::arg("find"))
      .def("rows_with_specials", &PythonAddedTokens::rows_with_specials, py::arg("texts"));
  py::class_<PythonDecoder>(module, "Decoder")
      .def(py::init<const py::dict&>(), py::arg("tokens"))
      .def("decode", &PythonDecoder::decode, py::arg("ids"))
      .def("decode_lists", &PythonDecoder::decode_lists, py::arg("ids"), py::arg("offsets"),
           py::kw_only(), py::arg("threads"));
  module.def("recover_merges", &recover_merges_from_python, py::arg("tokens"));
}

}  // namespace beam_bpe
