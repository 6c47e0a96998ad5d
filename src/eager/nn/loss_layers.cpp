#include "eager/nn/loss_layers.h"

namespace ingot::nn {

MultiMarginLossImpl::MultiMarginLossImpl(int64_t order, double set_margin, Tensor w, std::string r)
    : p(order), margin(set_margin), weight(std::move(w)), reduction(std::move(r)) {
  if (p != 1 && p != 2) detail::refuse("MultiMarginLoss", "p", std::to_string(p), "1 or 2");
  if (weight.defined() && weight.dim() != 1)
    detail::refuse("MultiMarginLoss", "weight", detail::shape_of(weight), "one dim, for the classes");
}

}  // namespace ingot::nn
