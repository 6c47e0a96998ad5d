// Products, statistics, matrices, special functions, windows of signals.
#include "conformance/function_tables.h"
#include "conformance/signature.h"
#include "eager/ops/aliases.h"
#include "eager/ops/contractions.h"
#include "eager/ops/linalg.h"
#include "eager/ops/polynomials.h"
#include "eager/ops/products.h"
#include "eager/ops/sampled_functions.h"
#include "eager/ops/special.h"
#include "eager/ops/statistics.h"
#include "eager/ops/window_functions.h"

namespace ingot::conformance {
namespace {

using Two = std::tuple<Tensor, Tensor>;

}  // namespace

FunctionTable math_functions() {
  constexpr May kBreaks = May::break_graph, kHost = May::use_host;
  return {
      // How PyTorch computes it, the last argument, changes no result.
      {"cdist", call(cdist, "x1, x2, p=2, compute_mode")},
      {"inner", call(inner, "self, other")},
      {"tensordot", call<Tensor(const TensorArg&, const TensorArg&, int64_t)>(tensordot, "self, other, dims=2")},
      {"vdot", call(vdot, "self, other")},
      {"vander", call(vander, "x, N=null, increasing=false", kHost)},
      {"chain_matmul", call(chain_matmul, "*matrices")},
      {"kron", call(kron, "self, other")},
      {"cross", call(cross, "self, other, dim=null")},
      {"dist", call(dist, "self, other, p=2")},
      {"renorm", call(renorm, "self, p, dim, maxnorm")},
      {"renorm_", call(&Tensor::renorm_, "self, p, dim, maxnorm")},
      {"diff", call(diff, "self, n=1, dim=-1, prepend=null, append=null")},
      {"trapezoid", call<Tensor(const TensorArg&, const ScalarArg&, int64_t)>(trapezoid, "y, dx=1, dim=-1")},
      {"trapezoid", call<Tensor(const TensorArg&, const TensorArg&, int64_t)>(trapezoid, "y, x, dim=-1")},
      {"trapz", call<Tensor(const TensorArg&, const ScalarArg&, int64_t)>(trapz, "y, dx=1, dim=-1")},
      {"trapz", call<Tensor(const TensorArg&, const TensorArg&, int64_t)>(trapz, "y, x, dim=-1")},
      {"cumulative_trapezoid",
       call<Tensor(const TensorArg&, const ScalarArg&, int64_t)>(cumulative_trapezoid, "y, dx=1, dim=-1", kHost)},
      {"cumulative_trapezoid",
       call<Tensor(const TensorArg&, const TensorArg&, int64_t)>(cumulative_trapezoid, "y, x, dim=-1", kHost)},
      {"gradient", call<std::vector<Tensor>(const TensorArg&, const ScalarArg&, const IntList&, int64_t)>(
                       gradient, "self, spacing=1, dim=null, edge_order=1")},
      {"gradient", call<std::vector<Tensor>(const TensorArg&, const std::vector<double>&, const IntList&, int64_t)>(
                       gradient, "self, spacing, dim=null, edge_order=1")},
      {"gradient", call<std::vector<Tensor>(const TensorArg&, const TensorList&, const IntList&, int64_t)>(
                       gradient, "self, spacing, dim=null, edge_order=1")},

      {"median", call<Tensor(const TensorArg&)>(median, "self", kHost)},
      {"median", call<Two(const TensorArg&, int64_t, bool)>(median, "self, dim, keepdim=false", kHost)},
      {"nanmedian", call<Tensor(const TensorArg&)>(nanmedian, "self", kHost)},
      {"nanmedian", call<Two(const TensorArg&, int64_t, bool)>(nanmedian, "self, dim, keepdim=false", kHost)},
      {"quantile", call(quantile, "self, q, dim=null, keepdim=false, interpolation=linear", kBreaks | kHost)},
      {"nanquantile", call(nanquantile, "self, q, dim=null, keepdim=false, interpolation=linear", kBreaks | kHost)},
      {"bincount", call(bincount, "self, weights=null, minlength=0", kBreaks | kHost)},
      {"histc", call(histc, "self, bins=100, min=0, max=0", kBreaks | kHost)},
      {"histogram", call<Two(const TensorArg&, int64_t, const std::vector<double>&, const TensorArg&, bool)>(
                        histogram, "self, bins=100, range=[], weight=null, density=false", kBreaks | kHost)},
      {"histogram", call<Two(const TensorArg&, const TensorArg&, const TensorArg&, bool)>(
                        histogram, "self, bins, weight=null, density=false", kBreaks | kHost)},
      {"cov", call(cov, "self, correction=1, fweights=null, aweights=null", kBreaks)},
      {"corrcoef", call(corrcoef, "self")},

      {"det", call(det, "self", kHost)},
      {"slogdet", call(slogdet, "self", kHost)},
      {"inverse", call(inverse, "self", kHost)},
      {"cholesky", call(cholesky, "self, upper=false", kHost)},
      {"matrix_power", call(matrix_power, "self, n", kHost)},
      {"linalg.matrix_exp", call(linalg::matrix_exp, "A", kHost)},
      {"linalg.householder_product", call(linalg::householder_product, "A, tau")},
      {"linalg.lu", call(linalg::lu, "A", kHost)},
      {"linalg.lu_factor", call(linalg::lu_factor, "A", kHost)},
      {"linalg.lu_solve", call(linalg::lu_solve, "LU, pivots, B, left=true, adjoint=false", kHost)},
      {"logdet", call(logdet, "self", kHost)},
      {"matrix_exp", call(matrix_exp, "self", kHost)},
      {"pinverse", call(pinverse, "self, rcond=1e-15", kHost)},
      {"cholesky_inverse", call(cholesky_inverse, "self, upper=false", kHost)},
      {"cholesky_solve", call(cholesky_solve, "self, input2, upper=false", kHost)},
      {"linalg.cholesky", call(linalg::cholesky, "self, upper=false", kHost)},
      {"linalg.cholesky_ex", call(linalg::cholesky_ex, "self, upper=false, check_errors=false", kHost)},
      {"linalg.inv_ex", call(linalg::inv_ex, "A, check_errors=false", kHost)},
      {"linalg.solve_ex", call(linalg::solve_ex, "A, B, left=true, check_errors=false", kHost)},
      {"linalg.matrix_sqrth", call(linalg::matrix_sqrth, "self", kHost)},
      {"triangular_solve", call(triangular_solve, "self, A, upper=true, transpose=false, unitriangular=false", kHost)},
      {"linalg.cond", call<Tensor(const TensorArg&, std::optional<double>)>(linalg::cond, "self, p=null", kHost)},
      {"linalg.cond", call<Tensor(const TensorArg&, Word)>(linalg::cond, "self, p", kHost)},
      {"linalg.cross", call(linalg::cross, "self, other, dim=-1")},
      {"linalg.det", call(linalg::det, "A", kHost)},
      {"linalg.diagonal", call(linalg::diagonal, "A, offset=0, dim1=-2, dim2=-1")},
      {"linalg.eigvalsh", call(linalg::eigvalsh, "self, UPLO=L", kHost)},
      {"linalg.inv", call(linalg::inv, "A", kHost)},
      {"linalg.matrix_norm", call<Tensor(const TensorArg&, Word, const IntList&, bool)>(
                                 linalg::matrix_norm, "self, ord=fro, dim=[-2,-1], keepdim=false", kHost)},
      {"linalg.matrix_norm", call<Tensor(const TensorArg&, double, const IntList&, bool)>(
                                 linalg::matrix_norm, "self, ord, dim=[-2,-1], keepdim=false", kHost)},
      {"linalg.matrix_power", call(linalg::matrix_power, "self, n", kHost)},
      {"linalg.matrix_rank", call(linalg::matrix_rank, "self, atol=null, rtol=null, hermitian=false", kHost)},
      {"linalg.multi_dot", call(linalg::multi_dot, "tensors")},
      {"linalg.norm", call<Tensor(const TensorArg&, std::optional<double>, const IntList&, bool)>(
                          linalg::norm, "self, ord=null, dim=null, keepdim=false", kHost)},
      {"linalg.norm", call<Tensor(const TensorArg&, Word, const IntList&, bool)>(
                          linalg::norm, "self, ord, dim=null, keepdim=false", kHost)},
      {"linalg.pinv", call(linalg::pinv, "self, atol=null, rtol=null, hermitian=false", kHost)},
      {"linalg.slogdet", call(linalg::slogdet, "A", kHost)},
      {"linalg.solve", call(linalg::solve, "A, B, left=true", kHost)},
      {"linalg.solve_triangular",
       call(linalg::solve_triangular, "self, B, upper, left=true, unitriangular=false", kHost)},
      {"linalg.svdvals", call(linalg::svdvals, "A", kHost)},
      {"linalg.tensorinv", call(linalg::tensorinv, "self, ind=2", kHost)},
      {"linalg.tensorsolve", call(linalg::tensorsolve, "self, other, dims=null", kHost)},
      {"linalg.vander", call(linalg::vander, "x, N=null", kHost)},

      // The method's arguments: the function has the order before the tensor.
      {"polygamma", call(&Tensor::polygamma, "self, n")},
      {"special.polygamma", call(&Tensor::polygamma, "self, n")},
      {"mvlgamma", call(mvlgamma, "self, p")},
      {"i0", call(i0, "self")},
      {"igamma", call(igamma, "self, other", kBreaks)},
      {"igammac", call(igammac, "self, other", kBreaks)},
      {"special.i0", call(special::i0, "self")},
      {"special.gammainc", call(special::gammainc, "self, other", kBreaks)},
      {"special.gammaincc", call(special::gammaincc, "self, other", kBreaks)},
      {"special.multigammaln", call(special::multigammaln, "self, p")},
      {"special.entr", call(special::entr, "self")},
      {"special.xlog1py", call(special::xlog1py, "self, other")},
      {"special.ndtr", call(special::ndtr, "self")},
      {"special.log_ndtr", call(special::log_ndtr, "self")},
      {"special.ndtri", call(special::ndtri, "self")},
      {"special.zeta", call(special::zeta, "self, other")},
      {"special.modified_bessel_i0", call(special::modified_bessel_i0, "self")},
      {"special.modified_bessel_i1", call(special::modified_bessel_i1, "self")},
      {"special.modified_bessel_k0", call(special::modified_bessel_k0, "self")},
      {"special.modified_bessel_k1", call(special::modified_bessel_k1, "self")},
      {"special.scaled_modified_bessel_k0", call(special::scaled_modified_bessel_k0, "x")},
      {"special.scaled_modified_bessel_k1", call(special::scaled_modified_bessel_k1, "x")},
      {"special.airy_ai", call(special::airy_ai, "x")},
      {"special.spherical_bessel_j0", call(special::spherical_bessel_j0, "x")},
      {"special.chebyshev_polynomial_t", call(special::chebyshev_polynomial_t, "x, n", kBreaks)},
      {"special.chebyshev_polynomial_u", call(special::chebyshev_polynomial_u, "x, n", kBreaks)},
      {"special.chebyshev_polynomial_v", call(special::chebyshev_polynomial_v, "x, n", kBreaks)},
      {"special.chebyshev_polynomial_w", call(special::chebyshev_polynomial_w, "x, n", kBreaks)},
      {"special.shifted_chebyshev_polynomial_t", call(special::shifted_chebyshev_polynomial_t, "x, n", kBreaks)},
      {"special.shifted_chebyshev_polynomial_u", call(special::shifted_chebyshev_polynomial_u, "x, n", kBreaks)},
      {"special.shifted_chebyshev_polynomial_v", call(special::shifted_chebyshev_polynomial_v, "x, n", kBreaks)},
      {"special.shifted_chebyshev_polynomial_w", call(special::shifted_chebyshev_polynomial_w, "x, n", kBreaks)},
      {"special.hermite_polynomial_h", call(special::hermite_polynomial_h, "x, n", kBreaks)},
      {"special.hermite_polynomial_he", call(special::hermite_polynomial_he, "x, n", kBreaks)},
      {"special.laguerre_polynomial_l", call(special::laguerre_polynomial_l, "x, n", kBreaks)},
      {"special.legendre_polynomial_p", call(special::legendre_polynomial_p, "x, n", kBreaks)},
      {"special.i0e", call(special::i0e, "self")},
      {"special.i1", call(special::i1, "self")},
      {"special.i1e", call(special::i1e, "self")},
      {"special.bessel_j0", call(special::bessel_j0, "self")},
      {"special.bessel_j1", call(special::bessel_j1, "self")},
      {"special.bessel_y0", call(special::bessel_y0, "self")},
      {"special.bessel_y1", call(special::bessel_y1, "self")},

      {"signal.windows.bartlett", call(signal_windows::bartlett, "M, sym=true, dtype=null")},
      {"signal.windows.blackman", call(signal_windows::blackman, "M, sym=true, dtype=null")},
      {"signal.windows.cosine", call(signal_windows::cosine, "M, sym=true, dtype=null")},
      {"signal.windows.exponential", call(signal_windows::exponential, "M, center=null, tau=1, sym=true, dtype=null")},
      {"signal.windows.gaussian", call(signal_windows::gaussian, "M, std=1, sym=true, dtype=null")},
      {"signal.windows.general_cosine", call(signal_windows::general_cosine, "M, a, sym=true, dtype=null")},
      {"signal.windows.general_hamming", call(signal_windows::general_hamming, "M, alpha=0.54, sym=true, dtype=null")},
      {"signal.windows.hamming", call(signal_windows::hamming, "M, sym=true, dtype=null")},
      {"signal.windows.hann", call(signal_windows::hann, "M, sym=true, dtype=null")},
      {"signal.windows.kaiser", call(signal_windows::kaiser, "M, beta=12, sym=true, dtype=null")},
      {"signal.windows.nuttall", call(signal_windows::nuttall, "M, sym=true, dtype=null")},
  };
}

}  // namespace ingot::conformance
