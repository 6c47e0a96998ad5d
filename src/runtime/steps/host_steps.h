// Host ops: C++ functions under the name of their row. A step's operands and attributes have the names that the row
// gives them.
#pragma once
#include <memory>
#include <string_view>

#include "runtime/drivers/step_driver.h"

namespace ingot::runtime {

using BindHostStep = StepDriver*(const HostStep& step, const BindContext& context);
BindHostStep bind_cumsum, bind_cumprod, bind_cummax, bind_cummin, bind_logcumsumexp, bind_sort, bind_topk,
    bind_kthvalue, bind_mode, bind_searchsorted, bind_nonzero_static, bind_scatter, bind_scatter_reduce, bind_cholesky,
    bind_inverse, bind_solve, bind_determinant, bind_cofactors, bind_lu, bind_pivot_order, bind_qr, bind_eigenvectors,
    bind_singular_vectors, bind_exponential;

struct HostRow {
  std::string_view name;
  BindHostStep* bind;
};
inline constexpr HostRow kHostSteps[] = {
    {"cumsum", bind_cumsum},
    {"cumprod", bind_cumprod},
    {"cummax", bind_cummax},
    {"cummin", bind_cummin},
    {"logcumsumexp", bind_logcumsumexp},
    {"sort", bind_sort},
    {"topk", bind_topk},
    {"kthvalue", bind_kthvalue},
    {"mode", bind_mode},
    {"searchsorted", bind_searchsorted},
    {"nonzero_static", bind_nonzero_static},
    {"scatter", bind_scatter},
    {"scatter_reduce", bind_scatter_reduce},
    {"linalg_cholesky_ex", bind_cholesky},
    {"linalg_inv_ex", bind_inverse},
    {"linalg_solve_ex", bind_solve},
    {"linalg_det", bind_determinant},
    {"linalg_cofactors", bind_cofactors},
    {"linalg_lu_factor_ex", bind_lu},
    {"linalg_pivot_order", bind_pivot_order},
    {"linalg_qr", bind_qr},
    {"linalg_eigh", bind_eigenvectors},
    {"linalg_svd", bind_singular_vectors},
    {"linalg_matrix_exp", bind_exponential},
};
/// Throws InternalError, with the names that exist, if there is no such host op.
StepDriver* bind(const HostStep& step, const Step& costs, const BindContext& context);
constexpr bool has_host_step(std::string_view name) {
  for (const HostRow& row : kHostSteps)
    if (row.name == name) return true;
  return false;
}

}  // namespace ingot::runtime
