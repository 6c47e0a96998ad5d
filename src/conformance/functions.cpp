#include "conformance/functions.h"

#include <algorithm>
#include <cmath>
#include <map>

#include "eager/nn/functional.h"
#include "eager/nn/pooling.h"
#include "eager/nn/resample.h"
#include "eager/nn/windows.h"
#include "eager/ops/contractions.h"
#include "eager/ops/functions.h"
#include "eager/ops/indexing.h"
#include "eager/ops/linalg.h"
#include "eager/ops/lists.h"
#include "eager/ops/selection.h"

namespace ingot::conformance {

using Kind = CaseValue::Kind;

namespace {

using Tensors = std::vector<Tensor>;
using A = const Arguments&;

TensorOptions options_of(A a) { return a.dtype() ? TensorOptions(*a.dtype()) : TensorOptions(); }
/// PyTorch's factories "like" a tensor take its dtype where none is given.
TensorOptions options_like(A a) { return a.dtype() ? TensorOptions(*a.dtype()) : TensorOptions(a.tensor(0).dtype()); }

Tensors index(A a) {
  std::vector<TensorIndex> indices;
  for (const CaseValue& v : a.value(1).items) {
    if (v.is(Kind::null))
      indices.emplace_back(None);
    else if (v.is(Kind::ellipsis))
      indices.emplace_back(Ellipsis);
    else if (v.is(Kind::slice))
      indices.emplace_back(Slice(v.start, v.stop, v.step));
    else if (v.is(Kind::tensor))
      indices.emplace_back(a.make(v.tensor));
    else if (v.is(Kind::boolean))
      indices.emplace_back(v.integer != 0);
    else
      indices.emplace_back(v.integer);
  }
  return {a.tensor(0).index(indices)};
}

Tensors arange(A a) {
  std::vector<Scalar> numbers;
  for (size_t i = 0; i < a.given().args.size(); ++i) numbers.push_back(a.scalar(i));
  if (const CaseValue* end = a.given().find(a.given().args.size(), "end"); end) numbers.push_back(a.scalar(9, "end"));
  if (numbers.size() == 1) return {ingot::arange(numbers[0], options_of(a))};
  if (numbers.size() == 2) return {ingot::arange(numbers[0], numbers[1], options_of(a))};
  return {ingot::arange(numbers[0], numbers[1], numbers[2], options_of(a))};
}

Tensors results(const Tensor& one) { return {one}; }
Tensors results(const std::tuple<Tensor, Tensor>& two) { return {std::get<0>(two), std::get<1>(two)}; }

/// var(self, unbiased), var(self, dim, unbiased, keepdim): PyTorch's older spelling of correction 1 or 0.
template <class F>
Tensors spread(A a, F f) {
  bool only = a.given().args.size() == 2 && a.value(1).is(Kind::boolean);
  IntList dims;
  if (!only && a.has(1, "dim")) dims = IntList(a.list(1, "dim"));
  bool unbiased = only ? a.integer(1) : a.integer(2, "unbiased", 1);
  return results(f(a.tensor(0), dims, unbiased ? 1.0 : 0.0, a.integer(3, "keepdim", 0) != 0));
}
bool is_unbiased_form(const Case& c) {
  return c.find(c.args.size(), "unbiased") || (c.args.size() > 1 && c.args[1].is(Kind::boolean));
}

template <class Whole, class Two>
Tensors extreme(A a, Whole whole, Two two) {
  return {a.given().args.size() > 1 ? two(a.tensor(0), a.tensor(1)) : whole(a.tensor(0))};
}
bool is_without_dim(const Case& c) { return c.kwargs.empty() && (c.args.size() == 1 || c.has_tensor(1)); }

Tensors pad(A a) {
  std::string mode = a.has(2, "mode") ? a.value(2, "mode").text : "constant";
  return {
      nn::functional::pad(a.tensor(0), a.list(1, "pad"), mode, a.has(3, "value") ? a.scalar(3, "value") : Scalar(0))};
}

template <class Convolve>
Tensors convolve_by_word(A a, Convolve convolve) {
  Tensor input = a.tensor(0), weight = a.tensor(1), bias = a.has(2, "bias") ? a.tensor(2, "bias") : Tensor();
  IntList stride = a.has(3, "stride") ? IntList(a.list(3, "stride")) : IntList(1);
  IntList dilation = a.has(5, "dilation") ? IntList(a.list(5, "dilation")) : IntList(1);
  return {convolve(input, weight, bias, stride, a.value(4, "padding").text, dilation, a.integer(6, "groups", 1))};
}
bool is_padded_by_word(const Case& c) {
  const CaseValue* padding = c.find(4, "padding");
  return padding && padding->is(Kind::text);
}

/// Pooling that also gives the positions, where the case asks for them.
template <class Pool, class WithIndices>
Tensors max_pool(A a, Pool pool, WithIndices with_indices) {
  IntList stride = a.has(2, "stride") && !a.list(2, "stride").empty() ? IntList(a.list(2, "stride")) : IntList();
  IntList padding = a.has(3, "padding") ? IntList(a.list(3, "padding")) : IntList(0);
  IntList dilation = a.has(4, "dilation") ? IntList(a.list(4, "dilation")) : IntList(1);
  bool ceil_mode = a.integer(5, "ceil_mode", 0);
  Tensor input = a.tensor(0);
  IntList kernel = a.list(1, "kernel_size");
  if (!a.integer(6, "return_indices", 0)) return {pool(input, kernel, stride, padding, dilation, ceil_mode)};
  auto [values, indices] = with_indices(input, kernel, stride, padding, dilation, ceil_mode);
  return {values, indices};
}
bool asks_for_indices(const Case& c) { return c.find(c.args.size(), "return_indices") != nullptr; }

/// Sizes of which some may be null; one stands for all.
std::vector<std::optional<int64_t>> adaptive_sizes(A a, size_t spatial) {
  const CaseValue& v = a.value(1, "output_size");
  if (v.is(Kind::integer)) return std::vector<std::optional<int64_t>>(spatial, v.integer);
  std::vector<std::optional<int64_t>> sizes;
  for (const CaseValue& item : v.items)
    sizes.push_back(item.is(Kind::null) ? std::nullopt : std::optional<int64_t>(item.integer));
  return sizes;
}
template <class Pool, class WithIndices>
Tensors adaptive_max_pool(A a, size_t spatial, Pool pool, WithIndices with_indices) {
  Tensor x = a.tensor(0);
  IntList sizes = nn::functional::adaptive_size(x, adaptive_sizes(a, spatial));
  if (!a.integer(2, "return_indices", 0)) return {pool(x, sizes)};
  auto [values, indices] = with_indices(x, sizes);
  return {values, indices};
}
bool is_list_with_null(const Case& c) {
  const CaseValue* sizes = c.find(1, "output_size");
  return sizes &&
         std::any_of(sizes->items.begin(), sizes->items.end(), [](const CaseValue& v) { return v.is(Kind::null); });
}

Tensors interpolate(A a) {
  std::vector<double> scales;
  if (a.has(2, "scale_factor")) {
    const CaseValue& v = a.value(2, "scale_factor");
    if (!v.is(Kind::list)) scales.push_back(a.scalar(2, "scale_factor").to_double());
    for (const CaseValue& item : v.items)
      scales.push_back(item.is(Kind::number) ? item.number : static_cast<double>(item.integer));
  }
  std::optional<bool> align;
  if (a.has(4, "align_corners")) align = a.integer(4, "align_corners") != 0;
  return {nn::functional::interpolate(a.tensor(0), a.has(1, "size") ? IntList(a.list(1, "size")) : IntList(), scales,
                                      a.has(3, "mode") ? a.value(3, "mode").text : "nearest", align,
                                      a.integer(5, "recompute_scale_factor", 0) != 0)};
}

Tensors tensordot(A a) {
  const CaseValue& dims = a.value(2, "dims");
  if (!dims.is(Kind::list)) return {ingot::tensordot(a.tensor(0), a.tensor(1), dims.integer)};
  auto numbers = [](const CaseValue& list) {
    std::vector<int64_t> result;
    for (const CaseValue& item : list.items) result.push_back(item.integer);
    return result;
  };
  if (dims.items.size() != 2) throw Error("dims are neither a number nor two lists");
  return {ingot::tensordot(a.tensor(0), a.tensor(1), numbers(dims.items[0]), numbers(dims.items[1]))};
}

Tensors tensor_split(A a) {
  int64_t dim = a.integer(2, "dim", 0);
  const CaseValue& given = a.value(1);
  if (given.is(Kind::tensor)) return ingot::tensor_split(a.tensor(0), a.tensor(1), dim);
  if (given.is(Kind::list)) return ingot::tensor_split(a.tensor(0), a.list(1), dim);
  return ingot::tensor_split(a.tensor(0), a.integer(1), dim);
}

/// Tensors one by one, or a list of them.
Tensors listed(A a) {
  if (a.value(0).is(Kind::list)) return a.tensors(0);
  Tensors all;
  for (size_t i = 0; i < a.given().args.size(); ++i) all.push_back(a.tensor(i));
  return all;
}

Tensors diff(A a) {
  Tensor prepend = a.has(3, "prepend") ? a.tensor(3, "prepend") : Tensor();
  Tensor append = a.has(4, "append") ? a.tensor(4, "append") : Tensor();
  return {ingot::diff(a.tensor(0), a.integer(1, "n", 1), a.integer(2, "dim", -1), prepend, append)};
}

/// PyTorch's words: "fro", the norm of order 2, and "nuc".
Tensors norm_by_word(A a) {
  Tensor x = a.tensor(0);
  if (a.value(1, "p").text == "nuc")
    return {
        nuclear_norm(x, a.has(2, "dim") ? IntList(a.list(2, "dim")) : IntList({-2, -1}), a.integer(3, "keepdim", 0))};
  return {norm(a.tensor(0), 2, a.has(2, "dim") ? IntList(a.list(2, "dim")) : IntList(), a.integer(3, "keepdim", 0))};
}

/// The method's arguments: the function has the order before the tensor.
Tensors polygamma_of_tensor(A a) { return {ingot::polygamma(a.integer(1, "n"), a.tensor(0))}; }
bool is_tensor_first(const Case& c) { return c.has_tensor(0); }

Tensors cast(A a) {
  if (a.given().has_tensor(1)) return {a.tensor(0).type_as(a.tensor(1))};
  const std::optional<DType> dtype = a.dtype();
  if (!dtype) throw Error("neither a dtype nor a tensor to cast to");
  return {a.tensor(0).to(*dtype)};
}

Tensors repeat_interleave(A a) {
  std::optional<int64_t> dim, size;
  if (a.has(2, "dim")) dim = a.integer(2, "dim");
  if (a.has(3, "output_size")) size = a.integer(3, "output_size");
  if (!a.has(1, "repeats")) return {ingot::repeat_interleave(a.tensor(0), size)};
  if (!a.value(1, "repeats").is(Kind::tensor)) return {a.tensor(0).repeat_interleave(a.integer(1, "repeats"), dim)};
  return {ingot::repeat_interleave(a.tensor(0), a.tensor(1, "repeats"), dim, size)};
}

/// The arguments that a table's functions have in PyTorch and no op has: rows scaled in place before they are read, and
/// a padding_idx from the end, where the op's -1 is none.
void renorm(A a, const Tensor& weight, const Tensor& indices) {
  if (!a.has(3, "max_norm")) return;
  const double type = a.has(4, "norm_type") ? a.scalar(4, "norm_type").to_double() : 2;
  nn::functional::embedding_renorm_(weight, indices, a.scalar(3, "max_norm").to_double(), type);
}
int64_t padding_of(A a, size_t i, int64_t rows) {
  if (!a.has(i, "padding_idx")) return -1;
  const int64_t given = a.integer(i, "padding_idx");
  if (given < -rows || given >= rows)
    throw Error("embedding: padding_idx: got " + std::to_string(given) + ", expected an index of " +
                std::to_string(rows) + " rows");
  return given < 0 ? given + rows : given;
}

Tensors embedding_bag(A a) {
  std::optional<int64_t> padding;
  if (a.has(10, "padding_idx")) padding = a.integer(10, "padding_idx");
  auto optional = [&](size_t i, const char* name) { return a.has(i, name) ? a.tensor(i, name) : Tensor(); };
  Tensor weight = a.tensor(0), indices = a.tensor(1), offsets = optional(2, "offsets"),
         scale = optional(8, "per_sample_weights");
  auto argument = [](const Tensor& t) { return t.defined() ? TensorArg(t) : TensorArg(); };
  std::string mode = a.has(6, "mode") ? a.value(6, "mode").text : "mean";
  renorm(a, weight, indices);
  return {nn::functional::embedding_bag(indices, weight, argument(offsets), mode, argument(scale),
                                        a.integer(9, "include_last_offset", 0) != 0, padding)};
}

Tensors index_put(A a) {
  std::vector<TensorIndex> indices;
  for (const CaseValue& v : a.value(1).items) {
    if (v.is(Kind::null))
      indices.emplace_back(Slice());
    else
      indices.emplace_back(a.make(v.tensor));
  }
  return {ingot::index_put(a.tensor(0), indices, a.tensor(2), a.integer(3, "accumulate", 0) != 0)};
}

bool always(const Case&) { return true; }

const std::map<std::string, Function, std::less<>>& functions() {
  static const std::map<std::string, Function, std::less<>> table = {
      {"__getitem__", {index, always, true}},  // a bool tensor among the indices: the shape depends on data
      {"reshape", {[](A a) { return Tensors{a.tensor(0).reshape(a.list(1, "shape"))}; }, always}},
      {"flatten",
       {[](A a) { return Tensors{a.tensor(0).flatten(a.integer(1, "start_dim", 0), a.integer(2, "end_dim", -1))}; },
        always}},
      {"unflatten",
       {[](A a) { return Tensors{a.tensor(0).unflatten(a.integer(1, "dim"), a.list(2, "sizes"))}; }, always}},
      {"transpose",
       {[](A a) { return Tensors{a.tensor(0).transpose(a.integer(1, "dim0"), a.integer(2, "dim1"))}; }, always}},
      {"t", {[](A a) { return Tensors{a.tensor(0).t()}; }, always}},
      {"mT", {[](A a) { return Tensors{a.tensor(0).mT()}; }, always}},
      {"movedim",
       {[](A a) { return Tensors{a.tensor(0).movedim(a.list(1, "source"), a.list(2, "destination"))}; }, always}},
      {"narrow",
       {[](A a) {
          return Tensors{a.tensor(0).narrow(a.integer(1, "dim"), a.integer(2, "start"), a.integer(3, "length"))};
        },
        always, true}},
      {"unbind", {[](A a) { return a.tensor(0).unbind(a.integer(1, "dim", 0)); }, always}},
      {"split",
       {[](A a) {
          int64_t dim = a.integer(2, "dim", 0);
          if (a.value(1).is(Kind::list)) return a.tensor(0).split(a.list(1), dim);
          return a.tensor(0).split(a.integer(1), dim);
        },
        always}},
      {"split_with_sizes",
       {[](A a) { return a.tensor(0).split_with_sizes(a.list(1, "split_sizes"), a.integer(2, "dim", 0)); }, always}},
      {"chunk", {[](A a) { return a.tensor(0).chunk(a.integer(1, "chunks"), a.integer(2, "dim", 0)); }, always}},
      {"repeat", {[](A a) { return Tensors{a.tensor(0).repeat(a.list(1, "repeats"))}; }, always}},
      {"tile", {[](A a) { return Tensors{a.tensor(0).tile(a.list(1, "dims"))}; }, always}},
      {"hstack", {[](A a) { return Tensors{hstack(a.tensors(0))}; }, always}},
      {"vstack", {[](A a) { return Tensors{vstack(a.tensors(0))}; }, always}},
      {"contiguous", {[](A a) { return Tensors{a.tensor(0).contiguous()}; }, always}},
      {"expand_as", {[](A a) { return Tensors{a.tensor(0).expand_as(a.tensor(1))}; }, always}},
      {"to", {cast, always}},
      {"zeros", {[](A a) { return Tensors{zeros(a.list(0), options_of(a))}; }, always}},
      {"ones", {[](A a) { return Tensors{ones(a.list(0), options_of(a))}; }, always}},
      {"zeros_like", {[](A a) { return Tensors{zeros_like(a.tensor(0), options_of(a))}; }, always}},
      {"ones_like", {[](A a) { return Tensors{ones_like(a.tensor(0), options_of(a))}; }, always}},
      {"full_like", {[](A a) { return Tensors{full_like(a.tensor(0), a.scalar(1), options_of(a))}; }, always}},
      {"new_zeros", {[](A a) { return Tensors{zeros(a.list(1), options_like(a))}; }, always}},
      {"new_ones", {[](A a) { return Tensors{ones(a.list(1), options_like(a))}; }, always}},
      {"new_full",
       {[](A a) { return Tensors{full(a.list(1), a.scalar(2), *TensorOptions(options_like(a)).type)}; }, always}},
      {"arange", {arange, always}},
      {"nn.functional.normalize",
       {[](A a) {
          double p = a.has(1, "p") ? a.scalar(1, "p").to_double() : 2,
                 eps = a.has(3, "eps") ? a.scalar(3, "eps").to_double() : 1e-12;
          return Tensors{nn::functional::normalize(a.tensor(0), p, a.integer(2, "dim", 1), eps)};
        },
        always}},
      {"nn.functional.pad", {pad, always}},
      {"constant_pad_nd",
       {[](A a) {
          return Tensors{nn::functional::pad(a.tensor(0), a.list(1, "pad"), "constant",
                                             a.has(2, "value") ? a.scalar(2, "value") : Scalar(0))};
        },
        always}},
      {"nn.functional.conv1d",
       {[](A a) {
          return convolve_by_word(a, [](const Tensor& x, const Tensor& w, const Tensor& b, auto&&... more) {
            return nn::functional::conv1d(x, w, b, more...);
          });
        },
        is_padded_by_word}},
      {"nn.functional.conv2d",
       {[](A a) {
          return convolve_by_word(a, [](const Tensor& x, const Tensor& w, const Tensor& b, auto&&... more) {
            return nn::functional::conv2d(x, w, b, more...);
          });
        },
        is_padded_by_word}},
      {"nn.functional.conv3d",
       {[](A a) {
          return convolve_by_word(a, [](const Tensor& x, const Tensor& w, const Tensor& b, auto&&... more) {
            return nn::functional::conv3d(x, w, b, more...);
          });
        },
        is_padded_by_word}},
      {"nn.functional.max_pool1d",
       {[](A a) { return max_pool(a, max_pool1d, nn::functional::max_pool1d_with_indices); }, asks_for_indices}},
      {"nn.functional.max_pool2d",
       {[](A a) { return max_pool(a, max_pool2d, nn::functional::max_pool2d_with_indices); }, asks_for_indices}},
      {"nn.functional.max_pool3d",
       {[](A a) { return max_pool(a, max_pool3d, nn::functional::max_pool3d_with_indices); }, asks_for_indices}},
      {"nn.functional.adaptive_avg_pool2d",
       {[](A a) {
          Tensor x = a.tensor(0);
          return Tensors{adaptive_avg_pool2d(x, nn::functional::adaptive_size(x, adaptive_sizes(a, 2)))};
        },
        is_list_with_null}},
      {"nn.functional.adaptive_avg_pool3d",
       {[](A a) {
          Tensor x = a.tensor(0);
          return Tensors{adaptive_avg_pool3d(x, nn::functional::adaptive_size(x, adaptive_sizes(a, 3)))};
        },
        is_list_with_null}},
      {"nn.functional.adaptive_max_pool1d",
       {[](A a) {
          return adaptive_max_pool(a, 1, adaptive_max_pool1d, nn::functional::adaptive_max_pool1d_with_indices);
        },
        always}},
      {"nn.functional.adaptive_max_pool2d",
       {[](A a) {
          return adaptive_max_pool(a, 2, adaptive_max_pool2d, nn::functional::adaptive_max_pool2d_with_indices);
        },
        always}},
      {"nn.functional.adaptive_max_pool3d",
       {[](A a) {
          return adaptive_max_pool(a, 3, adaptive_max_pool3d, nn::functional::adaptive_max_pool3d_with_indices);
        },
        always}},
      {"nn.functional.interpolate", {interpolate, always}},
      {"nn.functional.pixel_shuffle",
       {[](A a) { return Tensors{nn::functional::pixel_shuffle(a.tensor(0), a.integer(1, "upscale_factor"))}; },
        always}},
      {"nn.functional.pixel_unshuffle",
       {[](A a) { return Tensors{nn::functional::pixel_unshuffle(a.tensor(0), a.integer(1, "downscale_factor"))}; },
        always}},
      {"polygamma", {polygamma_of_tensor, is_tensor_first}},
      {"special.polygamma", {polygamma_of_tensor, is_tensor_first}},
      // How PyTorch computes it, the last argument, changes no result.
      {"cdist",
       {[](A a) { return Tensors{cdist(a.tensor(0), a.tensor(1), a.has(2, "p") ? a.scalar(2, "p").to_double() : 2)}; },
        always}},
      {"inner", {[](A a) { return Tensors{inner(a.tensor(0), a.tensor(1))}; }, always}},
      {"tensordot", {tensordot, always}},
      {"einsum", {[](A a) { return Tensors{einsum(a.value(1).text, a.tensors(0))}; }, always}},
      {"diff", {diff, always}},
      {"column_stack", {[](A a) { return Tensors{column_stack(a.tensors(0))}; }, always}},
      {"dstack", {[](A a) { return Tensors{dstack(a.tensors(0))}; }, always}},
      {"broadcast_tensors", {[](A a) { return broadcast_tensors(listed(a)); }, always}},
      {"meshgrid",
       {[](A a) { return meshgrid(listed(a), a.has(99, "indexing") ? a.value(99, "indexing").text : "ij"); }, always}},
      {"tensor_split", {tensor_split, always, true}},
      {"logspace",
       {[](A a) {
          double base = a.has(3, "base") ? a.scalar(3, "base").to_double() : 10;
          Tensor held[2];
          auto end = [&](size_t i) {
            return a.value(i).is(Kind::tensor) ? OperandArg(held[i] = a.tensor(i)) : OperandArg(a.scalar(i));
          };
          return Tensors{logspace(end(0), end(1), a.integer(2, "steps"), base, options_of(a))};
        },
        always}},
      {"nn.functional.embedding",
       {[](A a) {
          const Tensor weight = a.tensor(0), indices = a.tensor(1);
          renorm(a, weight, indices);
          return Tensors{embedding(weight, indices, padding_of(a, 2, weight.size(0)))};
        },
        [](const Case& c) {
          const CaseValue* scaled = c.find(5, "scale_grad_by_freq");
          return !(scaled && scaled->integer) &&
                 (c.find(2, "padding_idx") || c.find(3, "max_norm") || c.find(4, "norm_type"));
        }}},
      {"norm",
       {norm_by_word,
        [](const Case& c) {
          const CaseValue* p = c.find(1, "p");
          return p && p->is(Kind::text);
        },
        true}},
      {"max",
       {[](A a) {
          return extreme(
              a, [](const Tensor& x) { return x.max(); }, [](const Tensor& x, const Tensor& y) { return x.max(y); });
        },
        is_without_dim}},
      {"min",
       {[](A a) {
          return extreme(
              a, [](const Tensor& x) { return x.min(); }, [](const Tensor& x, const Tensor& y) { return x.min(y); });
        },
        is_without_dim}},
      {"nonzero", {[](A a) { return Tensors{a.tensor(0).nonzero()}; }, always, true}},
      {"masked_select", {[](A a) { return Tensors{a.tensor(0).masked_select(a.tensor(1, "mask"))}; }, always, true}},
      {"masked_scatter",
       {[](A a) { return Tensors{a.tensor(0).masked_scatter(a.tensor(1, "mask"), a.tensor(2, "source"))}; }, always,
        false, true}},
      {"take", {[](A a) { return Tensors{a.tensor(0).take(a.tensor(1, "index"))}; }, always}},
      {"repeat_interleave", {repeat_interleave, always, true, true}},
      {"index_put", {index_put, always, true, true}},
      {"nn.functional.one_hot",
       {[](A a) { return Tensors{one_hot(a.tensor(0), a.integer(1, "num_classes", -1))}; }, always, true, true}},
      {"nn.functional.embedding_bag", {embedding_bag, always, false, true}},
      {"where",
       {[](A a) {
          OperandArg other = a.value(2).is(Kind::tensor) ? OperandArg() : OperandArg(a.scalar(2));
          Tensor held = a.value(2).is(Kind::tensor) ? a.tensor(2) : Tensor();
          return Tensors{a.tensor(0).where(a.tensor(1), held.defined() ? OperandArg(held) : other)};
        },
        always}},
      {"var",
       {[](A a) {
          return spread(a,
                        [](const Tensor& x, const IntList& dims, double n, bool keep) { return x.var(dims, n, keep); });
        },
        is_unbiased_form}},
      {"std",
       {[](A a) {
          return spread(a,
                        [](const Tensor& x, const IntList& dims, double n, bool keep) { return x.std(dims, n, keep); });
        },
        is_unbiased_form}},
      {"var_mean",
       {[](A a) {
          return spread(
              a, [](const Tensor& x, const IntList& dims, double n, bool keep) { return x.var_mean(dims, n, keep); });
        },
        is_unbiased_form}},
      {"std_mean",
       {[](A a) {
          return spread(
              a, [](const Tensor& x, const IntList& dims, double n, bool keep) { return x.std_mean(dims, n, keep); });
        },
        is_unbiased_form}},
  };
  return table;
}

}  // namespace

const Function* find_function(const std::string& op) {
  auto found = functions().find(op);
  return found == functions().end() ? nullptr : &found->second;
}

}  // namespace ingot::conformance
