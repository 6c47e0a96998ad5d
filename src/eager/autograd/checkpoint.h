// Gradient checkpointing: less is kept between forward and backward, and computed again instead.
//
//   Tensor y = autograd::checkpoint([this](const Tensor& x) { return block(x); }, x);
#pragma once
#include <functional>
#include <optional>
#include <type_traits>
#include <utility>
#include <vector>

#include "eager/autograd/autograd.h"

namespace ingot {
namespace nn {
class HandleBase;
class Sequential;
}  // namespace nn

namespace autograd {
namespace detail {
/// `function` gives its results to its second argument, which is null where nobody wants them.
INGOT_API void checkpoint(std::function<void(const std::vector<Tensor>&, void*)> function,
                          const std::vector<Tensor>& inputs, void* results, Location location);
template <class Function, size_t... I>
auto call_with(Function& function, const std::vector<Tensor>& inputs, [[maybe_unused]] Location location,
               std::index_sequence<I...>) {
  if constexpr (std::is_base_of_v<nn::HandleBase, Function>)
    return function(TensorArg(inputs[I], location)...);
  else
    return function(inputs[I]...);
}
}  // namespace detail

/// What function(inputs...) gives, a tensor or any copyable type that holds some, with gradients of the same bits. The
/// tape keeps of it the inputs and the parameters alone; backward() runs the function again where it comes to it, with
/// the random numbers and the region of autocast of the first time. The function may be a module; it is copied, and
/// what it captures by reference must live until then. Calls may be nested. Throws Error in backward() for an input
/// that was written to in place since, and where the function calls other ops, or with other numbers or tensors that
/// were written to since. Buffers of BatchNorm and InstanceNorm are updated once. (T. Chen et al., Training Deep Nets
/// with Sublinear Memory Cost, 2016; PyTorch's torch.utils.checkpoint.checkpoint with use_reentrant=False.)
template <class Function, class... Tensors>
requires(std::is_convertible_v<const Tensors&, const Tensor&>&&...) auto checkpoint(Function function,
                                                                                    const TensorArg& input,
                                                                                    const Tensors&... more) {
  using Numbers = std::make_index_sequence<1 + sizeof...(Tensors)>;
  using Result = std::decay_t<decltype(detail::call_with(function, {}, input.location, Numbers()))>;
  static_assert(!std::is_void_v<Result>, "ingot::autograd::checkpoint: the function gives a result");
  std::optional<Result> result;
  detail::checkpoint(
      [function = std::move(function), location = input.location](const std::vector<Tensor>& inputs, void* to) mutable {
        Result made = detail::call_with(function, inputs, location, Numbers());
        if (to) *static_cast<std::optional<Result>*>(to) = std::move(made);
      },
      {input.get(), more...}, &result, input.location);
  return *std::move(result);
}

/// The modules in `segments` parts of equal numbers, the last of which has the rest; each but the last is a checkpoint.
/// Throws Error for fewer than one segment, or more than modules.
INGOT_API Tensor checkpoint_sequential(const nn::Sequential& modules, int64_t segments, const TensorArg& input);

}  // namespace autograd
}  // namespace ingot
