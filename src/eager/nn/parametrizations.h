// Layers whose weight is computed from other parameters, as torch.nn.utils.parametrizations has them.
//
//   nn::WeightNorm<nn::Linear> fc{nn::Linear(64, 10)};
//   nn::SpectralNorm<nn::Conv2d> conv{nn::Conv2d(3, 16, 3)};
//
// The layer is copied. Names in a state dict are PyTorch's: "fc.bias", "fc.parametrizations.weight.original0".
#pragma once
#include <optional>
#include <type_traits>
#include <utility>

#include "eager/nn/module.h"

namespace ingot::nn {

struct SpectralNormOptions {
  int64_t n_power_iterations = 1;
  double eps = 1e-12;
  std::optional<int64_t> dim =
      {};  // of the weight's, that of the outputs; absent: 1 for transposed convolutions, else 0
};

namespace detail {
/// Takes the weight out of a layer; an Error names the parametrization where it has none that is floating.
INGOT_API Tensor take_weight(const char* parametrization, const char* layer, Tensor& weight);
/// The norm over all dims but this one, which stay as 1; none: over all.
INGOT_API Tensor norm_except(const char* parametrization, const Tensor& v, std::optional<int64_t> dim);
/// How a weight follows from its vectors' lengths and directions.
INGOT_API Tensor weight_of_norm(const Tensor& g, const Tensor& v, std::optional<int64_t> dim);
/// How a weight follows from another one by its largest singular value, which the power method finds.
class INGOT_API SpectralWeight {
 public:
  Tensor original;
  Buffer u, v;  // the singular vectors; none for a weight of one dim
  SpectralWeight(Tensor weight, const SpectralNormOptions& options, bool transposed);
  /// `training`: after further steps of the power method.
  Tensor weight(bool training) const;

 private:
  void iterate(int64_t times) const;
  Tensor matrix() const;
  SpectralNormOptions options_;
};
}  // namespace detail

/// A layer without a weight, which is given one for each call.
template <class M>
struct ParametrizedImpl : Layer {
  using LayerImpl = typename M::Impl;
  static_assert(std::is_base_of_v<Layer, LayerImpl>, "ingot: layers of the library with a weight can be parametrized");
  LayerImpl layer;
  explicit ParametrizedImpl(const M& module) : layer(*module.clone()) {}

 protected:
  LayerImpl with(Tensor weight) const {
    LayerImpl whole(layer);
    whole.weight = std::move(weight);
    return whole;
  }
};

/// weight = g v / |v|: lengths (original0) and directions (original1) apart. The norm goes over all dims but `dim`;
/// without one over all. Throws Error for a layer without a floating-point weight, or without this dim. (T. Salimans
/// and D. Kingma, Weight Normalization, 2016)
template <class M>
struct WeightNormImpl : ParametrizedImpl<M> {
  std::optional<int64_t> dim;
  Tensor original1, original0;
  explicit WeightNormImpl(const M& module, std::optional<int64_t> along = 0)
      : ParametrizedImpl<M>(module),
        dim(along),
        original1(detail::take_weight("WeightNorm", M::module_type(), this->layer.weight)),
        original0(detail::norm_except("WeightNorm", original1, dim)) {}
  Tensor weight() const { return detail::weight_of_norm(original0, original1, dim); }
  template <class... Rest>
  auto forward(const TensorArg& x,
               Rest&&... rest) const requires detail::Forwards<typename M::Impl, const TensorArg&, Rest...> {
    return this->with(weight()).forward(x, std::forward<Rest>(rest)...);
  }
  /// The layer with the weight that it has now, as a parameter.
  M layer_of_now() const {
    const NoGradGuard no_grad;
    return M(this->with(weight())).clone();
  }
};
template <class M>
class WeightNorm : public Handle<WeightNorm<M>, WeightNormImpl<M>> {
 public:
  using Handle<WeightNorm<M>, WeightNormImpl<M>>::Handle;
  static constexpr const char* module_type() { return "WeightNorm"; }
  static void fields(WeightNormImpl<M>& self, Fields& visit) {
    M::fields(self.layer, visit);
    visit("parametrizations.weight.original0", self.original0);
    visit("parametrizations.weight.original1", self.original1);
  }
};

/// weight = original / sigma, its largest singular value as a matrix of outputs by all else. In training each call
/// takes steps of the power method first, which write to the buffers. A weight of one dim is divided by its norm.
/// Throws Error as WeightNorm does, and for fewer than one step. (T. Miyato et al., Spectral Normalization for
/// Generative Adversarial Networks, 2018)
template <class M>
struct SpectralNormImpl : ParametrizedImpl<M> {
  static constexpr bool kTransposed = requires(typename M::Impl layer) { layer.options.output_padding; };
  detail::SpectralWeight parametrization;
  explicit SpectralNormImpl(const M& module, const SpectralNormOptions& options = {})
      : ParametrizedImpl<M>(module),
        parametrization(detail::take_weight("SpectralNorm", M::module_type(), this->layer.weight), options,
                        kTransposed) {}
  Tensor weight() const { return parametrization.weight(this->is_training()); }
  template <class... Rest>
  auto forward(const TensorArg& x,
               Rest&&... rest) const requires detail::Forwards<typename M::Impl, const TensorArg&, Rest...> {
    return this->with(weight()).forward(x, std::forward<Rest>(rest)...);
  }
  /// The layer with the weight that it has now, as a parameter.
  M layer_of_now() const {
    const NoGradGuard no_grad;
    return M(this->with(parametrization.weight(false))).clone();
  }
};
template <class M>
class SpectralNorm
    : public HandleFrom<SpectralNorm<M>, SpectralNormImpl<M>, From<const M&, const SpectralNormOptions&>> {
 public:
  using HandleFrom<SpectralNorm<M>, SpectralNormImpl<M>, From<const M&, const SpectralNormOptions&>>::HandleFrom;
  static constexpr const char* module_type() { return "SpectralNorm"; }
  static void fields(SpectralNormImpl<M>& self, Fields& visit) {
    M::fields(self.layer, visit);
    visit("parametrizations.weight.original", self.parametrization.original);
    visit("parametrizations.weight.0._u", self.parametrization.u);
    visit("parametrizations.weight.0._v", self.parametrization.v);
  }
};

namespace utils::parametrizations {
/// See WeightNorm.
template <class M>
WeightNorm<M> weight_norm(const M& module, std::optional<int64_t> dim = 0) {
  return {module, dim};
}
/// See SpectralNorm.
template <class M>
SpectralNorm<M> spectral_norm(const M& module, const SpectralNormOptions& options = {}) {
  return {module, options};
}
}  // namespace utils::parametrizations

}  // namespace ingot::nn
