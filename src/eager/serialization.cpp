// The safetensors format: 8 bytes of header length (little endian), a JSON header, the data without holes or overlaps.
#include "eager/serialization.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>
#include <set>

#include "eager/data.h"

namespace ingot {
namespace {

using nlohmann::json;

constexpr uint64_t kMaxHeader = 100'000'000;  // the reference implementation's bound

/// In the order of DType.
constexpr std::array<std::string_view, 10> kNames = {"F64", "F32", "F16", "BF16", "I64",
                                                     "I32", "I16", "I8",  "U8",   "BOOL"};

[[noreturn]] void refuse(const std::string& path, const std::string& why, Location location) {
  std::string where = location.str();
  throw Error("safetensors file " + path + ": " + why + (where.empty() ? "" : " (" + where + ")"));
}

struct Mapping {
  char* data = nullptr;
  size_t bytes = 0;
  Mapping(const std::string& path, Location location) {
    int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    if (file < 0) refuse(path, std::string("cannot be opened: ") + std::strerror(errno), location);
    struct stat about {};
    bool regular = fstat(file, &about) == 0 && S_ISREG(about.st_mode);
    bytes = regular ? static_cast<size_t>(about.st_size) : 0;
    void* at = bytes ? mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE, file, 0) : nullptr;
    close(file);
    if (!regular) refuse(path, "is not a regular file", location);
    if (at == MAP_FAILED) refuse(path, std::string("cannot be mapped: ") + std::strerror(errno), location);
    data = static_cast<char*>(at);
  }
  ~Mapping() {
    if (data) munmap(data, bytes);
  }
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
};

struct Entry {
  std::string name;
  DType dtype;
  Ints sizes;
  uint64_t begin, end;
};

struct File {
  std::shared_ptr<Mapping> mapping;
  size_t data_start = 0;
  std::vector<Entry> entries;
  std::map<std::string, std::string> metadata;
};

json parse_header(const std::string& path, const char* begin, const char* end, Location location) {
  std::vector<std::set<std::string>> keys(1);
  std::string twice;
  auto watch = [&](int depth, json::parse_event_t event, json& value) {
    if (event == json::parse_event_t::object_start) keys.resize(static_cast<size_t>(depth) + 2);
    if (event == json::parse_event_t::object_start) keys[static_cast<size_t>(depth) + 1].clear();
    if (event == json::parse_event_t::key && !keys[static_cast<size_t>(depth)].insert(value.get<std::string>()).second)
      twice = value.get<std::string>();
    return true;
  };
  json header = json::parse(begin, end, watch, false);
  if (header.is_discarded() || !header.is_object()) refuse(path, "its header is not a JSON object", location);
  if (!twice.empty()) refuse(path, "the name \"" + twice + "\" stands in it twice", location);
  return header;
}

Entry parse_entry(const std::string& path, const std::string& name, const json& value, uint64_t data_bytes,
                  Location location) {
  auto bad = [&](const std::string& why) { refuse(path, "tensor \"" + name + "\": " + why, location); };
  if (!value.is_object() || !value.contains("dtype") || !value.contains("shape") || !value.contains("data_offsets"))
    bad("expected dtype, shape and data_offsets");
  const json &dtype = value["dtype"], &shape = value["shape"], &offsets = value["data_offsets"];
  if (!dtype.is_string() || !shape.is_array() || !offsets.is_array() || offsets.size() != 2)
    bad("dtype, shape or data_offsets is not of the right kind");
  auto number = std::find(kNames.begin(), kNames.end(), dtype.get<std::string>());
  if (number == kNames.end()) bad("dtype " + dtype.get<std::string>() + " is not one that tensors have here");
  Entry e{name, static_cast<DType>(number - kNames.begin()), {}, 0, 0};
  uint64_t bytes = static_cast<uint64_t>(size_of(e.dtype));
  bool empty = false;
  for (const json& size : shape) {
    if (!size.is_number_unsigned()) bad("a size is not a whole number");
    uint64_t n = size.get<uint64_t>();
    empty |= n == 0;
    if (n > INT64_MAX || (n != 0 && __builtin_mul_overflow(bytes, n, &bytes))) bad("its size does not fit 64 bits");
    e.sizes.push_back(static_cast<int64_t>(n));
  }
  if (empty) bytes = 0;
  if (!offsets[0].is_number_unsigned() || !offsets[1].is_number_unsigned()) bad("an offset is not a whole number");
  e.begin = offsets[0].get<uint64_t>();
  e.end = offsets[1].get<uint64_t>();
  if (e.begin > e.end || e.end > data_bytes) bad("its data lies outside the file");
  if (e.end - e.begin != bytes)
    bad("it has " + std::to_string(e.end - e.begin) + " bytes of data, expected " + std::to_string(bytes));
  return e;
}

File read(const std::string& path, Location location) {
  File file;
  file.mapping = std::make_shared<Mapping>(path, location);
  const Mapping& m = *file.mapping;
  if (m.bytes < 8) refuse(path, "is truncated: " + std::to_string(m.bytes) + " bytes, expected at least 8", location);
  uint64_t length;
  std::memcpy(&length, m.data, 8);
  if (length > kMaxHeader || length > m.bytes - 8)
    refuse(path,
           "its header length is " + std::to_string(length) + ", expected at most " +
               std::to_string(std::min<uint64_t>(kMaxHeader, m.bytes - 8)),
           location);
  file.data_start = 8 + length;
  uint64_t data_bytes = m.bytes - file.data_start;
  json header = parse_header(path, m.data + 8, m.data + file.data_start, location);
  for (const auto& [name, value] : header.items()) {
    if (name == "__metadata__") {
      if (!value.is_object()) refuse(path, "__metadata__ is not an object", location);
      for (const auto& [key, text] : value.items()) {
        if (!text.is_string()) refuse(path, "__metadata__ holds something other than text", location);
        file.metadata[key] = text.get<std::string>();
      }
    } else {
      file.entries.push_back(parse_entry(path, name, value, data_bytes, location));
    }
  }
  std::sort(file.entries.begin(), file.entries.end(),
            [](const Entry& a, const Entry& b) { return std::pair(a.begin, a.end) < std::pair(b.begin, b.end); });
  uint64_t at = 0;
  for (const Entry& e : file.entries) {
    if (e.begin < at) refuse(path, "tensor \"" + e.name + "\" overlaps another one", location);
    if (e.begin > at) refuse(path, "there is a hole before tensor \"" + e.name + "\"", location);
    at = e.end;
  }
  if (at != data_bytes)
    refuse(path, "has " + std::to_string(data_bytes) + " bytes of data, its tensors " + std::to_string(at), location);
  return file;
}

Tensor tensor_of(const File& file, const Entry& e) {
  char* data = file.mapping->data + file.data_start + e.begin;
  if (e.begin == e.end || reinterpret_cast<uintptr_t>(data) % static_cast<uintptr_t>(size_of(e.dtype)) != 0) {
    Tensor copy = eager::make_empty(e.dtype, e.sizes);
    if (e.end > e.begin) std::memcpy(eager::data_of(*copy.impl()), data, e.end - e.begin);
    return copy;
  }
  auto* owner = new std::shared_ptr<Mapping>(file.mapping);
  runtime::StoragePtr storage = runtime::Storage::adopt(
      data, static_cast<int64_t>(e.end - e.begin), [](void* p) { delete static_cast<std::shared_ptr<Mapping>*>(p); },
      owner);
  return eager::make_tensor(e.dtype, e.sizes, eager::contiguous_strides(e.sizes), 0, storage.get());
}

}  // namespace

StateDict load(const std::string& path, Location location) {
  File file = read(path, location);
  StateDict tensors;
  for (const Entry& e : file.entries) tensors[e.name] = tensor_of(file, e);
  return tensors;
}

std::map<std::string, std::string> load_metadata(const std::string& path, Location location) {
  return read(path, location).metadata;
}

void save(const StateDict& tensors, const std::string& path, const std::map<std::string, std::string>& metadata,
          Location location) {
  // Wide elements first: every tensor then lies aligned.
  std::vector<std::pair<std::string, Tensor>> order;
  for (const auto& [name, tensor] : tensors) order.emplace_back(name, tensor.contiguous(location));
  std::stable_sort(order.begin(), order.end(),
                   [](const auto& a, const auto& b) { return a.second.itemsize() > b.second.itemsize(); });
  json header = json::object();
  if (!metadata.empty()) header["__metadata__"] = metadata;
  int64_t at = 0;
  for (const auto& [name, tensor] : order) {
    if (name == "__metadata__") refuse(path, "a tensor cannot be called __metadata__", location);
    header[name] = {{"dtype", kNames[static_cast<size_t>(tensor.dtype())]},
                    {"shape", tensor.sizes().vec()},
                    {"data_offsets", {at, at + tensor.nbytes()}}};
    at += tensor.nbytes();
  }
  std::string text = header.dump();
  text.append((8 - text.size() % 8) % 8, ' ');
  uint64_t length = text.size();
  std::string fresh = path + "." + std::to_string(getpid()) + ".tmp";
  std::ofstream out(fresh, std::ios::binary);
  out.write(reinterpret_cast<const char*>(&length), 8);
  out.write(text.data(), static_cast<std::streamsize>(text.size()));
  for (const auto& [name, tensor] : order)
    out.write(static_cast<const char*>(tensor.data_ptr(location)), static_cast<std::streamsize>(tensor.nbytes()));
  out.close();
  std::error_code failed;
  if (out) std::filesystem::rename(fresh, path, failed);
  if (!out || failed) {
    std::filesystem::remove(fresh, failed);
    refuse(path, "cannot be written", location);
  }
}

}  // namespace ingot
