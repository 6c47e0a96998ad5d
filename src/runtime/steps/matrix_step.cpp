// Functions of matrices, each matrix of a batch by itself: small ones are shared out to threads; of larger ones the
// products of blocks are, which they are mostly made of.
#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "base/error.h"
#include "runtime/matrices/factorizations.h"
#include "runtime/steps/host_steps.h"
#include "runtime/steps/lines.h"
#include "runtime/thread_pool.h"

namespace ingot::runtime {
namespace {

/// An operand or a result of matrices: the batch, row-major, before its last `dims` dims.
class Batch {
 public:
  Batch(const HostStep::Tensor& tensor, size_t dims, const BindContext& context)
      : place_(context.argument(tensor.place)), sizes_(context.values_of(tensor.shape)), batch_(sizes_.size() - dims) {}

  int64_t size(size_t from_end) const { return sizes_[sizes_.size() - from_end]; }
  int64_t rows() const { return size(2); }
  int64_t columns() const { return size(1); }
  int64_t count() const {
    int64_t n = 1;
    for (size_t d = 0; d < batch_; ++d) n *= sizes_[d];
    return n;
  }
  /// What result `i` of the batch begins with.
  template <class T>
  T* at(const StepState& state, int64_t i) const {
    return reinterpret_cast<T*>(address(state, i));
  }
  /// Operand `i` of the batch, a matrix, as it is row-major.
  void copy(const StepState& state, int64_t i, double* to) const {
    const char* from = address(state, i);
    const int64_t row = place_.strides[batch_], column = place_.strides[batch_ + 1];
    for (int64_t r = 0; r < rows(); ++r)
      for (int64_t c = 0; c < columns(); ++c) *to++ = *reinterpret_cast<const double*>(from + r * row + c * column);
  }
  std::vector<double> matrix(const StepState& state, int64_t i) const {
    std::vector<double> copied(static_cast<size_t>(rows() * columns()));
    copy(state, i, copied.data());
    return copied;
  }

 private:
  char* address(const StepState& state, int64_t i) const {
    int64_t bytes = 0;
    for (size_t d = batch_; d-- > 0; i /= sizes_[d]) bytes += i % sizes_[d] * place_.strides[d];
    return place_.at(state) + bytes;
  }

  BoundArgument place_;
  std::span<const int64_t> sizes_;
  size_t batch_;
};

class MatrixDriver : public StepDriver {
 public:
  void run(const StepState& state, int, int share, int shares) const override {
    const Range matrices = runtime::share(a_.count(), share, shares);
    for (int64_t i = matrices.begin; i < matrices.end; ++i) factor(state, i);
  }
  int64_t scratch_bytes(const StepState&) const override { return products_.scratch_bytes(); }

 protected:
  MatrixDriver(const HostStep& step, const BindContext& context)
      : a_(step.operand("A"), 2, context),
        products_(context.constants([&] { return BlockProducts(*step.products, context); })) {
    constexpr int64_t kGrain = 16384;  // operations for one thread
    const int64_t rows = a_.rows(), columns = a_.columns();
    alone = std::max(rows, columns) > kPlainSize;
    const int64_t each = saturating_product(rows, saturating_product(columns, std::min(rows, columns))) + 64;
    if (!alone)
      useful_threads = static_cast<int>(std::clamp<int64_t>(saturating_product(a_.count(), each) / kGrain, 1,
                                                            std::clamp<int64_t>(a_.count(), 1, kMostThreads)));
  }
  virtual void factor(const StepState& state, int64_t i) const = 0;

  const Batch a_;
  const BlockProducts& products_;
};

class CholeskyDriver final : public MatrixDriver {
 public:
  CholeskyDriver(const HostStep& step, const BindContext& context)
      : MatrixDriver(step, context), factor_(step.results[0], 2, context), info_(step.results[1], 0, context) {}

 private:
  void factor(const StepState& state, int64_t i) const override {
    double* to = factor_.at<double>(state, i);
    a_.copy(state, i, to);
    *info_.at<int32_t>(state, i) = static_cast<int32_t>(factor_cholesky(products_, to, a_.rows()));
  }
  Batch factor_, info_;
};

/// X of A X = B, or without B the inverse.
class SolveDriver final : public MatrixDriver {
 public:
  enum Form { kGeneral, kLower, kUpper };  // as in the row
  SolveDriver(const HostStep& step, const BindContext& context)
      : MatrixDriver(step, context), x_(step.results[0], 2, context), info_(step.results[1], 0, context) {
    const HostStep::Tensor* b = step.find("B");
    if (!b) return;
    b_.emplace(*b, 2, context);
    form_ = static_cast<Form>(context.value(step.attribute("form")));
  }

 private:
  void factor(const StepState& state, int64_t i) const override {
    const int64_t n = a_.rows(), columns = x_.columns();
    std::vector<double> a = a_.matrix(state, i);
    double* x = x_.at<double>(state, i);
    if (b_) {
      b_->copy(state, i, x);
    } else {
      std::fill_n(x, n * n, 0);
      for (int64_t k = 0; k < n; ++k) x[k * n + k] = 1;
    }
    int64_t zero = -1;  // the first pivot that is one
    if (form_ == kGeneral) {
      const Pivots pivots = factor_lu(products_, a.data(), n, n);
      zero = pivots.zero;
      solve_lu(products_, a.data(), pivots, n, x, columns);
    } else {
      for (int64_t k = n; k-- > 0;)
        if (a[k * n + k] == 0) zero = k;
      solve_triangle(products_, a.data(), n, form_ == kUpper, false, x, columns);
    }
    *info_.at<int32_t>(state, i) = static_cast<int32_t>(zero + 1);
  }
  Batch x_, info_;
  std::optional<Batch> b_;
  Form form_ = kGeneral;
};

class DeterminantDriver final : public MatrixDriver {
 public:
  DeterminantDriver(const HostStep& step, const BindContext& context)
      : MatrixDriver(step, context),
        product_(step.results[0], 0, context),
        sign_(step.results[1], 0, context),
        logarithm_(step.results[2], 0, context) {}

 private:
  void factor(const StepState& state, int64_t i) const override {
    const int64_t n = a_.rows();
    std::vector<double> lu = a_.matrix(state, i);
    double sign = factor_lu(products_, lu.data(), n, n).sign, product = sign, logarithm = 0;
    for (int64_t k = 0; k < n; ++k) {
      const double pivot = lu[k * n + k];
      product *= pivot;
      sign *= pivot > 0 ? 1 : pivot < 0 ? -1 : pivot;
      logarithm += std::log(std::fabs(pivot));
    }
    *product_.at<double>(state, i) = product;
    *sign_.at<double>(state, i) = sign;
    *logarithm_.at<double>(state, i) = logarithm;
  }
  Batch product_, sign_, logarithm_;
};

/// The determinant times the inverse, turned; of a singular matrix the products of all singular values but one, among
/// its singular vectors.
class CofactorsDriver final : public MatrixDriver {
 public:
  CofactorsDriver(const HostStep& step, const BindContext& context)
      : MatrixDriver(step, context), result_(step.results[0], 2, context) {}

 private:
  void factor(const StepState& state, int64_t i) const override {
    const int64_t n = a_.rows();
    const std::vector<double> a = a_.matrix(state, i);
    std::vector<double> lu = a, inverse(a.size());
    const Pivots pivots = factor_lu(products_, lu.data(), n, n);
    double product = pivots.sign;
    for (int64_t k = 0; k < n; ++k) product *= lu[k * n + k];
    if (product == 0) return of_singular(a, result_.at<double>(state, i));
    for (int64_t k = 0; k < n; ++k) inverse[k * n + k] = product;
    solve_lu(products_, lu.data(), pivots, n, inverse.data(), n);
    double* to = result_.at<double>(state, i);
    for (int64_t r = 0; r < n; ++r)
      for (int64_t c = 0; c < n; ++c) to[r * n + c] = inverse[c * n + r];
  }
  void of_singular(const std::vector<double>& a, double* to) const {
    const int64_t n = a_.rows();
    std::vector<double> u(a.size()), vt(a.size()), values(static_cast<size_t>(n));
    factor_singular(products_, a.data(), n, n, u.data(), n, values.data(), vt.data(), n);
    double sign = 1;
    for (std::vector<double> turned : {u, vt}) {
      sign *= factor_lu(products_, turned.data(), n, n).sign;
      for (int64_t k = 0; k < n; ++k) sign = std::copysign(sign, sign * turned[k * n + k]);
    }
    for (int64_t k = 0; k < n; ++k) {
      double others = sign;
      for (int64_t j = 0; j < n; ++j) others *= j == k ? 1 : values[j];
      for (int64_t c = 0; c < n; ++c) vt[k * n + c] *= others;
    }
    std::fill_n(to, n * n, 0);
    products_.add(1, {u.data(), n}, {vt.data(), n}, to, n, n, n, n);
  }
  Batch result_;
};

class LuDriver final : public MatrixDriver {
 public:
  LuDriver(const HostStep& step, const BindContext& context)
      : MatrixDriver(step, context),
        packed_(step.results[0], 2, context),
        pivots_(step.results[1], 1, context),
        info_(step.results[2], 0, context) {}

 private:
  void factor(const StepState& state, int64_t i) const override {
    double* to = packed_.at<double>(state, i);
    a_.copy(state, i, to);
    const Pivots pivots = factor_lu(products_, to, a_.rows(), a_.columns());
    std::transform(pivots.swaps.begin(), pivots.swaps.end(), pivots_.at<int32_t>(state, i),
                   [](int64_t row) { return static_cast<int32_t>(row + 1); });
    *info_.at<int32_t>(state, i) = static_cast<int32_t>(pivots.zero + 1);
  }
  Batch packed_, pivots_, info_;
};

/// Which rows there are once row i was exchanged with row pivots[i] - 1, one after the other.
class PivotOrderDriver final : public StepDriver {
 public:
  PivotOrderDriver(const HostStep& step, const BindContext& context)
      : pivots_(step.operand("pivots"), 1, context), order_(step.results[0], 1, context) {
    stride_ = context.argument(step.operand("pivots").place).strides.back();
  }
  void run(const StepState& state, int, int share, int shares) const override {
    const Range matrices = runtime::share(order_.count(), share, shares);
    const int64_t rows = order_.columns();
    for (int64_t i = matrices.begin; i < matrices.end; ++i) {
      int64_t* row = order_.at<int64_t>(state, i);
      for (int64_t r = 0; r < rows; ++r) row[r] = r;
      const char* pivot = pivots_.at<char>(state, i);
      for (int64_t k = 0; k < pivots_.columns(); ++k, pivot += stride_) {
        // One that is no row is refused by who calls it, once this has run.
        const int64_t other = *reinterpret_cast<const int64_t*>(pivot) - 1;
        if (other >= 0 && other < rows) std::swap(row[k], row[other]);
      }
    }
  }

 private:
  Batch pivots_, order_;
  int64_t stride_;
};

class QrDriver final : public MatrixDriver {
 public:
  QrDriver(const HostStep& step, const BindContext& context)
      : MatrixDriver(step, context), q_(step.results[0], 2, context), r_(step.results[1], 2, context) {}

 private:
  void factor(const StepState& state, int64_t i) const override {
    std::vector<double> a = a_.matrix(state, i);
    factor_qr(products_, a.data(), a_.rows(), a_.columns(), q_.at<double>(state, i), q_.columns());
    std::copy_n(a.data(), r_.rows() * r_.columns(), r_.at<double>(state, i));
  }
  Batch q_, r_;
};

/// Of `count` vectors, each of n elements `stride` apart, those whose largest element is negative, with the elements
/// that go along in `others` (lines of `length`).
void turn_signs(double* vectors, int64_t n, int64_t count, int64_t stride, double* others, int64_t length) {
  for (int64_t v = 0; v < count; ++v) {
    double largest = 0;
    for (int64_t k = 0; k < n; ++k)
      if (const double x = vectors[k * stride + v]; std::fabs(x) > std::fabs(largest)) largest = x;
    if (!(largest < 0)) continue;
    for (int64_t k = 0; k < n; ++k) vectors[k * stride + v] = -vectors[k * stride + v];
    for (int64_t k = 0; k < length; ++k) others[v * length + k] = -others[v * length + k];
  }
}

class EigenvectorsDriver final : public MatrixDriver {
 public:
  EigenvectorsDriver(const HostStep& step, const BindContext& context)
      : MatrixDriver(step, context),
        values_(step.results[0], 1, context),
        vectors_(step.results[1], 2, context),
        upper_(context.value(step.attribute("upper")) != 0),
        has_vectors_(context.value(step.attribute("vectors")) != 0) {}

 private:
  void factor(const StepState& state, int64_t i) const override {
    const int64_t n = a_.rows();
    std::vector<double> a = a_.matrix(state, i);
    for (int64_t r = 0; r < n; ++r)
      for (int64_t c = 0; c < r; ++c) (upper_ ? a[r * n + c] : a[c * n + r]) = upper_ ? a[c * n + r] : a[r * n + c];
    double* vectors = has_vectors_ ? vectors_.at<double>(state, i) : nullptr;
    factor_symmetric(products_, a.data(), n, values_.at<double>(state, i), vectors);
    if (vectors) turn_signs(vectors, n, n, n, nullptr, 0);
  }
  Batch values_, vectors_;
  bool upper_, has_vectors_;
};

class SingularVectorsDriver final : public MatrixDriver {
 public:
  SingularVectorsDriver(const HostStep& step, const BindContext& context)
      : MatrixDriver(step, context),
        u_(step.results[0], 2, context),
        values_(step.results[1], 1, context),
        vt_(step.results[2], 2, context),
        has_vectors_(context.value(step.attribute("vectors")) != 0) {}

 private:
  void factor(const StepState& state, int64_t i) const override {
    const std::vector<double> a = a_.matrix(state, i);
    double *u = has_vectors_ ? u_.at<double>(state, i) : nullptr,
           *vt = has_vectors_ ? vt_.at<double>(state, i) : nullptr;
    const int64_t k = values_.columns();
    factor_singular(products_, a.data(), a_.rows(), a_.columns(), u, u_.columns(), values_.at<double>(state, i), vt,
                    vt_.rows());
    if (u) turn_signs(u, a_.rows(), k, u_.columns(), vt, a_.columns());
  }
  Batch u_, values_, vt_;
  bool has_vectors_;
};

class ExponentialDriver final : public MatrixDriver {
 public:
  ExponentialDriver(const HostStep& step, const BindContext& context)
      : MatrixDriver(step, context), result_(step.results[0], 2, context) {}

 private:
  void factor(const StepState& state, int64_t i) const override {
    double* to = result_.at<double>(state, i);
    a_.copy(state, i, to);
    exponentiate(products_, to, a_.rows());
  }
  Batch result_;
};

}  // namespace

StepDriver* bind_cholesky(const HostStep& step, const BindContext& context) {
  return context.make<CholeskyDriver>(step, context);
}
StepDriver* bind_inverse(const HostStep& step, const BindContext& context) {
  return context.make<SolveDriver>(step, context);
}
StepDriver* bind_solve(const HostStep& step, const BindContext& context) {
  return context.make<SolveDriver>(step, context);
}
StepDriver* bind_determinant(const HostStep& step, const BindContext& context) {
  return context.make<DeterminantDriver>(step, context);
}
StepDriver* bind_cofactors(const HostStep& step, const BindContext& context) {
  return context.make<CofactorsDriver>(step, context);
}
StepDriver* bind_lu(const HostStep& step, const BindContext& context) { return context.make<LuDriver>(step, context); }
StepDriver* bind_pivot_order(const HostStep& step, const BindContext& context) {
  return context.make<PivotOrderDriver>(step, context);
}
StepDriver* bind_qr(const HostStep& step, const BindContext& context) { return context.make<QrDriver>(step, context); }
StepDriver* bind_eigenvectors(const HostStep& step, const BindContext& context) {
  return context.make<EigenvectorsDriver>(step, context);
}
StepDriver* bind_singular_vectors(const HostStep& step, const BindContext& context) {
  return context.make<SingularVectorsDriver>(step, context);
}
StepDriver* bind_exponential(const HostStep& step, const BindContext& context) {
  return context.make<ExponentialDriver>(step, context);
}

}  // namespace ingot::runtime
