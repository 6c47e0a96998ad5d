#include "eager/nn/rnn_utils.h"

#include <string>

#include "base/function_scope.h"
#include "eager/nn/windows.h"
#include "eager/ops/checks.h"

namespace ingot::nn::utils::rnn {

Tensor pad_sequence(const TensorList& sequences, bool batch_first, double padding_value, Word padding_side) {
  constexpr const char* kOp = "pad_sequence";
  const FunctionScope scope(kOp, sequences.location);
  const auto refuse = [&](const char* argument, const std::string& got, const char* expected) {
    eager::fail(kOp, argument, got, expected, sequences.location);
  };
  const std::string_view side = padding_side;
  if (side != "left" && side != "right")
    refuse("padding_side", "\"" + std::string(side) + "\"", "one of \"left\", \"right\"");
  if (!sequences.size) refuse("sequences", "none", "one tensor or more");
  Size longest;
  for (size_t i = 0; i < sequences.size; ++i) {
    const Tensor& t = eager::present(kOp, "sequences", {sequences.data[i], sequences.location});
    const Tensor& first = sequences.data[0];
    bool alike = t.dim() > 0 && t.dim() == first.dim() && t.dtype() == first.dtype();
    for (int64_t d = 1; alike && d < t.dim(); ++d) alike = t.size(d) == first.size(d);
    if (!alike)
      refuse("sequences", eager::dtype_text(t) + " and " + eager::shape_text(t) + " as number " + std::to_string(i),
             "one dim or more, and the dtype and later dims of the first");
    if (t.size(0) > longest) longest = t.size(0);
  }
  std::vector<Tensor> padded;
  for (size_t i = 0; i < sequences.size; ++i) {
    const Tensor& t = sequences.data[i];
    const Size rest = longest - t.size(0);
    IntList pad{};
    for (int64_t d = 1; d < t.dim(); ++d) pad.add(0), pad.add(0);
    pad.add(side == "left" ? rest : Size());
    pad.add(side == "left" ? Size() : rest);
    padded.push_back(functional::pad({t, sequences.location}, pad, "constant", padding_value));
  }
  return stack({padded, sequences.location}, batch_first ? 0 : 1);
}

}  // namespace ingot::nn::utils::rnn
