#include "eager/autograd/deferred.h"

#include <bit>

#include "base/inline_vector.h"
#include "base/module_path.h"
#include "eager/call/call.h"

namespace ingot::autograd {
namespace {

eager::Operand scalar_of(const ir::Operand& o, std::span<const uint64_t> scalars) {
  auto of = [&](auto integer) {
    return o.category == Category::boolean ? Scalar(integer != 0) : Scalar(static_cast<int64_t>(integer));
  };
  if (o.kind == ir::Operand::Kind::size) return Scalar(o.dim.code);
  if (o.kind == ir::Operand::Kind::scalar) {
    const uint64_t bits = scalars[o.id];
    return o.category == Category::floating ? Scalar(std::bit_cast<double>(bits)) : of(bits);
  }
  return o.category == Category::floating ? Scalar(o.number) : of(o.integer);
}

Tensor made_by(const ir::Node& node, std::span<const Tensor> values, std::span<const uint64_t> scalars) {
  const ir::OpInfo& row = ir::info(node.op);
  if (row.has(ir::kReshapes)) {  // wherever its elements lie
    Ints sizes;
    for (Dim d : node.attrs[0].list) sizes.push_back(d.code);
    return values[node.operands[0].id].reshape(sizes, node.location);
  }
  InlineVector<eager::Operand, 6> operands;
  operands.reserve(node.operands.size());
  for (size_t i = 0; i < node.operands.size(); ++i) {
    const ir::Operand& o = node.operands[i];
    if (o.is_value()) {
      operands.emplace_back(values[o.id]);
    } else if (!o.present()) {
      operands.emplace_back();
    } else {
      operands.emplace_back(scalar_of(o, scalars));
      eager::note_special(node.op, static_cast<int>(i), &operands.end()[-1]);
    }
  }
  Tensor made;
  eager::dispatch({node.op, false, operands, node.attrs, node.location}, {&made, 1});
  return made;
}

}  // namespace

Tensor Deferred::compute() const {
  const eager::InterceptorScope checkpoint(eager::Stage::checkpoint, nullptr);
  const eager::InterceptorScope autocast(eager::Stage::autocast, nullptr);
  const eager::InterceptorScope batch(eager::Stage::batch, nullptr);
  const eager::InterceptorScope tape(eager::Stage::autograd, nullptr);
  std::vector<Tensor> values = from_;
  for (const ir::Node& node : *ops_) {
    const ModulePathScope path(node.module);
    values.push_back(made_by(node, values, scalars_));
  }
  return values.back();
}

const Tensor* DeferredTensor::intact(Tensor& room) {
  room = placed(deferred_->compute());
  return &room;
}

}  // namespace ingot::autograd
