// A sample of the op table at other sizes, and inputs that repeat.
#pragma once
#include <algorithm>
#include <cctype>
#include <cstring>
#include <optional>
#include <set>
#include <string>

#include "eager/op_support.h"
#include "ir/samples.h"

namespace ingot {

/// Attributes that are sizes of the result or of an operand, as they stand in a sample's text.
inline constexpr const char* kSizeAttributes[] = {
    "size=", "normalized_shape=", "output_size=", "length=", "n=", "m=", "row=", "col=", "steps="};

/// Calls f(begin, end) for each number of the text that is a size: of an input, or (where `attributes`) in the call.
template <class F>
void for_each_size(const std::string& text, bool attributes, F f) {
  auto numbers = [&](size_t at, size_t stop) {
    while (at < stop) {
      size_t end = at;
      while (end < stop && std::isdigit(static_cast<unsigned char>(text[end]))) ++end;
      if (end > at) f(at, end);
      at = std::max(end, at + 1);
    }
  };
  for (size_t at = 0, end; at < text.size(); at = end + 1) {
    end = text.find('\n', at);
    const std::string line = text.substr(at, end - at);
    if (line.starts_with("input")) {
      numbers(at + line.find('['), end);
    } else if (attributes && line.find('(') != std::string::npos) {
      for (const char* name : kSizeAttributes) {
        size_t found = line.find(std::string(", ") + name);
        if (found == std::string::npos) found = line.find(std::string("(") + name);
        if (found == std::string::npos) continue;
        const size_t from = line.find('=', found);
        numbers(at + from, at + (line[from + 1] == '[' ? line.find(']', from) : line.find_first_of(",)", from)));
      }
    }
  }
}

/// The different sizes in a sample: of its inputs, and (where `attributes`) in the call.
inline std::set<int64_t> sizes_of(const std::string& text, bool attributes = true) {
  std::set<int64_t> sizes;
  for_each_size(text, attributes,
                [&](size_t begin, size_t end) { sizes.insert(std::stoll(text.substr(begin, end - begin))); });
  return sizes;
}

/// The sample with every input dim of size `from` at size `to`; if the op does not take that with the attributes as
/// they are, with sizes among them changed as well; nothing if it does not take this size at all.
inline std::optional<ir::Graph> resized(const std::string& text, int64_t from, int64_t to) {
  for (bool attributes : {false, true}) {
    std::string changed;
    size_t copied = 0;
    for_each_size(text, attributes, [&](size_t begin, size_t end) {
      if (text.substr(begin, end - begin) != std::to_string(from)) return;
      changed += text.substr(copied, begin - copied) + std::to_string(to);
      copied = end;
    });
    if (!copied) continue;
    try {
      return ir::parse(changed + text.substr(copied));
    } catch (const Error&) {
    }
  }
  return std::nullopt;
}

/// Elements of the largest input or result.
inline int64_t most_elements(const ir::Graph& graph) {
  int64_t most = 0;
  auto count = [&](ir::ValueId value) {
    int64_t n = 1;
    for (int64_t size : shape_of(graph, value)) n *= size;
    most = std::max(most, n);
  };
  for (const ir::InputInfo& input : graph.inputs) count(input.value);
  for (ir::ValueId output : graph.outputs) count(output);
  return most;
}

/// The elements of a dense tensor, repeated along each dim up to these sizes.
inline std::string tiled(std::string bytes, int64_t width, const Ints& shape, const Ints& to) {
  int64_t inner = width;
  for (size_t d = shape.size(); d-- > 0; inner *= to[d]) {
    if (shape[d] == to[d]) continue;
    const size_t row = shape[d] * inner, wanted = to[d] * inner;
    std::string wider;
    wider.reserve(bytes.size() / row * wanted);
    for (size_t at = 0; at < bytes.size(); at += row)
      for (size_t done = 0; done < wanted; done += row) wider.append(bytes, at, std::min(row, wanted - done));
    bytes = std::move(wider);
  }
  return bytes;
}

inline Ints sizes_of(const Tensor& t) { return Ints(t.sizes().begin(), t.sizes().end()); }
inline Tensor tiled(const Tensor& t, const Ints& to) {
  Tensor result = eager::make_empty(t.dtype(), to);
  if (t.numel() == 0) return result;
  Tensor dense = t.contiguous();
  std::string bytes(static_cast<const char*>(dense.data_ptr()), static_cast<size_t>(dense.nbytes()));
  bytes = tiled(std::move(bytes), t.itemsize(), sizes_of(t), to);
  std::memcpy(eager::data_of(*result.impl()), bytes.data(), bytes.size());
  return result;
}
inline ReferenceTensor reference_of(const Tensor& t) {
  return ReferenceTensor::from_bytes(t.dtype(), sizes_of(t), t.contiguous().data_ptr());
}

}  // namespace ingot
