#include "eager/nn/window_layers.h"

namespace ingot::nn {

UpsampleImpl::UpsampleImpl(UpsampleOptions o) : options(std::move(o)) {
  if (options.size.present() == !options.scale_factor.empty())
    detail::refuse("Upsample", "size",
                   options.size.present() ? "size and scale_factor" : "neither size nor scale_factor",
                   "one of the two");
  if (options.size.present()) detail::positive("Upsample", "size", options.size, 0);
  for (double factor : options.scale_factor)
    if (!(factor > 0)) detail::refuse("Upsample", "scale_factor", std::to_string(factor), "a positive number");
}

}  // namespace ingot::nn
