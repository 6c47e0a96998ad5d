#include "samples.h"

#include <map>

namespace ingot::ir {
namespace {

struct Call {
  const char* inputs;  // separated by ';'
  const char* call;
};

const std::multimap<std::string, Call>& calls() {
  static const std::multimap<std::string, Call> table = {
      {"softsign", {"i8[2, 3]", "softsign(%0)"}},
      {"div", {"i64[2, 3]; i64[3]", "div(%0, %1, rounding_mode=floor)"}},
      {"div", {"f32[2, 3]; f32[3]", "div(%0, %1, rounding_mode=trunc)"}},
      {"prelu", {"f32[2, 3, 4]; f32[3]", "prelu(%0, %1)"}},
      {"prelu", {"bf16[5]; bf16[1]", "prelu(%0, %1)"}},
      {"polygamma", {"f32[2, 3]", "polygamma(%0, n=1)"}},
      {"polygamma", {"f64[5]", "polygamma(%0, n=2)"}},
      {"glu", {"f32[2, 6]", "glu(%0, dim=1)"}},
      {"glu", {"bf16[4, 3, 2]", "glu(%0, dim=0)"}},
      {"isclose", {"f32[2, 3]; f32[3]", "isclose(%0, %1, 0.5, 0.25)"}},
      {"isclose", {"f16[2, 3]; f16[2, 3]", "isclose(%0, %1, 0.1, 0.1, equal_nan=true)"}},
      {"isclose", {"i64[2, 3]; i64[2, 3]", "isclose(%0, %1, 0.1, 1.5)"}},
      {"linspace", {"", "linspace(-1.5, 4, steps=6)"}},
      {"linspace", {"f32[]; i64[]", "linspace(%0, %1, steps=7, dtype=f64)"}},
      {"linspace", {"", "linspace(-2.7, 9.9, steps=5, dtype=i32)"}},
      {"linspace", {"", "linspace(3.5, 9.0, steps=1, dtype=f16)"}},
      {"full", {"", "full(2.5, size=[2, 3])"}},
      {"arange", {"", "arange(0, 2, length=5, dtype=i32)"}},
      {"eye", {"", "eye(n=3, m=4)"}},
      {"rand", {"", "rand(7, 1000, size=[2, 3])"}},
      {"rand", {"", "rand(7, -3, size=[5], dtype=bf16)"}},
      {"rand", {"", "rand(-7, 4294967294, size=[5], dtype=f64)"}},
      {"randn", {"", "randn(7, 1000, size=[2, 40])"}},
      {"randn", {"", "randn(7, 1000, size=[17], dtype=f64)"}},
      {"randn", {"", "randn(7, 1000, size=[], dtype=f16)"}},
      {"randint", {"", "randint(-3, 9, 7, 1000, size=[2, 30])"}},
      {"randint", {"", "randint(-9223372036854775807, 9223372036854775807, 7, 8, size=[9])"}},
      {"randint", {"", "randint(0, 5, 7, 8, size=[9], dtype=f32)"}},
      {"randperm", {"", "randperm(7, 1000, n=40)"}},
      {"randperm", {"", "randperm(7, 1000, n=9, dtype=i32)"}},
      {"exponential", {"f32[2, 3]", "exponential(%0, 0.5, 7, 1000)"}},
      {"exponential", {"f16[9]", "exponential(%0, 3, 7, 1000)"}},
      {"uniform", {"f32[2, 3]", "uniform(%0, -2, 3.5, 7, 1000)"}},
      {"uniform", {"f16[7]", "uniform(%0, 0, 1, 7, 1000)"}},
      {"normal", {"f32[2, 3]", "normal(%0, 1.5, 0.25, 7, 1000)"}},
      {"normal", {"bf16[7]", "normal(%0, 0, 1, 7, 1000)"}},
      {"bernoulli", {"f32[2, 30]", "bernoulli(%0, none, 7, 1000)"}},
      {"bernoulli", {"bf16[30]", "bernoulli(%0, 0.3, 7, 1000)"}},
      {"bernoulli", {"f64[2, 30]; f64[30]", "bernoulli(%0, %1, 7, 1000)"}},
      {"dropout", {"f32[2, 30]", "dropout(%0, 0.25, 7, 1000)"}},
      {"dropout", {"bf16[9]", "dropout(%0, 0.1, 7, 1000)"}},
      {"permute", {"f32[2, 3, 4]", "permute(%0, dims=[2, 0, 1])"}},
      {"view", {"f32[2, 3, 4]", "view(%0, size=[6, 4])"}},
      {"expand", {"f32[3, 1]", "expand(%0, size=[2, 3, 4])"}},
      {"select", {"f32[2, 3, 4]", "select(%0, dim=1, index=2)"}},
      {"slice", {"f32[2, 7]", "slice(%0, dim=1, start=1, end=6, step=2)"}},
      {"squeeze", {"f32[1, 3, 1]", "squeeze(%0, dim=[0])"}},
      {"unsqueeze", {"f32[2, 3]", "unsqueeze(%0, dim=2)"}},
      {"detach", {"f32[2, 3]", "detach(%0)"}},
      {"diagonal", {"f32[3, 4]", "diagonal(%0, offset=-1)"}},
      {"unfold", {"f32[2, 7]", "unfold(%0, dimension=1, size=3, step=2)"}},
      {"as_strided", {"f32[3, 4]", "as_strided(%0, size=[2, 2], stride=[4, 1], storage_offset=1)"}},
      {"cat", {"f32[2, 3]; f32[2, 4]; f32[0]", "cat(%0, %1, %2, dim=1)"}},
      {"stack", {"f32[2, 3]; f32[2, 3]", "stack(%0, %1, dim=1)"}},
      {"index_select", {"f32[5, 3]; i64[4]", "index_select(%0, %1, dim=0)"}},
      {"gather", {"f32[4, 3]; i64[2, 3]", "gather(%0, %1, dim=0)"}},
      {"embedding", {"f32[10, 4]; i64[2, 3]", "embedding(%0, %1)"}},
      {"tril", {"f32[3, 4]", "tril(%0, 1)"}},
      {"triu", {"f32[3, 4]", "triu(%0, -1)"}},
      {"constant_pad_nd", {"f32[2, 3]", "constant_pad_nd(%0, 1.5, pad=[1, 2, 0, 1])"}},
      {"as_strided_scatter",
       {"f32[3, 4]; f32[2, 2]", "as_strided_scatter(%0, %1, size=[2, 2], stride=[4, 1], storage_offset=1)"}},
      {"sum", {"f32[2, 3, 4]", "sum(%0, dim=[0, 2])"}},
      {"sum", {"bf16[2, 3, 4]", "sum(%0, dim=[1, 2], keepdim=true)"}},
      {"sum", {"bool[2, 3]", "sum(%0)"}},
      {"prod", {"f32[2, 3, 4]", "prod(%0, dim=[0, 2], keepdim=true)"}},
      {"prod", {"i32[2, 3]", "prod(%0, dim=[1])"}},
      {"amax", {"f32[2, 3, 4]", "amax(%0, dim=[0, 1, 2])"}},
      {"amin", {"f32[2, 3, 4]", "amin(%0, dim=[0, 2])"}},
      {"amin", {"i64[2, 3]", "amin(%0, dim=[0], keepdim=true)"}},
      {"argmax", {"f32[2, 3]", "argmax(%0)"}},
      {"argmin", {"f32[2, 3]", "argmin(%0, dim=1, keepdim=true)"}},
      {"any", {"f32[2, 3]", "any(%0, dim=[1])"}},
      {"all", {"u8[2, 3]", "all(%0)"}},
      {"max", {"f32[2, 3]", "max(%0, dim=1)"}},
      {"max", {"bool[2, 3]", "max(%0, dim=1)"}},
      {"min", {"f16[2, 3]", "min(%0, dim=0, keepdim=true)"}},
      {"mean", {"f32[2, 3, 4]", "mean(%0, dim=[0, 2])"}},
      {"mean", {"f16[2, 3]", "mean(%0)"}},
      {"mean", {"i64[2, 3]", "mean(%0, dtype=f32)"}},
      {"var", {"f32[2, 3, 4]", "var(%0, dim=[1, 2], keepdim=true)"}},
      {"var", {"bf16[8]", "var(%0, correction=0)"}},
      {"std", {"f64[2, 3]", "std(%0, dim=[1])"}},
      {"logsumexp", {"f32[2, 3]", "logsumexp(%0, dim=[1], keepdim=true)"}},
      {"logsumexp", {"i64[2, 3]", "logsumexp(%0, dim=[0])"}},
      {"norm", {"f32[2, 3]", "norm(%0)"}},
      {"norm", {"f32[2, 3]", "norm(%0, p=1, dim=[1])"}},
      {"norm", {"f32[2, 3]", "norm(%0, p=inf, dim=[1], keepdim=true)"}},
      {"norm", {"f32[2, 3]", "norm(%0, p=-inf, dim=[0])"}},
      {"norm", {"f32[2, 3]", "norm(%0, p=0)"}},
      {"vector_norm", {"bf16[2, 3]", "vector_norm(%0, ord=3.5, dim=[1])"}},
      {"nansum", {"f32[2, 3, 4]", "nansum(%0, dim=[0, 2])"}},
      {"nansum", {"i8[2, 3]", "nansum(%0)"}},
      {"nanmean", {"f32[2, 3, 4]", "nanmean(%0, dim=[1], keepdim=true)"}},
      {"nanmean", {"bf16[2, 3]", "nanmean(%0)"}},
      {"count_nonzero", {"f32[2, 3]", "count_nonzero(%0, dim=[1])"}},
      {"count_nonzero", {"bool[2, 3]", "count_nonzero(%0)"}},
      {"aminmax", {"f32[2, 3]", "aminmax(%0, dim=1, keepdim=true)"}},
      {"aminmax", {"bool[2, 3]", "aminmax(%0)"}},
      {"aminmax", {"i16[2, 3]", "aminmax(%0, dim=0)"}},
      {"var_mean", {"f32[2, 3, 4]", "var_mean(%0, dim=[1, 2], keepdim=true)"}},
      {"var_mean", {"f16[2, 3]", "var_mean(%0, correction=0)"}},
      {"std_mean", {"f64[2, 3]", "std_mean(%0, dim=[0])"}},
      {"std_mean", {"bf16[2, 3]", "std_mean(%0)"}},
      {"cumsum", {"f32[2, 3]", "cumsum(%0, dim=1)"}},
      {"cumsum", {"i8[2, 3]", "cumsum(%0, dim=0)"}},
      {"cumsum", {"bf16[3, 9, 2]", "cumsum(%0, dim=1)"}},
      {"cumsum", {"f32[5]", "cumsum(%0, dim=0, dtype=f64)"}},
      {"cumprod", {"f32[2, 7]", "cumprod(%0, dim=1)"}},
      {"cumprod", {"i32[5, 3]", "cumprod(%0, dim=0)"}},
      {"cummax", {"f16[3, 5]", "cummax(%0, dim=1)"}},
      {"cummin", {"f32[5, 3]", "cummin(%0, dim=0)"}},
      {"cummin", {"i64[5, 3]", "cummin(%0, dim=0)"}},
      {"logcumsumexp", {"f32[3, 6]", "logcumsumexp(%0, dim=1)"}},
      {"logcumsumexp", {"bf16[6, 3]", "logcumsumexp(%0, dim=0)"}},
      {"flip", {"f32[2, 3, 5]", "flip(%0, dims=[0, 2])"}},
      {"fliplr", {"bf16[2, 3, 5]", "fliplr(%0)"}},
      {"flipud", {"i8[4, 3]", "flipud(%0)"}},
      {"roll", {"f32[3, 5]", "roll(%0, shifts=[1, 2], dims=[0, 1])"}},
      {"roll", {"bool[3, 5]", "roll(%0, shifts=[4])"}},
      {"rot90", {"f32[2, 3, 4]", "rot90(%0, k=1)"}},
      {"rot90", {"i64[2, 3]", "rot90(%0, k=3, dims=[1, 0])"}},
      {"diag", {"f32[3]", "diag(%0, diagonal=-1)"}},
      {"diag", {"f32[3, 5]", "diag(%0, diagonal=1)"}},
      {"diag_embed", {"f32[2, 3]", "diag_embed(%0, offset=1, dim1=0, dim2=2)"}},
      {"diag_embed", {"bool[2, 3]", "diag_embed(%0, offset=-2, dim1=2, dim2=1)"}},
      {"trace", {"f32[3, 4]", "trace(%0)"}},
      {"trace", {"u8[4, 3]", "trace(%0)"}},
      {"tril_indices", {"", "tril_indices(row=4, col=3, offset=-1)"}},
      {"triu_indices", {"", "triu_indices(row=4, col=5, offset=1, dtype=i32)"}},
      {"scatter", {"f32[4, 3]; i64[5, 2]; f32[5, 2]", "scatter(%0, %1, %2, dim=0)"}},
      {"scatter", {"bf16[3, 4]; i32[2, 5]", "scatter(%0, %1, 1.5, dim=1)"}},
      {"scatter", {"f32[4, 3]; i64[2, 3]; f32[2, 3]", "scatter(%0, %1, %2, dim=0, reduce=add)"}},
      {"scatter", {"i16[4, 3]; i64[2, 3]", "scatter(%0, %1, 3, dim=0, reduce=multiply)"}},
      {"scatter_reduce", {"f32[4, 3]; i64[5, 2]; f32[5, 2]", "scatter_reduce(%0, %1, %2, dim=0, reduce=sum)"}},
      {"scatter_reduce",
       {"i32[4, 3]; i64[5, 2]; i32[5, 2]", "scatter_reduce(%0, %1, %2, dim=0, reduce=mean, include_self=false)"}},
      {"scatter_reduce", {"f16[2, 4]; i64[2, 6]; f16[3, 6]", "scatter_reduce(%0, %1, %2, dim=1, reduce=amax)"}},
      {"scatter_reduce",
       {"f32[4]; i64[6]; f32[6]", "scatter_reduce(%0, %1, %2, dim=0, reduce=amin, include_self=false)"}},
      {"scatter_reduce", {"f64[4]; i64[6]; f64[6]", "scatter_reduce(%0, %1, %2, dim=0, reduce=prod)"}},
      {"scatter_add", {"f32[4, 3]; i64[5, 2]; f32[5, 2]", "scatter_add(%0, %1, %2, dim=0)"}},
      {"index_add", {"f32[4, 3]; i64[5]; f32[5, 3]", "index_add(%0, %1, %2, 0.5, dim=0)"}},
      {"index_add", {"i8[2, 3, 2]; i32[4]; i8[2, 4, 2]", "index_add(%0, %1, %2, 3, dim=1)"}},
      {"index_copy", {"bf16[4, 3]; i64[2]; bf16[4, 2]", "index_copy(%0, %1, %2, dim=1)"}},
      {"index_fill", {"f32[4, 3]; i64[2]", "index_fill(%0, %1, 2.5, dim=0)"}},
      {"index_fill", {"bool[4, 3]; i64[2]; bool[]", "index_fill(%0, %1, %2, dim=1)"}},
      {"sort", {"f32[3, 7]", "sort(%0, dim=1)"}},
      {"sort", {"bf16[7, 3]", "sort(%0, dim=0, descending=true, stable=true)"}},
      {"sort", {"bool[3, 9]", "sort(%0, dim=1, stable=true)"}},
      {"argsort", {"f64[3, 7]", "argsort(%0, dim=1)"}},
      {"argsort", {"i8[7]", "argsort(%0, dim=0, descending=true)"}},
      {"msort", {"f16[7, 2]", "msort(%0)"}},
      {"topk", {"f32[3, 9]", "topk(%0, k=4, dim=1)"}},
      {"topk", {"i64[9, 2]", "topk(%0, k=2, dim=0, largest=false)"}},
      {"kthvalue", {"f32[3, 9]", "kthvalue(%0, k=3, dim=1, keepdim=true)"}},
      {"mode", {"i64[3, 9]", "mode(%0, dim=0)"}},
      {"mode", {"bf16[2, 3, 4]", "mode(%0, dim=1, keepdim=true)"}},
      {"mode", {"bool[]", "mode(%0, dim=0)"}},
      {"searchsorted", {"f32[1]; f32[2, 3]", "searchsorted(%0, %1)"}},
      {"searchsorted", {"i64[2, 1]; i64[2, 3]", "searchsorted(%0, %1, out_int32=true, side=right)"}},
      {"searchsorted", {"i16[1]", "searchsorted(%0, 1.5)"}},
      {"searchsorted", {"f32[2, 4]; f32[2, 3]; i64[2, 4]", "searchsorted(%0, %1, %2)"}},
      {"bucketize", {"bf16[2, 3]; bf16[1]", "bucketize(%0, %1, right=true)"}},
      {"take_along_dim", {"f32[4, 1]; i64[2, 3]", "take_along_dim(%0, %1, dim=0)"}},
      {"take_along_dim", {"f32[4, 2]; i64[5]", "take_along_dim(%0, %1)"}},
      {"nonzero_static", {"bool[3, 5]", "nonzero_static(%0, size=6)"}},
      {"nonzero_static", {"f32[2, 2]", "nonzero_static(%0, size=6)"}},
      {"matmul", {"f32[2, 1, 3, 4]; f32[5, 4, 6]", "matmul(%0, %1)"}},
      {"matmul", {"f32[3, 4]; f32[4]", "matmul(%0, %1)"}},
      {"matmul", {"f32[4]; f32[2, 4, 3]", "matmul(%0, %1)"}},
      {"matmul", {"f32[4]; f32[4]", "matmul(%0, %1)"}},
      {"matmul", {"f32[2, 5, 4]; f32[4, 3]", "matmul(%0, %1)"}},
      {"matmul", {"u8[3, 4]; u8[4, 2]", "matmul(%0, %1)"}},
      {"matmul", {"bf16[3, 4]; bf16[4, 2]", "matmul(%0, %1, out_dtype=f32)"}},
      {"matmul", {"f16[2, 3, 4]; f16[4]", "matmul(%0, %1, out_dtype=f32)"}},
      {"matmul", {"bf16[4]; bf16[2, 4, 2]", "matmul(%0, %1)"}},
      {"mm", {"f32[2, 3]; f32[3, 4]", "mm(%0, %1)"}},
      {"bmm", {"bf16[2, 3, 4]; bf16[2, 4, 5]", "bmm(%0, %1)"}},
      {"mv", {"f32[2, 3]; f32[3]", "mv(%0, %1)"}},
      {"dot", {"f32[3]; f32[3]", "dot(%0, %1)"}},
      {"outer", {"f32[3]; f32[4]", "outer(%0, %1)"}},
      {"addmm", {"f32[4]; f32[2, 3]; f32[3, 4]", "addmm(%0, %1, %2, 0.5, 2.0)"}},
      {"addmm", {"i64[2, 4]; i64[2, 3]; i64[3, 4]", "addmm(%0, %1, %2, 2, 3)"}},
      {"addmv", {"f32[2]; f32[2, 3]; f32[3]", "addmv(%0, %1, %2)"}},
      {"addmv", {"i64[2]; i64[2, 3]; i64[3]", "addmv(%0, %1, %2, 0.5, 2.5)"}},
      {"baddbmm", {"f16[2, 3, 5]; f16[2, 3, 4]; f16[2, 4, 5]", "baddbmm(%0, %1, %2)"}},
      {"addbmm", {"f32[5]; f32[2, 3, 4]; f32[2, 4, 5]", "addbmm(%0, %1, %2, 0.5, 2.0)"}},
      {"addbmm", {"i8[3, 5]; i8[2, 3, 4]; i8[2, 4, 5]", "addbmm(%0, %1, %2, 2, 3)"}},
      {"addbmm", {"bf16[3, 5]; bf16[2, 3, 4]; bf16[2, 4, 5]", "addbmm(%0, %1, %2)"}},
      {"addr", {"f32[3, 4]; f32[3]; f32[4]", "addr(%0, %1, %2, 0.5, 2.0)"}},
      {"addr", {"bool[3, 4]; bool[3]; bool[4]", "addr(%0, %1, %2, 3, 2)"}},
      {"addr", {"u8[4]; i8[3]; u8[4]", "addr(%0, %1, %2)"}},
      {"linear", {"f32[2, 5, 3]; f32[4, 3]; f32[4]", "linear(%0, %1, %2)"}},
      {"linear", {"bf16[5, 3]; bf16[4, 3]", "linear(%0, %1)"}},
      {"linear", {"f32[3]; f32[3]", "linear(%0, %1)"}},
      {"conv2d",
       {"f32[2, 4, 6, 5]; f32[6, 2, 3, 2]; f32[6]", "conv2d(%0, %1, %2, stride=[2, 1], padding=[1], groups=2)"}},
      {"conv2d", {"f32[3, 7, 6]; f32[2, 3, 2, 3]", "conv2d(%0, %1, none, stride=[2, 3], dilation=[1, 2])"}},
      {"conv2d", {"i64[1, 2, 4, 4]; i64[3, 2, 2, 2]", "conv2d(%0, %1, dilation=[2])"}},
      {"conv1d", {"f32[2, 3, 8]; f32[4, 3, 3]; f32[4]", "conv1d(%0, %1, %2, padding=[1], dilation=[2])"}},
      {"conv1d", {"f32[3, 8]; f32[4, 3, 3]", "conv1d(%0, %1, none)"}},
      {"conv3d",
       {"f32[2, 4, 5, 6, 5]; f32[6, 2, 2, 3, 2]; f32[6]",
        "conv3d(%0, %1, %2, stride=[2, 1, 2], padding=[1, 0, 1], dilation=[2, 1, 1], groups=2)"}},
      {"conv3d", {"i64[2, 4, 4, 4]; i64[3, 2, 2, 2, 2]", "conv3d(%0, %1)"}},
      {"conv_transpose1d",
       {"f32[2, 4, 5]; f32[4, 3, 4]; f32[6]",
        "conv_transpose1d(%0, %1, %2, stride=[3], padding=[1], output_padding=[2], groups=2)"}},
      {"conv_transpose1d", {"bf16[4, 5]; bf16[4, 3, 2]", "conv_transpose1d(%0, %1, dilation=[3])"}},
      {"conv_transpose1d", {"f32[1, 2, 3]; f32[2, 1, 1]", "conv_transpose1d(%0, %1, stride=[3], output_padding=[2])"}},
      {"conv_transpose2d",
       {"f32[2, 4, 3, 5]; f32[4, 3, 3, 2]; f32[3]",
        "conv_transpose2d(%0, %1, %2, stride=[2, 1], padding=[1, 0], dilation=[1, 2])"}},
      {"conv_transpose2d", {"i32[1, 2, 3, 3]; i32[2, 2, 2, 2]", "conv_transpose2d(%0, %1, stride=[2])"}},
      {"conv_transpose3d",
       {"f32[1, 2, 3, 2, 3]; f32[2, 3, 2, 3, 2]; f32[3]",
        "conv_transpose3d(%0, %1, %2, stride=[2, 1, 3], padding=[1], output_padding=[1, 0, 2])"}},
      {"max_pool1d", {"f32[2, 3, 9]", "max_pool1d(%0, kernel_size=[3], padding=[1], dilation=[2])"}},
      {"max_pool1d", {"u8[3, 90]", "max_pool1d(%0, kernel_size=[70], stride=[3], ceil_mode=true)"}},
      {"max_pool3d", {"f32[2, 4, 5, 6]", "max_pool3d(%0, kernel_size=[2, 3, 2], padding=[1], ceil_mode=true)"}},
      {"max_pool3d", {"f32[1, 2, 6, 6, 6]", "max_pool3d(%0, kernel_size=[5], stride=[1])"}},
      {"avg_pool1d", {"f32[2, 3, 9]", "avg_pool1d(%0, kernel_size=[3], padding=[1], count_include_pad=false)"}},
      {"avg_pool3d", {"f32[1, 2, 5, 5, 5]", "avg_pool3d(%0, kernel_size=[2, 3, 4], padding=[1], ceil_mode=true)"}},
      {"avg_pool3d", {"i64[1, 2, 4, 4, 4]", "avg_pool3d(%0, kernel_size=[2], divisor_override=3)"}},
      {"adaptive_avg_pool1d", {"f32[2, 3, 8]", "adaptive_avg_pool1d(%0, output_size=[5])"}},
      {"adaptive_avg_pool1d", {"bf16[3, 4]", "adaptive_avg_pool1d(%0, output_size=[7])"}},
      {"adaptive_avg_pool3d", {"f32[1, 2, 6, 5, 4]", "adaptive_avg_pool3d(%0, output_size=[4, 5, 2])"}},
      {"adaptive_max_pool1d", {"f16[2, 3, 8]", "adaptive_max_pool1d(%0, output_size=[3])"}},
      {"adaptive_max_pool2d", {"f32[2, 3, 6, 7]", "adaptive_max_pool2d(%0, output_size=[3, 4])"}},
      {"adaptive_max_pool3d", {"f32[2, 3, 4, 5]", "adaptive_max_pool3d(%0, output_size=[1])"}},
      {"im2col", {"f32[2, 3, 5, 6]", "im2col(%0, kernel_size=[2, 3], dilation=[2, 1], padding=[1], stride=[1, 2])"}},
      {"im2col", {"bool[3, 5, 6]", "im2col(%0, kernel_size=[2])"}},
      {"col2im",
       {"f32[2, 12, 6]",
        "col2im(%0, output_size=[5, 6], kernel_size=[2, 3], dilation=[2, 1], stride=[1, 3], padding=[0, 1])"}},
      {"col2im", {"f16[4, 12]", "col2im(%0, output_size=[4, 5], kernel_size=[2])"}},
      {"col2im", {"i32[4, 4]", "col2im(%0, output_size=[5, 5], kernel_size=[2], stride=[2])"}},
      {"upsample", {"f32[2, 3, 4]", "upsample(%0, output_size=[7])"}},
      {"upsample", {"u8[2, 3, 4, 5]", "upsample(%0, output_size=[3, 8], mode=nearest-exact)"}},
      {"upsample", {"f32[2, 3, 4, 5]", "upsample(%0, output_size=[3, 8], mode=linear)"}},
      {"upsample", {"f16[2, 3, 4, 5]", "upsample(%0, output_size=[3, 1], mode=linear, align_corners=true)"}},
      {"upsample",
       {"f32[1, 2, 3, 4, 5]", "upsample(%0, output_size=[6, 3, 8], mode=linear, scale_d=2.3, scale_w=1.7)"}},
      {"upsample", {"f32[2, 3, 4, 5]", "upsample(%0, output_size=[7, 3], mode=cubic)"}},
      {"upsample", {"u8[2, 3, 4, 5]", "upsample(%0, output_size=[7, 3], mode=cubic, align_corners=true)"}},
      {"max_pool2d", {"f32[2, 3, 6, 7]", "max_pool2d(%0, kernel_size=[2])"}},
      {"max_pool2d", {"f32[3, 6, 7]", "max_pool2d(%0, kernel_size=[3, 2], stride=[2], padding=[1], ceil_mode=true)"}},
      {"max_pool2d", {"i64[1, 1, 6, 7]", "max_pool2d(%0, kernel_size=[3], padding=[1], dilation=[2, 1])"}},
      {"avg_pool2d", {"f32[2, 3, 6, 7]", "avg_pool2d(%0, kernel_size=[2])"}},
      {"avg_pool2d",
       {"f32[3, 6, 7]",
        "avg_pool2d(%0, kernel_size=[3], stride=[2], padding=[1], ceil_mode=true, "
        "count_include_pad=false)"}},
      {"avg_pool2d", {"f16[1, 3, 6, 6]", "avg_pool2d(%0, kernel_size=[3], padding=[1], divisor_override=-2)"}},
      {"adaptive_avg_pool2d", {"f32[2, 3, 6, 8]", "adaptive_avg_pool2d(%0, output_size=[3, 2])"}},
      {"adaptive_avg_pool2d", {"f32[3, 5, 7]", "adaptive_avg_pool2d(%0, output_size=[2, 3])"}},
      {"adaptive_avg_pool2d", {"bf16[3, 5, 7]", "adaptive_avg_pool2d(%0, output_size=[1])"}},
      {"softmax", {"f32[2, 3]", "softmax(%0, dim=1)"}},
      {"softmax", {"bf16[2, 3]", "softmax(%0, dim=0)"}},
      {"softmax", {"i64[2, 3]", "softmax(%0, dim=1, dtype=f64)"}},
      {"log_softmax", {"f32[2, 3]", "log_softmax(%0, dim=1)"}},
      {"softmin", {"f32[2, 3]", "softmin(%0, dim=1)"}},
      {"softmin", {"i8[2, 3]", "softmin(%0, dim=0, dtype=f64)"}},
      {"softmin", {"u8[2, 3]", "softmin(%0, dim=1, dtype=f32)"}},
      {"instance_norm", {"f32[2, 3, 4, 5]; f32[3]; f32[3]", "instance_norm(%0, none, none, %1, %2)"}},
      {"instance_norm",
       {"f32[2, 3, 4]; f32[3]; f32[3]", "instance_norm(%0, %1, %2, none, none, use_input_stats=false)"}},
      {"instance_norm", {"bf16[2, 3, 4]", "instance_norm(%0)"}},
      {"local_response_norm", {"f32[2, 6, 4]", "local_response_norm(%0, 0.1, 0.75, 1.5, size=3)"}},
      {"local_response_norm", {"f16[1, 3, 2, 2]", "local_response_norm(%0, size=4)"}},
      {"local_response_norm", {"i64[1, 6, 3]", "local_response_norm(%0, 0.1, size=2)"}},
      {"layer_norm", {"f32[2, 3, 4]; f32[3, 4]; f32[3, 4]", "layer_norm(%0, %1, %2, normalized_shape=[3, 4])"}},
      {"layer_norm", {"bf16[2, 4]", "layer_norm(%0, normalized_shape=[4])"}},
      {"rms_norm", {"f32[2, 4]; f32[4]", "rms_norm(%0, %1, normalized_shape=[4])"}},
      {"rms_norm", {"f16[2, 4]", "rms_norm(%0, none, 0.001, normalized_shape=[4])"}},
      {"batch_norm", {"f32[2, 3, 4, 4]; f32[3]; f32[3]; f32[3]; f32[3]", "batch_norm(%0, %1, %2, %3, %4)"}},
      {"batch_norm", {"f32[4, 3]", "batch_norm(%0, training=true)"}},
      {"batch_norm", {"f32[0]; f32[0]; f32[0]", "batch_norm(%0, %1, %2)"}},
      {"group_norm", {"f32[2, 6, 4]; f32[6]; f32[6]", "group_norm(%0, %1, %2, num_groups=3)"}},
      {"scaled_dot_product_attention",
       {"f32[2, 4, 3, 8]; f32[2, 4, 5, 8]; f32[2, 4, 5, 6]; bool[3, 5]",
        "scaled_dot_product_attention(%0, %1, %2, %3)"}},
      {"scaled_dot_product_attention",
       {"f32[2, 4, 3, 8]; f32[2, 2, 5, 8]; f32[2, 2, 5, 8]",
        "scaled_dot_product_attention(%0, %1, %2, none, 0.3, is_causal=true, enable_gqa=true)"}},
      {"scaled_dot_product_attention",
       {"f32[2, 3, 8]; f32[2, 5, 8]; f32[2, 5, 8]; f32[3, 5]", "scaled_dot_product_attention(%0, %1, %2, %3)"}},
      {"scaled_dot_product_attention",
       {"f32[2, 4, 3, 8]; f32[2, 1, 5, 8]; f32[2, 5, 8]", "scaled_dot_product_attention(%0, %1, %2, enable_gqa=true)"}},
      {"mse_loss", {"f32[2, 3]; f32[2, 3]", "mse_loss(%0, %1)"}},
      {"mse_loss", {"f32[2, 3]; f32[2, 3]", "mse_loss(%0, %1, reduction=none)"}},
      {"l1_loss", {"f32[2, 3]; f32[3]", "l1_loss(%0, %1)"}},
      {"l1_loss", {"bf16[2, 3]; bf16[2, 3]", "l1_loss(%0, %1, reduction=sum)"}},
      {"smooth_l1_loss", {"f32[2, 3]; f32[2, 3]", "smooth_l1_loss(%0, %1, 0.5, reduction=none)"}},
      {"smooth_l1_loss", {"f32[2, 3]; f32[2, 3]", "smooth_l1_loss(%0, %1, 0.0)"}},
      {"huber_loss", {"f32[2, 3]; f32[2, 3]", "huber_loss(%0, %1, 0.7)"}},
      {"soft_margin_loss", {"f32[2, 3]; f32[2, 3]", "soft_margin_loss(%0, %1)"}},
      {"soft_margin_loss", {"bf16[2, 3]; bf16[3]", "soft_margin_loss(%0, %1, reduction=none)"}},
      {"kl_div", {"f32[2, 3]; f32[2, 3]", "kl_div(%0, %1, reduction=batchmean)"}},
      {"kl_div", {"f64[2, 3]; i64[2, 3]", "kl_div(%0, %1, reduction=sum)"}},
      {"kl_div", {"f32[2, 3]; f32[2, 3]", "kl_div(%0, %1, reduction=none, log_target=true)"}},
      {"binary_cross_entropy", {"f32[2, 3]; f32[2, 3]; f32[3]", "binary_cross_entropy(%0, %1, %2)"}},
      {"binary_cross_entropy_with_logits",
       {"f32[2, 3]; f32[2, 3]; f32[3]; f32[2, 1]", "binary_cross_entropy_with_logits(%0, %1, %2, %3)"}},
      {"binary_cross_entropy_with_logits",
       {"f16[2, 3]; f16[2, 3]", "binary_cross_entropy_with_logits(%0, %1, reduction=none)"}},
      {"cosine_similarity", {"f32[2, 1, 3]; f32[4, 3]", "cosine_similarity(%0, %1, dim=-1)"}},
      {"cosine_similarity", {"f32[2, 5]; f32[2, 5]", "cosine_similarity(%0, %1, dim=0)"}},
      {"cosine_similarity", {"i64[2, 5]; f64[2, 5]", "cosine_similarity(%0, %1, dim=1)"}},
      {"cdist", {"f32[2, 3, 4]; f32[1, 5, 4]", "cdist(%0, %1)"}},
      {"cdist", {"f16[3, 4]; f16[2, 4]", "cdist(%0, %1, p=1)"}},
      {"cdist", {"i64[3, 4]; f64[2, 4]", "cdist(%0, %1)"}},
      {"cdist", {"f32[3, 4]; f32[2, 4]", "cdist(%0, %1, p=inf)"}},
      {"pairwise_distance", {"f32[2, 3]; f32[3]", "pairwise_distance(%0, %1)"}},
      {"pairwise_distance", {"f32[2, 3]; f32[2, 3]", "pairwise_distance(%0, %1, 0.001, p=1.5, keepdim=true)"}},
      {"pairwise_distance", {"u8[2, 3]; u8[2, 3]", "pairwise_distance(%0, %1, p=inf)"}},
      {"nll_loss", {"f32[4, 3]; i64[4]; f32[3]", "nll_loss(%0, %1, %2, ignore_index=1)"}},
      {"nll_loss", {"f32[4, 3, 2]; i64[4, 2]", "nll_loss(%0, %1, reduction=none)"}},
      {"nll_loss", {"f32[3]; i64[]", "nll_loss(%0, %1, reduction=sum)"}},
      {"cross_entropy", {"f32[4, 3]; i64[4]", "cross_entropy(%0, %1)"}},
      {"cross_entropy", {"f32[4, 3]; i64[4]; f32[3]", "cross_entropy(%0, %1, %2, label_smoothing=0.1)"}},
      {"cross_entropy", {"f32[4, 3]; f32[4, 3]", "cross_entropy(%0, %1, label_smoothing=0.2)"}},
      {"cross_entropy", {"bf16[4, 3]; i64[4]", "cross_entropy(%0, %1, reduction=sum)"}},
  };
  return table;
}

std::string graph_text(std::string_view inputs, const std::string& call, int outputs) {
  std::string text = "ingot.ir 1\n";
  int number = 0;
  while (!inputs.empty()) {
    size_t end = inputs.find(';');
    text += "input %" + std::to_string(number++) + " = " + std::string(inputs.substr(0, end)) + "\n";
    inputs = end == std::string_view::npos ? std::string_view() : inputs.substr(end + 1);
  }
  std::string results;
  for (int i = 0; i < outputs; ++i) results += (i ? ", %" : "%") + std::to_string(number + i);
  return text + results + " = " + call + "\noutput " + results + "\n";
}

void add_elementwise(const OpInfo& op, std::vector<Sample>* out) {
  size_t before = out->size();
  for (const char* dtype : {"f32", "bf16", "i64"}) {
    bool integral = std::string_view(dtype) == "i64";
    std::string inputs, arguments;
    int number = 0;
    for (const ArgInfo& argument : op.arguments) {
      std::string text;
      if (argument.kind == ArgKind::value)
        text = integral ? "2" : "0.25";
      else if (argument.kind == ArgKind::dtype)
        text = "dtype=f64";
      else if (!is_operand(argument.kind))
        continue;
      else if (op.id == OpId::masked_fill && argument.name == "value")
        text = "3";
      else {
        inputs += std::string(number ? "; " : "") + (argument.mask ? "bool" : dtype) + (number == 1 ? "[3]" : "[2, 3]");
        text = "%" + std::to_string(number++);
        if (op.id == OpId::fill) inputs = std::string(dtype) + "[2, 3]";
        if (op.id == OpId::fill && argument.name == "value") text = "7";
      }
      arguments += (arguments.empty() ? "" : ", ") + text;
    }
    std::string text = graph_text(inputs, std::string(op.name) + "(" + arguments + ")", 1);
    try {
      parse(text);
    } catch (const Error&) {
      continue;  // the op takes no such dtype
    }
    out->push_back({&op, text});
  }
  if (out->size() == before) throw InternalError("no dtype suits " + std::string(op.name));
}

}  // namespace

std::vector<Sample> samples() {
  std::vector<Sample> all;
  for (const OpInfo& op : ops()) {
    if (op.kind == OpKind::elementwise) add_elementwise(op, &all);
    auto [begin, end] = calls().equal_range(std::string(op.name));
    for (auto it = begin; it != end; ++it)
      all.push_back({&op, graph_text(it->second.inputs, it->second.call, op.outputs)});
  }
  return all;
}

}  // namespace ingot::ir
