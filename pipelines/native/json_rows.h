// Texts and ids out of rows of JSON, each an object on a line of its own.
//
// Takes what is beyond doubt alone: rows that RFC 8259 calls well-formed, with the fields there,
// once, and of the right kind. Anything else is for a full parser to judge.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "python/arrow_columns.h"
#include "memory/byte_buffer.h"

namespace beam_bpe {

// Names of the objects on the way to a field, and its own.
using JsonPath = std::vector<std::string>;

struct JsonRows {
  ByteBuffer text;
  std::vector<int64_t> text_offsets;
  std::string ids;  // integers as they are written
  std::vector<int64_t> id_offsets;
};

// Row i is data[starts[i], ends[i]). text: of a string. id: of a string or an integer; empty: none
// is wanted. Neither path begins with the other. Nothing if any row is unusual or not UTF-8.
// Throws InputError for rows that do not ascend within `data`.
std::optional<JsonRows> scan_json_rows(std::string_view data, const Int64Column& starts,
                                       const Int64Column& ends, const JsonPath& text,
                                       const JsonPath& id);

// A large_binary column of texts and, where ids are wanted, a large_string one of ids.
std::vector<OwnedColumn> to_columns(JsonRows rows, bool with_ids);

}  // namespace beam_bpe
