#include "eager/ops/lists.h"

#include "eager/call/call.h"

namespace ingot {
namespace {

using eager::fail;
using eager::present;

/// The tensors of a list, all of them defined.
std::vector<Tensor> members(const char* op, const TensorList& list) {
  if (list.size == 0) fail(op, "tensors", "an empty list", "at least one tensor", list.location);
  for (size_t i = 0; i < list.size; ++i)
    if (!list.data[i].defined())
      fail(op, "tensors[" + std::to_string(i) + "]", "an undefined tensor", "a tensor", list.location);
  return {list.data, list.data + list.size};
}

}  // namespace

Tensor column_stack(const TensorList& tensors) {
  std::vector<Tensor> columns = members("column_stack", tensors);
  for (Tensor& t : columns)
    if (t.dim() < 2) t = t.reshape({t.numel(), 1}, tensors.location);
  return cat(TensorList(columns, tensors.location), 1);
}

Tensor dstack(const TensorList& tensors) {
  std::vector<Tensor> planes = members("dstack", tensors);
  for (Tensor& t : planes) {
    if (t.dim() < 2) t = t.reshape({1, t.numel()}, tensors.location);
    if (t.dim() < 3) t = t.unsqueeze(2, tensors.location);
  }
  return cat(TensorList(planes, tensors.location), 2);
}

std::vector<Tensor> broadcast_tensors(const TensorList& tensors) {
  std::vector<Tensor> parts = members("broadcast_tensors", tensors);
  Ints shape;
  for (size_t i = 0; i < parts.size(); ++i) {
    IntArrayRef sizes = parts[i].sizes();
    while (shape.size() < sizes.size()) shape.insert(0, 1);
    for (size_t d = 0; d < sizes.size(); ++d) {
      int64_t& size = shape[shape.size() - sizes.size() + d];
      if (size != sizes[d] && size != 1 && sizes[d] != 1)
        fail("broadcast_tensors", "tensors[" + std::to_string(i) + "]", "size " + std::to_string(sizes[d]),
             "1 or " + std::to_string(size) + ", the size of that dim in the others", tensors.location);
      if (size == 1) size = sizes[d];
    }
  }
  for (Tensor& t : parts) t = t.expand(shape, tensors.location);
  return parts;
}

std::vector<Tensor> meshgrid(const TensorList& tensors, Word word) {
  const std::string_view indexing = word;
  std::vector<Tensor> lines = members("meshgrid", tensors);
  if (indexing != "ij" && indexing != "xy")
    fail("meshgrid", "indexing", "\"" + std::string(indexing) + "\"", "\"ij\" or \"xy\"", tensors.location);
  bool swapped = indexing == "xy" && lines.size() > 1;
  if (swapped) std::swap(lines[0], lines[1]);
  Ints shape;
  for (const Tensor& t : lines) {
    if (t.dim() > 1)
      fail("meshgrid", "tensors", "a tensor with " + std::to_string(t.dim()) + " dims", "at most one",
           tensors.location);
    shape.push_back(t.numel());
  }
  for (size_t i = 0; i < lines.size(); ++i) {
    Ints line(lines.size(), 1);
    line[i] = lines[i].numel();
    lines[i] = lines[i].view(line, tensors.location).expand(shape, tensors.location);
  }
  if (swapped) std::swap(lines[0], lines[1]);
  return lines;
}

std::vector<Tensor> tensor_split(const TensorArg& self, int64_t sections, int64_t dim) {
  const Tensor& x = present("tensor_split", "self", self);
  if (x.dim() == 0) fail("tensor_split", "self", "a zero-dim tensor", "at least one dim", self.location);
  if (sections < 1)
    fail("tensor_split", "indices_or_sections", std::to_string(sections), "a positive number", self.location);
  int64_t size = x.size(dim, self.location), at = 0;
  std::vector<Tensor> pieces;
  for (int64_t i = 0; i < sections; ++i) {
    int64_t length = size / sections + (i < size % sections ? 1 : 0);
    pieces.push_back(x.slice(dim, at, at + length, 1, self.location));
    at += length;
  }
  return pieces;
}

std::vector<Tensor> tensor_split(const TensorArg& self, const std::vector<int64_t>& indices, int64_t dim) {
  const Tensor& x = present("tensor_split", "self", self);
  if (x.dim() == 0) fail("tensor_split", "self", "a zero-dim tensor", "at least one dim", self.location);
  std::vector<Tensor> pieces;
  int64_t at = 0;
  for (int64_t index : indices) {
    pieces.push_back(x.slice(dim, at, index, 1, self.location));
    at = index;
  }
  pieces.push_back(x.slice(dim, at, std::nullopt, 1, self.location));
  return pieces;
}

std::vector<Tensor> tensor_split(const TensorArg& self, const TensorArg& indices_or_sections, int64_t dim) {
  const Tensor& given = present("tensor_split", "indices_or_sections", indices_or_sections);
  Location location = self.location;
  if (given.dtype() != kInt64 || given.dim() > 1)
    fail("tensor_split", "indices_or_sections",
         "a " + std::string(name_of(given.dtype())) + " tensor with " + std::to_string(given.dim()) + " dims",
         "an i64 tensor with at most one dim", location);
  if (given.dim() == 0) return tensor_split(self, given.item<int64_t>(location), dim);
  Tensor dense = given.contiguous(location);
  const int64_t* values = dense.data_ptr<int64_t>(location);
  return tensor_split(self, std::vector<int64_t>(values, values + dense.numel()), dim);
}

std::vector<Tensor> Tensor::tensor_split(int64_t sections, int64_t dim, Location location) const {
  return ingot::tensor_split({*this, location}, sections, dim);
}
std::vector<Tensor> Tensor::tensor_split(const std::vector<int64_t>& indices, int64_t dim, Location location) const {
  return ingot::tensor_split({*this, location}, indices, dim);
}
std::vector<Tensor> Tensor::tensor_split(const TensorArg& indices_or_sections, int64_t dim, Location location) const {
  return ingot::tensor_split({*this, location}, indices_or_sections, dim);
}

}  // namespace ingot
