#include "runtime/files/safetensors.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>

#include "base/error.h"
#include "runtime/files/files.h"

namespace ingot::runtime {
namespace {

// The format's names, in order of DType; the complex types have none.
constexpr std::string_view kDTypes[] = {"F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U8", "BOOL"};
constexpr uint64_t kMaxHeader = 100'000'000;  // as in the reference implementation
constexpr int64_t kHeaderLength = 8;
constexpr const char* kMetadata = "__metadata__";

std::string file_named(const std::string& path) { return "safetensors: " + path; }
[[noreturn]] void fail(const std::string& path, const std::string& reason) {
  throw Error(file_named(path) + ": " + reason);
}
std::string in_quotes(const std::string& name) { return "'" + name + "'"; }

struct HeaderEntry {
  std::string name;
  std::optional<std::string> dtype;
  struct Numbers {
    bool given = false;
    std::vector<uint64_t> values;
  } shape, offsets;
};

// Takes the header apart as it is parsed: a document tree would hide duplicate names.
class HeaderReader : public nlohmann::json_sax<nlohmann::json> {
 public:
  std::vector<HeaderEntry> entries;
  std::map<std::string, std::string> metadata;
  std::string error;

  bool null() override { return refuse("null"); }
  bool boolean(bool) override { return refuse("true or false"); }
  bool number_integer(number_integer_t) override { return refuse("a negative number"); }
  bool number_float(number_float_t, const string_t&) override { return refuse("a number that is no whole number"); }
  bool binary(binary_t&) override { return refuse("binary data"); }
  bool number_unsigned(number_unsigned_t value) override {
    if (!numbers_) return refuse("a number");
    numbers_->push_back(value);
    return true;
  }
  bool string(string_t& value) override {
    if (place_ == Place::metadata) {
      metadata[key_] = value;
    } else if (place_ == Place::entry && key_ == "dtype") {
      entries.back().dtype = value;
    } else {
      return refuse("a string");
    }
    return true;
  }
  bool start_object(std::size_t) override {
    if (place_ == Place::outside) {
      place_ = Place::header;
    } else if (place_ == Place::header) {
      place_ = key_ == kMetadata ? Place::metadata : Place::entry;
      if (place_ == Place::entry) entries.emplace_back().name = key_;
      keys_.clear();
    } else {
      return refuse("an object");
    }
    return true;
  }
  bool end_object() override {
    if (place_ == Place::entry) {
      const HeaderEntry& e = entries.back();
      if (!e.dtype || !e.shape.given || !e.offsets.given)
        return stop("tensor " + in_quotes(e.name) + " lacks dtype, shape or data_offsets");
    }
    place_ = place_ == Place::header ? Place::done : Place::header;
    return true;
  }
  bool key(string_t& value) override {
    key_ = value;
    auto& seen = place_ == Place::header ? names_ : keys_;
    if (!seen.insert(value).second) return stop("the name " + in_quotes(value) + " occurs twice");
    if (place_ == Place::entry && value != "dtype" && value != "shape" && value != "data_offsets")
      return stop("tensor " + in_quotes(entries.back().name) + " has an unknown field " + in_quotes(value));
    return true;
  }
  bool start_array(std::size_t) override {
    if (numbers_ || place_ != Place::entry || key_ == "dtype") return refuse("an array");
    HeaderEntry::Numbers& field = key_ == "shape" ? entries.back().shape : entries.back().offsets;
    field.given = true;
    numbers_ = &field.values;
    return true;
  }
  bool end_array() override {
    numbers_ = nullptr;
    return true;
  }
  bool parse_error(std::size_t, const std::string&, const nlohmann::detail::exception& e) override {
    return stop(std::string("the header is not valid JSON: ") + e.what());
  }

 private:
  bool refuse(const char* what) {
    return stop(place_ == Place::outside ? "the header is not a JSON object"
                                         : "unexpected " + std::string(what) + " at " + in_quotes(key_));
  }
  bool stop(std::string why) {
    if (error.empty()) error = std::move(why);
    return false;
  }

  enum class Place { outside, header, metadata, entry, done } place_ = Place::outside;
  std::string key_;
  std::set<std::string> names_, keys_;
  std::vector<uint64_t>* numbers_ = nullptr;
};

DType dtype_in(const std::string& path, const HeaderEntry& entry) {
  std::string known;
  for (size_t i = 0; i < std::size(kDTypes); ++i) {
    if (kDTypes[i] == *entry.dtype) return static_cast<DType>(i);
    known += (i ? ", " : "") + std::string(kDTypes[i]);
  }
  fail(path, "tensor " + in_quotes(entry.name) + " has dtype " + in_quotes(*entry.dtype) + "; known: " + known);
}

// Bytes of a dense tensor, or -1 where they pass 63 bits.
int64_t bytes_of(const Ints& shape, DType dtype) {
  int64_t bytes = size_of(dtype);
  bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  for (int64_t n : shape)
    if (__builtin_mul_overflow(bytes, n, &bytes)) return empty ? 0 : -1;
  return bytes;
}

// In the mapping where there is one and an element is aligned; else read.
StoragePtr storage_of(const InputFile& file, const std::shared_ptr<const Mapping>& mapping, int64_t at, int64_t bytes,
                      DType dtype) {
  if (!mapping || at % size_of(dtype) != 0) {
    StoragePtr storage = Storage::allocate(bytes);
    file.read(at, storage->data(), bytes);
    return storage;
  }
  using Owner = std::shared_ptr<const Mapping>;
  auto release = [](void* owner) { delete static_cast<Owner*>(owner); };
  StoragePtr storage = Storage::adopt(mapping->data + at, bytes, release, new Owner(mapping));
  storage->mark_mapped();
  return storage;
}

}  // namespace

SafetensorsFile read_safetensors(const std::string& path, bool mapped) {
  const InputFile input(path, file_named(path));
  if (input.bytes() < kHeaderLength) fail(path, "shorter than the 8 bytes of the header's length");
  uint64_t length;
  input.read(0, &length, sizeof length);
  if (length > kMaxHeader)
    fail(path,
         "the header is said to have " + std::to_string(length) + " bytes, more than " + std::to_string(kMaxHeader));
  const uint64_t available = static_cast<uint64_t>(input.bytes() - kHeaderLength);
  if (length > available)
    fail(path, "truncated: the header is said to have " + std::to_string(length) + " bytes, " +
                   std::to_string(available) + " follow");
  std::string text(length, '\0');
  input.read(kHeaderLength, text.data(), static_cast<int64_t>(length));
  HeaderReader header;
  if (text.empty() || text[0] != '{') fail(path, "the header does not begin with '{'");
  if (!nlohmann::json::sax_parse(text, &header) || !header.error.empty())
    fail(path, header.error.empty() ? "the header is not valid" : header.error);

  std::sort(header.entries.begin(), header.entries.end(),
            [](const HeaderEntry& a, const HeaderEntry& b) { return a.offsets.values < b.offsets.values; });
  const uint64_t data_bytes = available - length;
  const int64_t data_at = kHeaderLength + static_cast<int64_t>(length);
  const std::shared_ptr<const Mapping> mapping = mapped ? input.map() : nullptr;
  uint64_t end = 0;
  SafetensorsFile file;
  file.metadata = std::move(header.metadata);
  for (const HeaderEntry& entry : header.entries) {
    const std::string tensor = "tensor " + in_quotes(entry.name);
    StoredTensor t{entry.name, dtype_in(path, entry), {}, {}};
    for (uint64_t n : entry.shape.values) {
      if (n > INT64_MAX) fail(path, tensor + " has a size of " + std::to_string(n));
      t.shape.push_back(static_cast<int64_t>(n));
    }
    if (entry.offsets.values.size() != 2) fail(path, tensor + " has not two data offsets");
    const uint64_t from = entry.offsets.values[0], to = entry.offsets.values[1];
    if (from > to || to > data_bytes)
      fail(path, tensor + " lies at " + std::to_string(from) + " to " + std::to_string(to) + ", outside of the " +
                     std::to_string(data_bytes) + " bytes of data");
    const int64_t expected = bytes_of(t.shape, t.dtype);
    if (expected < 0 || static_cast<uint64_t>(expected) != to - from)
      fail(path, tensor + " has " + std::to_string(to - from) + " bytes; its shape and dtype need " +
                     (expected < 0 ? "more than 63 bits can count" : std::to_string(expected)));
    if (from != end)
      fail(path, tensor + (from < end ? " overlaps another tensor" : " leaves a hole of bytes before it"));
    end = to;
    t.storage = storage_of(input, mapping, data_at + static_cast<int64_t>(from), expected, t.dtype);
    file.tensors.push_back(std::move(t));
  }
  if (end != data_bytes) fail(path, std::to_string(data_bytes - end) + " bytes at the end belong to no tensor");
  std::sort(file.tensors.begin(), file.tensors.end(),
            [](const StoredTensor& a, const StoredTensor& b) { return a.name < b.name; });
  return file;
}

void write_safetensors(const std::string& path, std::span<const TensorBytes> tensors,
                       const std::map<std::string, std::string>& metadata) {
  // Larger elements first, so that every tensor is aligned to its own.
  std::vector<const TensorBytes*> order;
  std::set<std::string> names{kMetadata};
  for (const TensorBytes& t : tensors) {
    if (t.name == kMetadata) fail(path, "the name " + in_quotes(t.name) + " is reserved");
    if (!names.insert(t.name).second) fail(path, "two tensors are called " + in_quotes(t.name));
    if (static_cast<size_t>(t.dtype) >= std::size(kDTypes))
      fail(path, "tensor " + in_quotes(t.name) + ": the format has no " + std::string(name_of(t.dtype)));
    if (bytes_of(t.shape, t.dtype) < 0) fail(path, "tensor " + in_quotes(t.name) + " is too large");
    order.push_back(&t);
  }
  std::sort(order.begin(), order.end(), [](const TensorBytes* a, const TensorBytes* b) {
    return std::make_pair(-size_of(a->dtype), a->name) < std::make_pair(-size_of(b->dtype), b->name);
  });

  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header[kMetadata] = metadata;
  int64_t offset = 0;
  for (const TensorBytes* t : order) {
    int64_t bytes = bytes_of(t->shape, t->dtype);
    header[t->name] = {{"dtype", kDTypes[static_cast<size_t>(t->dtype)]},
                       {"shape", std::vector<int64_t>(t->shape.begin(), t->shape.end())},
                       {"data_offsets", {offset, offset + bytes}}};
    if (__builtin_add_overflow(offset, bytes, &offset)) fail(path, "the tensors are too large");
  }
  std::string text;
  try {
    text = header.dump();
  } catch (const nlohmann::json::exception&) {
    fail(path, "a name or a metadata value is not UTF-8");
  }
  text.resize((text.size() + 7) / 8 * 8, ' ');  // data starts at a multiple of 8
  const uint64_t length = text.size();
  if (length > kMaxHeader) fail(path, "the header is too long");

  OutputFile file(path, file_named(path));
  file.write(&length, sizeof length);
  file.write(text.data(), static_cast<int64_t>(length));
  for (const TensorBytes* t : order) file.write(t->data, bytes_of(t->shape, t->dtype));
  file.commit();
}

}  // namespace ingot::runtime
