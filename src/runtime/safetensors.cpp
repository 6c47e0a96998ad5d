#include "runtime/safetensors.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>
#include <string_view>

#include "base/error.h"

namespace ingot::runtime {
namespace {

// The format's names, in order of DType; the complex types have none.
constexpr std::string_view kDTypes[] = {"F64", "F32", "F16", "BF16", "I64", "I32", "I16", "I8", "U8", "BOOL"};
constexpr uint64_t kMaxHeader = 100'000'000;  // as in the reference implementation
constexpr int64_t kHeaderLength = 8;
constexpr const char* kMetadata = "__metadata__";

[[noreturn]] void fail(const std::string& path, const std::string& reason) {
  throw Error("safetensors: " + path + ": " + reason);
}
[[noreturn]] void fail_errno(const std::string& path, const char* what) {
  fail(path, std::string(what) + ": " + std::strerror(errno));
}
std::string in_quotes(const std::string& name) { return "'" + name + "'"; }

struct Mapping {
  char* data = nullptr;
  int64_t bytes = 0;
  Mapping() = default;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() {
    if (data) munmap(data, bytes);
  }
};

std::shared_ptr<Mapping> map_file(const std::string& path) {
  int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (file < 0) fail_errno(path, "cannot open");
  struct stat status;
  if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) {
    close(file);
    fail(path, "not a regular file");
  }
  auto mapping = std::make_shared<Mapping>();
  if (status.st_size > 0) {
    // Private: a tensor that is written in place gets pages of its own.
    void* data = mmap(nullptr, status.st_size, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, file, 0);
    if (data != MAP_FAILED) mapping->data = static_cast<char*>(data), mapping->bytes = status.st_size;
  }
  int error = errno;
  close(file);
  errno = error;
  if (status.st_size > 0 && !mapping->data) fail_errno(path, "cannot map");
  return mapping;
}

struct HeaderEntry {
  std::string name;
  std::optional<std::string> dtype;
  std::optional<std::vector<uint64_t>> shape, offsets;
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
      if (place_ == Place::entry) entries.push_back({key_, {}, {}, {}});
      keys_.clear();
    } else {
      return refuse("an object");
    }
    return true;
  }
  bool end_object() override {
    if (place_ == Place::entry) {
      const HeaderEntry& e = entries.back();
      if (!e.dtype || !e.shape || !e.offsets)
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
    auto& field = key_ == "shape" ? entries.back().shape : entries.back().offsets;
    numbers_ = &field.emplace();
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

DType dtype_of(const std::string& path, const HeaderEntry& entry) {
  std::string known;
  for (size_t i = 0; i < std::size(kDTypes); ++i) {
    if (kDTypes[i] == *entry.dtype) return static_cast<DType>(i);
    known += (i ? ", " : "") + std::string(kDTypes[i]);
  }
  fail(path, "tensor " + in_quotes(entry.name) + " has dtype " + in_quotes(*entry.dtype) + "; known: " + known);
}

// Bytes of a dense tensor, or -1 where they pass 63 bits.
int64_t dense_bytes(const Ints& shape, DType dtype) {
  int64_t bytes = size_of(dtype);
  bool empty = std::find(shape.begin(), shape.end(), 0) != shape.end();
  for (int64_t n : shape)
    if (__builtin_mul_overflow(bytes, n, &bytes)) return empty ? 0 : -1;
  return bytes;
}

StoragePtr storage_of(const std::shared_ptr<Mapping>& mapping, char* data, int64_t bytes, DType dtype) {
  if (reinterpret_cast<uintptr_t>(data) % size_of(dtype) != 0) {
    StoragePtr copy = Storage::allocate(bytes);
    std::memcpy(copy->data(), data, bytes);
    return copy;
  }
  auto release = [](void* owner) { delete static_cast<std::shared_ptr<Mapping>*>(owner); };
  return Storage::adopt(data, bytes, release, new std::shared_ptr<Mapping>(mapping));
}

}  // namespace

SafetensorsFile read_safetensors(const std::string& path) {
  std::shared_ptr<Mapping> mapping = map_file(path);
  if (mapping->bytes < kHeaderLength) fail(path, "shorter than the 8 bytes of the header's length");
  uint64_t length;
  std::memcpy(&length, mapping->data, sizeof length);
  if (length > kMaxHeader)
    fail(path,
         "the header is said to have " + std::to_string(length) + " bytes, more than " + std::to_string(kMaxHeader));
  const uint64_t available = static_cast<uint64_t>(mapping->bytes - kHeaderLength);
  if (length > available)
    fail(path, "truncated: the header is said to have " + std::to_string(length) + " bytes, " +
                   std::to_string(available) + " follow");
  const char* text = mapping->data + kHeaderLength;
  HeaderReader header;
  if (length == 0 || text[0] != '{') fail(path, "the header does not begin with '{'");
  if (!nlohmann::json::sax_parse(text, text + length, &header) || !header.error.empty())
    fail(path, header.error.empty() ? "the header is not valid" : header.error);

  std::sort(header.entries.begin(), header.entries.end(),
            [](const HeaderEntry& a, const HeaderEntry& b) { return *a.offsets < *b.offsets; });
  const uint64_t data_bytes = available - length;
  char* data = mapping->data + kHeaderLength + length;
  uint64_t end = 0;
  SafetensorsFile file;
  file.metadata = std::move(header.metadata);
  for (const HeaderEntry& entry : header.entries) {
    const std::string tensor = "tensor " + in_quotes(entry.name);
    StoredTensor t{entry.name, dtype_of(path, entry), {}, {}};
    for (uint64_t n : *entry.shape) {
      if (n > INT64_MAX) fail(path, tensor + " has a size of " + std::to_string(n));
      t.shape.push_back(static_cast<int64_t>(n));
    }
    if (entry.offsets->size() != 2) fail(path, tensor + " has not two data offsets");
    const uint64_t from = (*entry.offsets)[0], to = (*entry.offsets)[1];
    if (from > to || to > data_bytes)
      fail(path, tensor + " lies at " + std::to_string(from) + " to " + std::to_string(to) + ", outside of the " +
                     std::to_string(data_bytes) + " bytes of data");
    const int64_t expected = dense_bytes(t.shape, t.dtype);
    if (expected < 0 || static_cast<uint64_t>(expected) != to - from)
      fail(path, tensor + " has " + std::to_string(to - from) + " bytes; its shape and dtype need " +
                     (expected < 0 ? "more than 63 bits can count" : std::to_string(expected)));
    if (from != end)
      fail(path, tensor + (from < end ? " overlaps another tensor" : " leaves a hole of bytes before it"));
    end = to;
    t.storage = storage_of(mapping, data + from, expected, t.dtype);
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
    if (dense_bytes(t.shape, t.dtype) < 0) fail(path, "tensor " + in_quotes(t.name) + " is too large");
    order.push_back(&t);
  }
  std::sort(order.begin(), order.end(), [](const TensorBytes* a, const TensorBytes* b) {
    return std::make_pair(-size_of(a->dtype), a->name) < std::make_pair(-size_of(b->dtype), b->name);
  });

  nlohmann::ordered_json header = nlohmann::ordered_json::object();
  if (!metadata.empty()) header[kMetadata] = metadata;
  int64_t offset = 0;
  for (const TensorBytes* t : order) {
    int64_t bytes = dense_bytes(t->shape, t->dtype);
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

  std::string temporary = path + ".XXXXXX";
  int file = mkostemp(temporary.data(), O_CLOEXEC);
  if (file < 0) fail_errno(path, "cannot create");
  auto write_all = [&](const void* data, int64_t bytes) {
    const char* at = static_cast<const char*>(data);
    while (bytes > 0) {
      ssize_t written = write(file, at, static_cast<size_t>(bytes));
      if (written < 0 && errno == EINTR) continue;
      if (written <= 0) return false;
      at += written, bytes -= written;
    }
    return true;
  };
  bool good = write_all(&length, sizeof length) && write_all(text.data(), static_cast<int64_t>(length));
  for (const TensorBytes* t : order) good = good && write_all(t->data, dense_bytes(t->shape, t->dtype));
  mode_t mask = umask(0);
  umask(mask);
  good = good && fchmod(file, 0666 & ~mask) == 0;
  good = close(file) == 0 && good;
  good = good && rename(temporary.c_str(), path.c_str()) == 0;
  if (good) return;
  int error = errno;
  unlink(temporary.c_str());
  errno = error;
  fail_errno(path, "cannot write");
}

}  // namespace ingot::runtime
