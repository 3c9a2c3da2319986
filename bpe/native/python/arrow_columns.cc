#include "python/arrow_columns.h"

#include "memory/errors.h"

namespace beam_bpe {

namespace {

constexpr int64_t kNullable = 2;  // ARROW_FLAG_NULLABLE

void refuse_nulls(const ArrowArray& array, const char* what) {
  if (array.null_count == 0 || array.buffers[0] == nullptr) return;
  const auto* bits = static_cast<const uint8_t*>(array.buffers[0]);
  for (int64_t i = array.offset; i < array.offset + array.length; ++i) {
    if ((bits[i / 8] >> (i % 8) & 1) == 0) {
      throw InputError(std::string(what) + ": element " + std::to_string(i - array.offset) +
                       " is null; drop or fill nulls first");
    }
  }
}

void release_schema(ArrowSchema* schema) {
  for (int64_t i = 0; i < schema->n_children; ++i) {
    ArrowSchema* child = schema->children[i];
    if (child->release != nullptr) child->release(child);
    delete child;
  }
  delete[] schema->children;
  delete static_cast<std::string*>(schema->private_data);
  schema->release = nullptr;
}

void release_array(ArrowArray* array) {
  for (int64_t i = 0; i < array->n_children; ++i) {
    ArrowArray* child = array->children[i];
    if (child->release != nullptr) child->release(child);
    delete child;
  }
  delete[] array->children;
  delete[] array->buffers;
  delete static_cast<std::vector<OwnedBuffer>*>(array->private_data);
  array->release = nullptr;
}

}  // namespace

BinaryColumn::BinaryColumn(const ArrowSchema& schema, const ArrowArray& array, const char* what)
    : length_(array.length) {
  const std::string_view format = schema.format;
  const bool large = format == "Z" || format == "U";
  if (!large && format != "z" && format != "u") {
    throw InputError(std::string(what) + ": Arrow type '" + std::string(format) +
                     "' holds no text; pass binary, string, large_binary or large_string");
  }
  refuse_nulls(array, what);
  if (length_ == 0) return;
  if (large) {
    large_offsets_ = static_cast<const int64_t*>(array.buffers[1]) + array.offset;
  } else {
    offsets_ = static_cast<const int32_t*>(array.buffers[1]) + array.offset;
  }
  data_ = static_cast<const char*>(array.buffers[2]);
  if (data_ == nullptr) data_ = "";  // all elements are empty
}

Int64Column::Int64Column(const ArrowSchema& schema, const ArrowArray& array, const char* what)
    : length(array.length) {
  if (std::string_view(schema.format) != "l") {
    throw InputError(std::string(what) + ": Arrow type '" + schema.format + "' is not int64");
  }
  refuse_nulls(array, what);
  if (length > 0) values = static_cast<const int64_t*>(array.buffers[1]) + array.offset;
}

IdColumn::IdColumn(const ArrowSchema& schema, const ArrowArray& array, const char* what)
    : length(array.length), wide_(std::string_view(schema.format) == "I") {
  if (!wide_ && std::string_view(schema.format) != "S") {
    throw InputError(std::string(what) + ": Arrow type '" + schema.format +
                     "' is not uint16 or uint32");
  }
  refuse_nulls(array, what);
  if (length == 0) return;
  const auto* bytes = static_cast<const uint8_t*>(array.buffers[1]);
  ids_ = bytes + array.offset * (wide_ ? 4 : 2);
}

IntegerColumn::IntegerColumn(const ArrowSchema& schema, const ArrowArray& array, const char* what)
    : length(array.length), format_(schema.format[0]) {
  const std::string_view format = schema.format;
  if (format.size() != 1 || std::string_view("SILil").find(format[0]) == std::string_view::npos) {
    throw InputError(std::string(what) + ": Arrow type '" + schema.format +
                     "' is none of uint16, uint32, uint64, int32 and int64");
  }
  refuse_nulls(array, what);
  if (length == 0) return;
  const auto* bytes = static_cast<const uint8_t*>(array.buffers[1]);
  const int64_t width = format_ == 'S' ? 2 : format_ == 'I' || format_ == 'i' ? 4 : 8;
  values_ = bytes + array.offset * width;
}

void export_column(OwnedColumn column, ArrowSchema* schema, ArrowArray* array) {
  const auto children = static_cast<int64_t>(column.children.size());
  *schema = {};
  *array = {};
  auto* format = new std::string(std::move(column.format));
  schema->format = format->c_str();
  schema->name = "";
  schema->flags = kNullable;  // as pyarrow has it for lists of its own
  schema->private_data = format;
  schema->release = release_schema;
  auto* owned = new std::vector<OwnedBuffer>(std::move(column.buffers));
  array->length = column.length;
  array->n_buffers = static_cast<int64_t>(owned->size()) + 1;
  array->buffers = new const void*[owned->size() + 1]();
  for (size_t i = 0; i < owned->size(); ++i) array->buffers[i + 1] = (*owned)[i].data;
  array->private_data = owned;
  array->release = release_array;
  schema->children = new ArrowSchema*[children]();
  array->children = new ArrowArray*[children]();
  for (OwnedColumn& child : column.children) {
    auto* child_schema = new ArrowSchema{};
    auto* child_array = new ArrowArray{};
    export_column(std::move(child), child_schema, child_array);
    child_schema->name = "item";
    schema->children[schema->n_children++] = child_schema;
    array->children[array->n_children++] = child_array;
  }
}

}  // namespace beam_bpe
