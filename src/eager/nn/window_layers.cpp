#include "eager/nn/window_layers.h"

namespace ingot::nn {

const FractionalMaxPoolOptions& detail::fractional(const char* layer, size_t dims, const FractionalMaxPoolOptions& o) {
  if (o.output_size.present() == !o.output_ratio.empty())
    refuse(layer, "output_size",
           o.output_size.present() ? "output_size and output_ratio" : "neither output_size nor output_ratio",
           "one of the two");
  if (o.output_size.present()) positive(layer, "output_size", o.output_size, dims);
  if (o.output_ratio.size() > 1 && o.output_ratio.size() != dims)
    refuse(layer, "output_ratio", std::to_string(o.output_ratio.size()) + " numbers",
           "one, or " + std::to_string(dims));
  for (double ratio : o.output_ratio)
    if (!(ratio > 0 && ratio < 1)) refuse(layer, "output_ratio", std::to_string(ratio), "a number between 0 and 1");
  return o;
}

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
