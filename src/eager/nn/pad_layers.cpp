#include "eager/nn/pad_layers.h"

#include "eager/call/call.h"
#include "eager/nn/checks.h"
#include "eager/nn/windows.h"

namespace ingot::nn {

PadImpl::PadImpl(const char* layer, int64_t spatial, const char* mode, const IntList& around, double fill)
    : padding(around.items()), value(fill), layer_(layer), mode_(mode) {
  const size_t count = 2 * static_cast<size_t>(spatial);
  if (padding.size() == 1) padding.resize(count, padding[0]);
  if (padding.size() != count)
    detail::refuse(layer, "padding", std::to_string(padding.size()) + " numbers", "one, or " + std::to_string(count));
}

Tensor PadImpl::forward(const TensorArg& x) const {
  const int64_t dims = eager::present(layer_, "x", x).dim(), spatial = static_cast<int64_t>(padding.size()) / 2;
  const bool constant = mode_ == std::string_view("constant");
  if (constant ? dims < spatial : dims != spatial + 1 && dims != spatial + 2)
    eager::fail(layer_, "x", std::to_string(dims) + " dims",
                constant ? std::to_string(spatial) + " at least"
                         : std::to_string(spatial + 1) + " or " + std::to_string(spatial + 2),
                x.location);
  return functional::pad(x, padding, mode_, value);
}

}  // namespace ingot::nn
