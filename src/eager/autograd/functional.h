// Derivatives of functions as tensors, under PyTorch's names (torch.autograd.functional).
#pragma once
#include <functional>
#include <utility>
#include <vector>

#include "eager/autograd/autograd.h"

namespace ingot::autograd::functional {

using Tensors = std::vector<Tensor>;
using TensorFunction = std::function<Tensor(const Tensor&)>;
/// Of several tensors that gives one.
using TensorOfTensors = std::function<Tensor(const Tensors&)>;
using TensorsFunction = std::function<Tensors(const Tensors&)>;

// All take inputs of floating-point dtypes, whether they require grad or not, and leave their gradients as they are.
// `create_graph`: what they give has a tape itself, to the inputs that require grad; else it has none. `strict`: an
// output that does not depend on an input is an Error; else its derivative is zero. Inputs and results of the function
// that are lists give lists. They throw Error for inputs and results of other dtypes, and for vectors (`v`) of other
// sizes or dtypes than what they are multiplied with.

/// The derivatives of each element of the output by each of the input, [output's dims..., input's dims...]; of lists,
/// [output][input]. One backward pass an element of the output.
INGOT_API Tensor jacobian(const TensorFunction& function, const TensorArg& input, bool create_graph = false,
                          bool strict = false);
INGOT_API std::vector<Tensors> jacobian(const TensorsFunction& function, const Tensors& inputs,
                                        bool create_graph = false, bool strict = false, Location location = Location());
/// The second derivatives of a function that gives one element, [input's dims..., input's dims...]; of a list,
/// [input][input].
INGOT_API Tensor hessian(const TensorFunction& function, const TensorArg& input, bool create_graph = false,
                         bool strict = false);
INGOT_API std::vector<Tensors> hessian(const TensorOfTensors& function, const Tensors& inputs,
                                       bool create_graph = false, bool strict = false, Location location = Location());
/// What the function gives, and `v` times its jacobian: of the inputs' sizes. `v` is like the output; it may be left
/// out where that has one element.
INGOT_API std::pair<Tensor, Tensor> vjp(const TensorFunction& function, const TensorArg& input, const TensorArg& v = {},
                                        bool create_graph = false, bool strict = false);
INGOT_API std::pair<Tensors, Tensors> vjp(const TensorsFunction& function, const Tensors& inputs, const Tensors& v = {},
                                          bool create_graph = false, bool strict = false,
                                          Location location = Location());
/// What the function gives, and its jacobian times `v`: of the outputs' sizes. `v` is like the input; it may be left
/// out where that has one element. Two backward passes.
INGOT_API std::pair<Tensor, Tensor> jvp(const TensorFunction& function, const TensorArg& input, const TensorArg& v = {},
                                        bool create_graph = false, bool strict = false);
INGOT_API std::pair<Tensors, Tensors> jvp(const TensorsFunction& function, const Tensors& inputs, const Tensors& v = {},
                                          bool create_graph = false, bool strict = false,
                                          Location location = Location());
/// What the function gives, one element, and `v` times its hessian: of the inputs' sizes, as `v` is, which may be left
/// out where the input has one element.
INGOT_API std::pair<Tensor, Tensor> vhp(const TensorFunction& function, const TensorArg& input, const TensorArg& v = {},
                                        bool create_graph = false, bool strict = false);
INGOT_API std::pair<Tensor, Tensors> vhp(const TensorOfTensors& function, const Tensors& inputs, const Tensors& v = {},
                                         bool create_graph = false, bool strict = false,
                                         Location location = Location());
/// The same, as the hessian times `v`: equal to vhp where second derivatives are continuous, and slower.
INGOT_API std::pair<Tensor, Tensor> hvp(const TensorFunction& function, const TensorArg& input, const TensorArg& v = {},
                                        bool create_graph = false, bool strict = false);
INGOT_API std::pair<Tensor, Tensors> hvp(const TensorOfTensors& function, const Tensors& inputs, const Tensors& v = {},
                                         bool create_graph = false, bool strict = false,
                                         Location location = Location());

}  // namespace ingot::autograd::functional
