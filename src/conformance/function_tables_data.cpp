// Shapes, pieces, copies, new tensors, choosing and replacing elements.
#include "conformance/function_tables.h"
#include "conformance/signature.h"
#include "eager/ops/aliases.h"
#include "eager/ops/copies.h"
#include "eager/ops/lists.h"
#include "eager/ops/replacements.h"
#include "eager/ops/selection.h"
#include "eager/ops/sets.h"
#include "eager/ops/shapes.h"

namespace ingot::conformance {
namespace {

using Pieces = std::vector<Tensor>;
using Places = const std::vector<int64_t>&;

Function cast_to(DType dtype) {
  return {[dtype](const Arguments& a) { return results(a.tensor(0).to(dtype)); },
          [](const Case& c) { return c.has_tensor(0); }};
}

}  // namespace

FunctionTable data_functions() {
  constexpr May kBreaks = May::break_graph, kHost = May::use_host;
  return {
      {"reshape", call(reshape, "self, shape")},
      {"reshape_as", call(&Tensor::reshape_as, "self, other")},
      {"view_as", call(&Tensor::view_as, "self, other")},
      {"expand_as", call(&Tensor::expand_as, "self, other")},
      {"flatten", call(flatten, "self, start_dim=0, end_dim=-1")},
      {"unflatten", call(unflatten, "self, dim, sizes")},
      {"ravel", call(ravel, "self")},
      {"transpose", call(transpose, "self, dim0, dim1")},
      {"t", call(t, "self")},
      {"mT", call(&Tensor::mT, "self")},
      {"swapaxes", call(swapaxes, "self, axis0, axis1")},
      {"swapdims", call(swapdims, "self, dim0, dim1")},
      {"moveaxis", call(moveaxis, "self, source, destination")},
      {"movedim", call(movedim, "self, source, destination")},
      {"narrow", call(narrow, "self, dim, start, length", kBreaks)},
      {"contiguous", call(&Tensor::contiguous, "self")},
      {"atleast_1d", call<Tensor(const TensorArg&)>(atleast_1d, "self")},
      {"atleast_1d", call<Pieces(const TensorList&)>(atleast_1d, "*tensors")},
      {"atleast_2d", call<Tensor(const TensorArg&)>(atleast_2d, "self")},
      {"atleast_2d", call<Pieces(const TensorList&)>(atleast_2d, "*tensors")},
      {"atleast_3d", call<Tensor(const TensorArg&)>(atleast_3d, "self")},
      {"atleast_3d", call<Pieces(const TensorList&)>(atleast_3d, "*tensors")},
      {"sum_to_size", call(&Tensor::sum_to_size, "self, *size")},

      {"unbind", call(unbind, "self, dim=0")},
      {"split", call<Pieces(const TensorArg&, int64_t, int64_t)>(split, "self, split_size, dim=0")},
      {"split", call<Pieces(const TensorArg&, Places, int64_t)>(split, "self, split_size, dim=0")},
      {"split_with_sizes", call(split_with_sizes, "self, split_sizes, dim=0")},
      {"chunk", call(chunk, "self, chunks, dim=0")},
      {"tensor_split",
       call<Pieces(const TensorArg&, const TensorArg&, int64_t)>(tensor_split, "self, sections, dim=0", kBreaks)},
      {"tensor_split", call<Pieces(const TensorArg&, int64_t, int64_t)>(tensor_split, "self, sections, dim=0")},
      {"tensor_split", call<Pieces(const TensorArg&, Places, int64_t)>(tensor_split, "self, indices, dim=0")},
      {"hsplit", call<Pieces(const TensorArg&, int64_t)>(hsplit, "self, sections")},
      {"hsplit", call<Pieces(const TensorArg&, Places)>(hsplit, "self, indices")},
      {"vsplit", call<Pieces(const TensorArg&, int64_t)>(vsplit, "self, sections")},
      {"vsplit", call<Pieces(const TensorArg&, Places)>(vsplit, "self, indices")},
      {"dsplit", call<Pieces(const TensorArg&, int64_t)>(dsplit, "self, sections")},
      {"dsplit", call<Pieces(const TensorArg&, Places)>(dsplit, "self, indices")},

      {"unsafe_chunk", call(unsafe_chunk, "self, chunks, dim=0")},
      {"unsafe_split", call(unsafe_split, "self, split_size, dim=0")},
      {"unsafe_split_with_sizes", call(unsafe_split_with_sizes, "self, split_sizes, dim=0")},

      {"alias_copy", call(alias_copy, "self")},
      {"as_strided_copy", call(as_strided_copy, "self, size, stride, storage_offset=0")},
      {"detach_copy", call(detach_copy, "self")},
      {"diagonal_copy", call(diagonal_copy, "self, offset=0, dim1=0, dim2=1")},
      {"expand_copy", call(expand_copy, "self, size, implicit")},
      {"narrow_copy", call(narrow_copy, "self, dim, start, length")},
      {"permute_copy", call(permute_copy, "self, dims")},
      {"select_copy", call(select_copy, "self, dim, index")},
      {"slice_copy", call(slice_copy, "self, dim=0, start=0, end=null, step=1")},
      {"split_copy", call(split_copy, "self, split_size, dim=0")},
      {"split_with_sizes_copy", call(split_with_sizes_copy, "self, split_sizes, dim=0")},
      {"squeeze_copy", call(squeeze_copy, "self, dim=null")},
      {"t_copy", call(t_copy, "self")},
      {"transpose_copy", call(transpose_copy, "self, dim0, dim1")},
      {"unbind_copy", call(unbind_copy, "self, dim=0")},
      {"unfold_copy", call(unfold_copy, "self, dimension, size, step")},
      {"unsqueeze_copy", call(unsqueeze_copy, "self, dim")},
      {"view_copy", call(view_copy, "self, size")},

      {"repeat", call(&Tensor::repeat, "self, repeats")},
      {"tile", call(tile, "self, dims")},
      {"hstack", call(hstack, "tensors")},
      {"vstack", call(vstack, "tensors")},
      {"row_stack", call(row_stack, "tensors")},
      {"concatenate", call(concatenate, "tensors, dim=0")},
      {"dstack", call(dstack, "tensors")},
      {"column_stack", call(column_stack, "tensors")},
      {"broadcast_tensors", call(broadcast_tensors, "*tensors")},
      {"meshgrid", call(meshgrid, "*tensors, indexing=ij")},
      {"block_diag", call(block_diag, "*tensors")},
      {"cartesian_prod", call(cartesian_prod, "*tensors")},
      {"combinations", call(combinations, "self, r=2, with_replacement=false")},
      {"diagflat", call(diagflat, "self, offset=0")},

      {"double", cast_to(DType::f64)},
      {"float", cast_to(DType::f32)},
      {"half", cast_to(DType::f16)},
      {"bfloat16", cast_to(DType::bf16)},
      {"long", cast_to(DType::i64)},
      {"int", cast_to(DType::i32)},
      {"short", cast_to(DType::i16)},
      {"char", cast_to(DType::i8)},
      {"byte", cast_to(DType::u8)},
      {"bool", cast_to(DType::bool_)},

      {"zeros", call(zeros, "size, dtype=null")},
      {"ones", call(ones, "size, dtype=null")},
      {"zeros_like", call(zeros_like, "self, dtype=null")},
      {"ones_like", call(ones_like, "self, dtype=null")},
      {"full_like", call(full_like, "self, fill_value, dtype=null")},
      {"new_zeros", call(&Tensor::new_zeros, "self, size, dtype=null")},
      {"new_ones", call(&Tensor::new_ones, "self, size, dtype=null")},
      {"new_full", call(&Tensor::new_full, "self, size, fill_value, dtype=null")},
      {"scalar_tensor", call(scalar_tensor, "s, dtype=null")},
      {"arange", call<Tensor(Scalar, TensorOptions, Location)>(arange, "end, dtype=null")},
      {"arange", call<Tensor(Scalar, Scalar, TensorOptions, Location)>(arange, "start, end, dtype=null")},
      {"arange", call<Tensor(Scalar, Scalar, Scalar, TensorOptions, Location)>(arange, "start, end, step, dtype=null")},
      {"logspace", call(logspace, "start, end, steps, base=10, dtype=null")},

      {"nonzero", call<Tensor(const TensorArg&)>(nonzero, "self, as_tuple", kBreaks)},
      {"argwhere", call(argwhere, "self", kBreaks)},
      {"masked_select", call(masked_select, "self, mask", kBreaks)},
      {"masked_scatter", call(masked_scatter, "self, mask, source", kHost)},
      {"masked_scatter_", call(&Tensor::masked_scatter_, "self, mask, source", kHost)},
      {"unravel_index", call(unravel_index, "indices, shape")},
      {"take", call(take, "self, index")},
      {"repeat_interleave",
       call<Tensor(const TensorArg&, const TensorArg&, std::optional<int64_t>, std::optional<int64_t>)>(
           repeat_interleave, "self, repeats, dim=null, output_size=null", kBreaks | kHost)},
      {"repeat_interleave", call<Tensor(const TensorArg&, int64_t, std::optional<int64_t>)>(
                                repeat_interleave, "self, repeats, dim=null, output_size", kBreaks | kHost)},
      {"repeat_interleave", call<Tensor(const TensorArg&, std::optional<int64_t>)>(
                                repeat_interleave, "repeats, output_size=null", kBreaks | kHost)},
      {"where", call(&Tensor::where, "self, condition, other")},
      {"max", call<Tensor(const TensorArg&)>(max, "self")},
      {"max", call<Tensor(const TensorArg&, const TensorArg&)>(max, "self, other")},
      {"min", call<Tensor(const TensorArg&)>(min, "self")},
      {"min", call<Tensor(const TensorArg&, const TensorArg&)>(min, "self, other")},
      {"equal", call(equal, "self, other", kBreaks)},
      {"allclose", call(allclose, "self, other, rtol=1e-5, atol=1e-8, equal_nan=false", kBreaks)},
      {"isin", call(isin, "elements, test_elements, assume_unique=false, invert=false", kBreaks | kHost)},

      {"select_scatter", call(select_scatter, "self, src, dim, index")},
      {"slice_scatter", call(slice_scatter, "self, src, dim=0, start=0, end=null, step=1")},
      {"diagonal_scatter", call(diagonal_scatter, "self, src, offset=0, dim1=0, dim2=1")},
      {"put", call(put, "self, index, source, accumulate=false", kHost)},
      {"put_", call(&Tensor::put_, "self, index, source, accumulate=false", kHost)},
      {"index_reduce", call(index_reduce, "self, dim, index, source, reduce, include_self=true", kHost)},
      {"index_reduce_", call(&Tensor::index_reduce_, "self, dim, index, source, reduce, include_self=true", kHost)},
  };
}

}  // namespace ingot::conformance
