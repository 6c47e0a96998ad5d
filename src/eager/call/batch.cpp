#include "eager/call/batch.h"

#include <algorithm>
#include <atomic>

#include "eager/autograd/node.h"
#include "eager/call/call.h"
#include "eager/call/infer.h"
#include "eager/call/script.h"
#include "eager/ops/factories.h"
#include "eager/ops/functions.h"
#include "ir/builder.h"
#include "ir/rules/rules.h"

namespace ingot::eager {
namespace {

/// In TensorImpl::trace; below it stands the number of the batch.
constexpr uint64_t kSlice = uint64_t{1} << 63;

uint64_t next_id() {
  static std::atomic<uint64_t> next{kSlice};
  return next.fetch_add(1, std::memory_order_relaxed);
}

std::vector<int64_t> with_batch(int64_t batch, IntArrayRef sizes) {
  std::vector<int64_t> all{batch};
  all.insert(all.end(), sizes.begin(), sizes.end());
  return all;
}

/// Expanded along a new dim 0.
Tensor repeated(const Tensor& tensor, int64_t batch) {
  return tensor.unsqueeze(0, Location::none()).expand(with_batch(batch, tensor.impl()->sizes), Location::none());
}

/// Seed and offset of a random call are its last two operands.
void skip_draws(std::span<Operand> operands, int64_t draws) {
  Operand& offset = operands.back();
  offset.integer += draws;
  offset.number = static_cast<double>(offset.integer);
}

}  // namespace

bool is_slice(const detail::TensorImpl& tensor) { return tensor.trace >= kSlice; }

void fail_slice(std::string_view op, Location location) {
  fail(op, "self", "a tensor inside of a vmap, which has a value for each slice",
       "ops of tensors there, or to be called outside with what vmap gives", location);
}

Batch::Batch(int64_t size, Randomness randomness)
    : Interceptor(Stage::batch), id_(next_id()), size_(size), randomness_(randomness), outer_(current()) {
  // What it calls follows from sizes in more ways than a script keeps.
  if (ScriptWriter* writer = ScriptWriter::current()) writer->only_here("it calls vmap");
  set_interceptor(Stage::batch, this);
}
Batch::~Batch() { set_interceptor(Stage::batch, outer_); }

bool Batch::holds(const Tensor& tensor) const { return tensor.defined() && tensor.impl()->trace == id_; }

Tensor Batch::slice_of(const Tensor& whole) const {
  const detail::TensorImpl& w = *whole.impl();
  detail::TensorImpl* impl = detail::new_impl();
  Tensor slice = Tensor::first(impl);
  impl->dtype = w.dtype;
  impl->sizes.assign(w.sizes.begin() + 1, w.sizes.end());
  impl->strides.assign(w.strides.begin() + 1, w.strides.end());
  impl->offset = w.offset;
  impl->trace = id_;
  autograd::meta_of(slice).whole = whole;
  return slice;
}

Tensor Batch::whole_of(const Tensor& tensor) const {
  if (holds(tensor)) return tensor.impl()->autograd->whole;
  const InterceptorScope around(Stage::batch, outer_);
  return repeated(tensor, size_);
}

int64_t Batch::draws(const OpCall& call) {
  int64_t count = 1;
  for (const Batch* b = current(); b; b = b->outer_) {
    if (b->randomness_ == Randomness::error)
      fail(ir::info(call.op).name, "", "a random op inside of a vmap", "its randomness to be \"different\" or \"same\"",
           call.location);
    if (b->randomness_ == Randomness::different) count *= b->size_;
  }
  return count;
}

Tensor sliced(const Tensor& tensor) {
  const Batch* batch = Batch::current();
  if (!batch) return tensor;
  const Tensor whole = batch->whole_of(tensor);
  const InterceptorScope around(Stage::batch, batch->outer());
  return batch->slice_of(sliced(whole));
}

Tensor sliced_like(const Tensor& made, const Tensor& like) {
  if (!is_slice(*like.impl())) return made;
  const Batch* batch = Batch::current();
  INGOT_CHECK(batch, "a slice of a batch that ended");
  const InterceptorScope around(Stage::batch, batch->outer());
  if (!batch->holds(like)) return sliced_like(made, like);
  // Of the whole's own outer slices, too.
  const Tensor& whole = like.impl()->autograd->whole;
  return batch->slice_of(sliced_like(repeated(made, whole.impl()->sizes[0]).clone(Location::none()), whole));
}

void Batch::call(const OpCall& call, std::span<Tensor> outputs) {
  const ir::OpInfo& op = ir::info(call.op);
  const bool random = op.has(ir::kRandom) && !call.derivative;
  const bool held = std::any_of(call.operands.begin(), call.operands.end(),
                                [&](const Operand& o) { return o.is_tensor() && holds(*o.tensor); });
  if (!held && (!random || randomness_ == Randomness::same))
    return outer_ ? outer_->call(call, outputs) : proceed(call, outputs);
  // The call of the slices had its dtypes from a region of autocast.
  const InterceptorScope around(Stage::batch, outer_), dtypes(Stage::autocast, nullptr);
  if (call.inplace && !holds(*call.operands[0].tensor))
    fail(ir::name_of_call(call.op, call.derivative, true), "self",
         "a tensor that is the same for all slices of a vmap, for a result that each has its own of",
         "the op that does not write in place, or to write to a slice", call.location);
  // What was noted for a script is of no call that it will see.
  if (ScriptWriter* writer = ScriptWriter::current()) writer->refused();
  // Errors of the user's are those of a slice.
  std::vector<OutputMeta> metas(outputs.size());
  infer_outputs(call, metas);
  const bool done = random ? call_random(call, metas, outputs) : call_wholes(call, metas, outputs);
  if (!done) {
    if (call_parts(call, outputs)) return;
    call_slices(call, metas, outputs);
  }
  if (call.inplace)
    outputs[0] = *call.operands[0].tensor;
  else
    for (Tensor& t : outputs) t = slice_of(t);
}

std::vector<Tensor> Batch::call(const OpaqueCall& call) {
  fail(call.name, "", "a call inside of a vmap", "a function of the library's ops, which know of slices",
       call.location);
}

void Batch::call_slices(const OpCall& call, std::span<const OutputMeta> metas, std::span<Tensor> outputs,
                        int64_t draws) const {
  if (!call.inplace && metas[0].alias)
    fail(ir::info(call.op).name, "self", "a tensor inside of a vmap, whose slices lie in one memory",
         "another op to look at it", call.location);
  std::vector<Operand> operands(call.operands.begin(), call.operands.end());
  std::vector<Tensor> slices(operands.size());
  std::vector<std::vector<Tensor>> results(outputs.size());
  std::vector<Tensor> made(outputs.size());
  for (int64_t b = 0; b < size_; ++b) {
    for (size_t i = 0; i < operands.size(); ++i) {
      if (!call.operands[i].is_tensor() || !holds(*call.operands[i].tensor)) continue;
      slices[i] = call.operands[i].tensor->impl()->autograd->whole.select(0, b, call.location);
      operands[i].tensor = &slices[i];
    }
    OpCall one = call;
    one.operands = operands;
    dispatch(one, made);
    for (size_t i = 0; i < outputs.size(); ++i) results[i].push_back(std::move(made[i]));
    if (draws) skip_draws(operands, draws);
  }
  if (call.inplace) return;
  for (size_t i = 0; i < outputs.size(); ++i)
    outputs[i] = size_ ? stack(TensorList(results[i], call.location))
                       : zeros(with_batch(0, metas[i].sizes), metas[i].dtype, call.location);
}

bool Batch::call_random(const OpCall& call, std::span<const OutputMeta> metas, std::span<Tensor> outputs) const {
  if (randomness_ == Randomness::same) {
    // A frozen call would draw for each of them.
    if (interceptor(Stage::observe)) eager::flush("a vmap whose slices have the same random numbers", call.location);
    call_slices(call, metas, outputs);
    return true;
  }
  const int64_t draws = draws_of(call, metas[0].sizes) * Batch::draws(call);  // of the batches around, for each slice
  const ir::OpInfo& op = ir::info(call.op);
  std::vector<Operand> operands(call.operands.begin(), call.operands.end());
  std::vector<ir::Attr> attrs(call.attrs.begin(), call.attrs.end());
  OpCall whole = call;
  whole.operands = operands;
  whole.attrs = attrs;
  // Element by element, whose numbers go on from slice to slice: one call.
  if (op.shapes == &ir::shapes::from_size) {
    Dims& size = attrs[static_cast<size_t>(ir::attribute_position(op, "size"))].list;
    size.insert(0, Dim(size_));
    dispatch(whole, outputs);
  } else if (op.shapes == &ir::shapes::self) {
    const Tensor self = whole_of(*call.operands[0].tensor);
    operands[0].tensor = &self;
    dispatch(whole, outputs);
  } else {
    call_slices(call, metas, outputs, draws);
  }
  return true;
}

bool Batch::call_parts(const OpCall& call, std::span<Tensor> outputs) {
  const ir::OpInfo& op = ir::info(call.op);
  if (op.kind != ir::OpKind::composite || call.derivative || call.inplace || op.has(ir::kRandom)) return false;
  // One that has a derivative of its own is not derived as its parts are, at kinks and where these are not finite.
  if (op.gradient == ir::Gradient::rule && interceptor(Stage::autograd))
    for (const Operand& o : call.operands)
      if (o.is_tensor() && o.tensor->requires_grad()) return false;

  ir::Graph graph;
  std::vector<ir::Operand> given;
  std::vector<Tensor> values;
  std::vector<Operand> scalars;
  for (const Operand& o : call.operands) {
    if (o.is_tensor()) {
      const detail::TensorImpl& t = *o.tensor->impl();
      given.push_back(ir::Operand::value(graph.add_input(t.dtype, Dims(t.sizes.begin(), t.sizes.end()))));
      values.push_back(*o.tensor);
    } else if (o.kind == Operand::Kind::scalar) {
      given.push_back(scalar_operand(graph, o));
      if (!o.special) scalars.push_back(o);
    } else {
      given.push_back(ir::Operand::none());
    }
  }
  const std::vector<ir::Operand> results =
      ir::GraphBuilder(graph).call(call.op, std::move(given), {call.attrs.begin(), call.attrs.end()});
  values.resize(graph.values.size());
  const InterceptorScope inside(Stage::batch, this);
  for (const ir::Node& node : graph.nodes) {
    std::vector<Operand> operands;
    for (const ir::Operand& o : node.operands) {
      if (o.is_value())
        operands.emplace_back(values[o.id]);
      else if (o.kind == ir::Operand::Kind::scalar)
        operands.push_back(scalars[o.id]);
      else if (o.kind == ir::Operand::Kind::size)
        operands.emplace_back(Scalar(o.dim.code));
      else if (!o.present())
        operands.emplace_back();
      else if (o.category == Category::floating)
        operands.emplace_back(Scalar(o.number));
      else
        operands.emplace_back(o.category == Category::boolean ? Scalar(o.integer != 0) : Scalar(o.integer));
      if (!ir::info(node.op).list_first) note_special(node.op, static_cast<int>(operands.size()) - 1, &operands.back());
    }
    // Of a graph, a view is a copy where strides do not permit it.
    if (ir::info(node.op).has(ir::kReshapes)) {
      Tensor& self = values[node.operands[0].id];
      self = self.contiguous(call.location);
    }
    std::vector<Tensor> made(node.outputs.size());
    dispatch({node.op, false, operands, node.attrs, call.location}, made);
    for (size_t i = 0; i < made.size(); ++i) values[node.outputs[i]] = std::move(made[i]);
  }
  for (size_t i = 0; i < outputs.size(); ++i) outputs[i] = values[results[i].id];
  // Of operands that are the same for all slices, perhaps.
  for (Tensor& t : outputs)
    if (!holds(t)) t = slice_of(whole_of(t));
  return true;
}

}  // namespace ingot::eager
