#include "eager/nn/convolution_layers.h"

#include "eager/call/call.h"
#include "eager/nn/initial.h"

namespace ingot::nn {

ConvolutionImpl::ConvolutionImpl(const char* name, size_t spatial, int64_t in_channels, int64_t out_channels,
                                 const IntList& kernel_size, int64_t groups, bool with_bias, bool transposed) {
  detail::positive(name, "groups", groups);
  detail::divisible(name, "in_channels", detail::not_negative(name, "in_channels", in_channels), "groups", groups);
  detail::divisible(name, "out_channels", detail::not_negative(name, "out_channels", out_channels), "groups", groups);
  Ints kernel = eager::spread(detail::positive(name, "kernel_size", kernel_size, spatial), spatial);
  // [out, in of a group, kernel]; transposed [in, out of a group, kernel], of which PyTorch counts the same fan.
  Ints shape{transposed ? in_channels : out_channels, (transposed ? out_channels : in_channels) / groups};
  int64_t fan_in = shape[1];
  for (int64_t k : kernel) {
    shape.push_back(k);
    fan_in *= k;
  }
  weight = detail::uniform(shape, fan_in);
  if (with_bias) bias = detail::uniform({out_channels}, fan_in);
}

const ConvOptions& ConvolutionImpl::checked(const char* name, size_t spatial, const ConvOptions& o) {
  detail::windows(name, spatial, o);
  const std::string &word = o.padding.word(), &mode = o.padding_mode;
  if (word.empty())
    detail::not_negative(name, "padding", o.padding.sizes(), spatial);
  else if (word != "same" && word != "valid")
    detail::refuse(name, "padding", "\"" + word + "\"", "\"same\", \"valid\" or numbers");
  for (int64_t s : o.stride.items())
    if (word == "same" && s != 1) detail::refuse(name, "stride", std::to_string(s), "1 for padding \"same\"");
  if (mode != "zeros" && mode != "reflect" && mode != "replicate" && mode != "circular")
    detail::refuse(name, "padding_mode", "\"" + mode + "\"",
                   "one of \"zeros\", \"reflect\", \"replicate\", \"circular\"");
  return o;
}

void ConvolutionImpl::set_padding(const ConvOptions& options) {
  const size_t spatial = static_cast<size_t>(weight.dim()) - 2;
  detail::Around around{Ints(spatial), Ints(spatial)};
  if (options.padding.word() == "same")
    around = detail::same_padding(weight, eager::spread(options.dilation, spatial));
  else if (options.padding.word().empty())
    around.before = around.after = eager::spread(options.padding.sizes(), spatial);
  if (options.padding_mode == "zeros" && around.even()) {
    padding_ = around.before;
  } else {
    padding_ = Ints(spatial);
    pairs_ = around.pairs();
  }
}

}  // namespace ingot::nn
