// Calls whose arguments are put together by hand.
#include <algorithm>

#include "conformance/function_tables.h"
#include "conformance/signature.h"
#include "eager/nn/functional.h"
#include "eager/nn/grid.h"
#include "eager/nn/pooling.h"
#include "eager/nn/resample.h"
#include "eager/nn/windows.h"
#include "eager/ops/contractions.h"
#include "eager/ops/functions.h"
#include "eager/ops/indexing.h"
#include "eager/ops/linalg.h"
#include "eager/ops/lists.h"
#include "eager/ops/selection.h"
#include "eager/ops/sets.h"

namespace ingot::conformance {

using Kind = CaseValue::Kind;

namespace {

using Tensors = std::vector<Tensor>;
using A = const Arguments&;

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

Tensors pad(A a) {
  std::string mode = a.has(2, "mode") ? a.value(2, "mode").text : "constant";
  return {
      nn::functional::pad(a.tensor(0), a.list(1, "pad"), mode, a.has(3, "value") ? a.scalar(3, "value") : Scalar(0))};
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

/// One factor, or one for each dim, or none.
std::vector<double> scale_factors(A a) {
  if (!a.has(2, "scale_factor")) return {};
  const CaseValue& v = a.value(2, "scale_factor");
  if (!v.is(Kind::list)) return {a.scalar(2, "scale_factor").to_double()};
  std::vector<double> scales;
  for (const CaseValue& item : v.items)
    scales.push_back(item.is(Kind::number) ? item.number : static_cast<double>(item.integer));
  return scales;
}

Tensors interpolate(A a) {
  std::optional<bool> align;
  if (a.has(4, "align_corners")) align = a.integer(4, "align_corners") != 0;
  return {nn::functional::interpolate(a.tensor(0), a.has(1, "size") ? IntList(a.list(1, "size")) : IntList(),
                                      scale_factors(a), a.has(3, "mode") ? a.value(3, "mode").text : "nearest", align,
                                      a.integer(5, "recompute_scale_factor", 0) != 0,
                                      a.integer(6, "antialias", 0) != 0)};
}

/// Its older names: a size or factors, and a mode.
Tensors upsample(A a, const char* mode, std::optional<bool> align_corners) {
  const IntList size = a.has(1, "size") ? IntList(a.list(1, "size")) : IntList();
  return {nn::functional::interpolate(a.tensor(0), size, scale_factors(a), mode, align_corners)};
}

/// Modes by their numbers.
Tensors grid_sampler(A a) {
  const char* const modes[] = {"bilinear", "nearest", "bicubic"};
  const char* const paddings[] = {"zeros", "border", "reflection"};
  return {nn::functional::grid_sample(a.tensor(0), a.tensor(1), modes[a.integer(2)], paddings[a.integer(3)],
                                      a.integer(4) != 0)};
}

Tensors tensordot(A a) {
  const CaseValue& dims = a.value(2, "dims");
  auto numbers = [](const CaseValue& list) {
    std::vector<int64_t> result;
    for (const CaseValue& item : list.items) result.push_back(item.integer);
    return result;
  };
  return {ingot::tensordot(a.tensor(0), a.tensor(1), numbers(dims.items[0]), numbers(dims.items[1]))};
}

/// PyTorch's words: "fro", the norm of order 2, and "nuc".
Tensors norm_by_word(A a) {
  Tensor x = a.tensor(0);
  if (a.value(1, "p").text == "nuc")
    return {
        nuclear_norm(x, a.has(2, "dim") ? IntList(a.list(2, "dim")) : IntList({-2, -1}), a.integer(3, "keepdim", 0))};
  return {norm(a.tensor(0), 2, a.has(2, "dim") ? IntList(a.list(2, "dim")) : IntList(), a.integer(3, "keepdim", 0))};
}

Tensors cast(A a) {
  if (a.given().has_tensor(1)) return {a.tensor(0).type_as(a.tensor(1))};
  const std::optional<DType> dtype = a.dtype();
  if (!dtype) throw Error("neither a dtype nor a tensor to cast to");
  return {a.tensor(0).to(*dtype)};
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
                                        a.integer(9, "include_last_offset", 0) != 0, padding,
                                        a.integer(5, "scale_grad_by_freq", 0) != 0)};
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

/// Of unique's results those that are asked for, as PyTorch gives them.
Tensors unique_results(A a, const std::tuple<Tensor, Tensor, Tensor>& all, size_t first) {
  Tensors chosen = {std::get<0>(all)};
  if (a.integer(first, "return_inverse", 0)) chosen.push_back(std::get<1>(all));
  if (a.integer(first + 1, "return_counts", 0)) chosen.push_back(std::get<2>(all));
  return chosen;
}
Tensors unique(A a) {
  const bool inverse = a.integer(2, "return_inverse", 0), counts = a.integer(3, "return_counts", 0);
  if (!a.has(4, "dim")) return unique_results(a, ingot::unique(a.tensor(0)), 2);
  return unique_results(a, unique_dim(a.tensor(0), a.integer(4, "dim"), true, inverse, counts), 2);
}
Tensors unique_consecutive(A a) {
  std::optional<int64_t> dim;
  if (a.has(3, "dim")) dim = a.integer(3, "dim");
  return unique_results(a,
                        ingot::unique_consecutive(a.tensor(0), a.integer(1, "return_inverse", 0) != 0,
                                                  a.integer(2, "return_counts", 0) != 0, dim),
                        1);
}

/// Ranks and singular values come from those of LAPACK's drivers that compute them; some cases take the solution alone.
Tensors lstsq(A a) {
  std::optional<double> rcond;
  if (a.has(2, "rcond")) rcond = a.scalar(2, "rcond").to_double();
  Tensors all = results(linalg::lstsq(a.tensor(0), a.tensor(1), rcond));
  const std::string driver = a.has(3, "driver") ? a.value(3, "driver").text : "gelsy";
  if (driver == "gels") all[2] = empty({0}, kInt64);
  if (driver == "gels" || driver == "gelsy") all[3] = empty({0}, all[3].dtype());
  all.resize(std::min(all.size(), a.given().outputs.size()));
  return all;
}

bool always(const Case&) { return true; }

}  // namespace

FunctionTable special_forms() {
  return {
      {"__getitem__", {index, always, May::break_graph}},  // a bool tensor among the indices: the shape depends on data
      {"to", {cast, always}},
      {"nn.functional.pad", {pad, always}},
      {"constant_pad_nd",
       {[](A a) {
          return Tensors{nn::functional::pad(a.tensor(0), a.list(1, "pad"), "constant",
                                             a.has(2, "value") ? a.scalar(2, "value") : Scalar(0))};
        },
        always}},
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
      {"nn.functional.upsample_nearest", {[](A a) { return upsample(a, "nearest", {}); }, always}},
      {"nn.functional.upsample_bilinear", {[](A a) { return upsample(a, "bilinear", true); }, always}},
      {"grid_sampler_2d", {grid_sampler, always}},
      {"grid_sampler_3d", {grid_sampler, always}},
      {"tensordot",
       {tensordot,
        [](const Case& c) {
          const CaseValue* dims = c.find(2, "dims");
          return dims && dims->items.size() == 2;
        }}},
      {"einsum", {[](A a) { return Tensors{einsum(a.value(1).text, a.tensors(0))}; }, always}},
      {"nn.functional.embedding",
       {[](A a) {
          const Tensor weight = a.tensor(0), indices = a.tensor(1);
          renorm(a, weight, indices);
          return Tensors{
              embedding(weight, indices, padding_of(a, 2, weight.size(0)), a.integer(5, "scale_grad_by_freq", 0) != 0)};
        },
        [](const Case& c) {
          return c.find(2, "padding_idx") || c.find(3, "max_norm") || c.find(4, "norm_type") ||
                 c.find(5, "scale_grad_by_freq");
        }}},
      {"norm",
       {norm_by_word,
        [](const Case& c) {
          const CaseValue* p = c.find(1, "p");
          return p && p->is(Kind::text);
        },
        May::use_host}},
      // PyTorch's samples of singular matrices: a product of two tall ones.
      {"linalg.pinv",
       {[](A a) { return results(linalg::pinv(matmul(a.tensor(0), a.tensor(1).mT()))); },
        [](const Case& c) { return c.has_tensor(1) && c.args[1].tensor.shape.size() > 1; }, May::use_host}},
      {"linalg.lstsq", {lstsq, always, May::break_graph | May::use_host}},
      {"index_put", {index_put, always, May::break_graph | May::use_host}},
      {"nn.functional.embedding_bag", {embedding_bag, always, May::use_host}},
      {"unique", {unique, always, May::break_graph | May::use_host}},
      {"unique_consecutive", {unique_consecutive, always, May::break_graph | May::use_host}},
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
}

}  // namespace ingot::conformance
