#include "eager/autograd/op_node.h"

#include <algorithm>
#include <mutex>
#include <unordered_map>

#include "base/first_use.h"
#include "base/hash.h"
#include "base/module_path.h"
#include "base/mutex.h"
#include "base/small_vector.h"
#include "base/thread_object.h"
#include "eager/call/call.h"
#include "ir/derivative.h"

namespace ingot::autograd {
namespace {

using eager::OpCall;
using eager::Operand;

bool is_tensor(const Operand& o) { return o.kind == Operand::Kind::tensor; }

/// What the tape keeps of one kind of call.
struct Plan {
  const ir::Derivative* derivative;  // null: all gradients are cotangents as they are
  std::vector<bool> reads;           // of the derived call's operands
  std::vector<int> copies;           // of each wanted operand: the cotangent that is its gradient, or -1
};

/// Above this number of operands all gradients are asked for, so that there are few derivatives.
constexpr size_t kSelective = 16;

/// Sizes below this are told apart by value: those that broadcast, the windows of a convolution.
constexpr int64_t kNumberedFrom = 16;

/// What tells calls apart that keep different things: rules look at small sizes, and at which sizes are equal.
void describe(const OpCall& call, const std::vector<bool>& wanted, std::span<const Tensor> results,
              std::vector<int64_t>& words) {
  words.clear();
  words.push_back(static_cast<int64_t>(call.op));
  words.push_back(reinterpret_cast<int64_t>(call.derivative));
  SmallVector<int64_t, 16> large;  // by number, in the order in which they first occur
  auto number = [&](int64_t size) {
    if (size < kNumberedFrom) return size;
    const auto found = std::find(large.begin(), large.end(), size);
    const int64_t place = found - large.begin();
    if (found == large.end()) large.push_back(size);
    return kNumberedFrom + place;
  };
  auto put = [&](const detail::TensorImpl& t) {
    words.push_back(static_cast<int64_t>(t.sizes.size()) << 8 | static_cast<int64_t>(t.dtype));
    for (int64_t size : t.sizes) words.push_back(number(size));
  };
  for (size_t i = 0; i < call.operands.size(); ++i) {
    const Operand& o = call.operands[i];
    words.push_back(static_cast<int64_t>(o.kind) | static_cast<int64_t>(o.category) << 8 |
                    static_cast<int64_t>(o.special) << 16 | static_cast<int64_t>(wanted[i]) << 32);
    if (is_tensor(o)) put(*o.tensor->impl());
  }
  for (const Tensor& t : results) put(*t.impl());
  const ir::OpInfo& op = ir::info(call.op);
  for (size_t i = 0; i < call.attrs.size(); ++i) {
    const ir::Attr& a = call.attrs[i];
    words.push_back(static_cast<int64_t>(a.kind) << 32 | static_cast<int64_t>(a.list.size()));
    words.push_back(a.integer);
    for (Dim d : a.list) words.push_back(ir::holds_sizes(op, i) ? number(d.code) : d.code);
  }
}

Plan make_plan(const OpCall& call, const std::vector<bool>& wanted, std::span<const Tensor> results) {
  std::vector<Dims> shapes;
  shapes.reserve(call.operands.size() + 2 * results.size());
  std::vector<ir::OperandType> types;
  auto put = [&](const Tensor& t) {
    shapes.emplace_back(t.impl()->sizes.begin(), t.impl()->sizes.end());
    ir::OperandType type;
    type.kind = ir::OperandType::Kind::tensor;
    type.dtype = t.impl()->dtype;
    type.shape = &shapes.back();
    types.push_back(type);
  };
  for (const Operand& o : call.operands) {
    if (is_tensor(o)) {
      put(*o.tensor);
    } else {
      ir::OperandType& type = types.emplace_back();
      if (o.kind == Operand::Kind::none) continue;
      type.kind = ir::OperandType::Kind::scalar;
      type.category = o.category;
    }
  }
  for (int twice = 0; twice < 2; ++twice)
    for (const Tensor& t : results) {
      if (twice && !is_floating(t.impl()->dtype))
        types.emplace_back();  // no cotangent
      else
        put(t);
    }

  const size_t first_cotangent = call.operands.size() + results.size();
  Plan plan;
  ir::DerivativeReads all =
      ir::derivative_reads(call.op, *ir::derivative_of(call.derivative, wanted), types, call.attrs);
  std::vector<bool> computed = wanted;
  size_t next = 0;
  bool any = false;
  for (size_t i = 0; i < wanted.size(); ++i) {
    if (!wanted[i]) continue;
    const int copied = all.copies[next++];
    const bool passed_on = copied >= static_cast<int>(first_cotangent);
    plan.copies.push_back(passed_on ? copied - static_cast<int>(first_cotangent) : -1);
    if (passed_on) computed[i] = false;
    any |= computed[i];
  }
  plan.derivative = any ? ir::derivative_of(call.derivative, computed) : nullptr;
  plan.reads.resize(types.size());
  if (any)
    plan.reads = computed == wanted ? std::move(all.operands)
                                    : ir::derivative_reads(call.op, *plan.derivative, types, call.attrs).operands;
  return plan;
}

/// The plans of the process, by description. Past the bound all go: they are made again as they are asked for.
class Plans {
 public:
  static std::shared_ptr<const Plan> of(const OpCall& call, const std::vector<bool>& wanted,
                                        std::span<const Tensor> results) {
    struct Recent {
      std::vector<int64_t> words;
      std::shared_ptr<const Plan> plan;
    };
    struct Mine {
      std::vector<int64_t> words;
      std::array<Recent, 256> recent;
    };
    constinit thread_local ThreadObject<Mine> mine;
    describe(call, wanted, results, mine->words);
    const uint64_t hash = hash_ints(mine->words);
    Recent& recent = mine->recent[hash % mine->recent.size()];
    if (recent.words == mine->words) return recent.plan;
    static constinit FirstUse<Plans> plans;
    std::shared_ptr<const Plan> plan = plans->find(mine->words, hash);
    if (!plan) plan = plans->insert(mine->words, hash, std::make_shared<Plan>(make_plan(call, wanted, results)));
    recent = {mine->words, plan};
    return plan;
  }

 private:
  static constexpr size_t kMost = 16384;
  using Bucket = std::vector<std::pair<std::vector<int64_t>, std::shared_ptr<const Plan>>>;

  std::shared_ptr<const Plan> find(const std::vector<int64_t>& words, uint64_t hash) {
    std::lock_guard lock(mutex_);
    for (const auto& [known, plan] : plans_[hash])
      if (known == words) return plan;
    return nullptr;
  }
  std::shared_ptr<const Plan> insert(const std::vector<int64_t>& words, uint64_t hash,
                                     std::shared_ptr<const Plan> plan) {
    std::lock_guard lock(mutex_);
    if (plans_.size() >= kMost) plans_.clear();
    plans_[hash].emplace_back(words, plan);
    return plan;
  }

  Mutex mutex_;
  std::unordered_map<uint64_t, Bucket> plans_;
};

/// The views from the base to a view, each of the one before it.
std::vector<Tensor> views_to(const Tensor& view) {
  std::vector<Tensor> views;
  for (Tensor t = view; t.impl()->autograd && t.impl()->autograd->parent.defined(); t = t.impl()->autograd->parent)
    views.insert(views.begin(), t);
  return views;
}

Tensor apply_view(OpId op, std::span<const ir::Attr> attrs, const Tensor& base) {
  const Operand operand(base);
  Tensor view;
  eager::dispatch({op, false, {&operand, 1}, attrs, Location::none()}, {&view, 1});
  return view;
}

/// The gradient of a tensor that was written through a view: what was written over had no further effect.
class ViewWriteNode final : public Node {
 public:
  ViewWriteNode(const Tensor& view, NodePtr inner) : inner_(std::move(inner)) {
    for (const Tensor& step : views_to(view))
      steps_.push_back({step.impl()->autograd->view, step.impl()->autograd->attrs});
    const Tensor& base = base_of(view);
    outputs.push_back({base.impl()->dtype, base.impl()->sizes});
    location = inner_->location;
    module = inner_->module;
    edges.push_back(edge_of(base));
    edges.insert(edges.end(), inner_->edges.begin() + 1, inner_->edges.end());
  }
  std::string name() const override { return inner_->name() + " (of a view)"; }
  std::vector<Tensor> apply(const std::vector<Tensor>& cotangents, bool keep) override {
    Tensor whole = cotangents[0].clone(location), part = whole;
    for (const auto& [op, attrs] : steps_) part = apply_view(op, attrs, part);
    std::vector<Tensor> gradients = inner_->apply({part.clone(location)}, keep);
    if (gradients[0].defined())
      part.copy_(gradients[0], location);
    else
      part.zero_(location);
    gradients[0] = std::move(whole);
    return gradients;
  }
  void release() override { inner_->release(); }
  void part_from(const Tensor& base) override { inner_->part_from(base); }

 private:
  NodePtr inner_;
  std::vector<std::pair<OpId, std::vector<ir::Attr>>> steps_;
};

}  // namespace

bool is_of_elements(const OpCall& call, const Tensor& tensor) {
  const detail::TensorImpl& t = *tensor.impl();
  const Dims &sizes = call.attrs[0].list, &strides = call.attrs[1].list;
  int64_t last = call.attrs[2].list[0].code, elements = 1;
  for (size_t d = 0; d < sizes.size(); ++d) {
    if (sizes[d].code == 0) return true;
    last += (sizes[d].code - 1) * strides[d].code;
  }
  for (size_t d = t.sizes.size(); d-- > 0; elements *= t.sizes[d])
    if (t.sizes[d] != 1 && t.strides[d] != elements) return false;
  return t.offset == 0 && last < elements;
}

SavedTensor::SavedTensor(const Tensor& tensor) : tensor_(tensor), version_(eager::writes_to(*tensor.impl())) {
  std::atomic<bool>& saved = base_of(tensor).impl()->saved;
  if (!saved.load(std::memory_order_relaxed)) saved.store(true, std::memory_order_relaxed);
}

void SavedTensor::part_from(const Tensor& base) {
  if (tensor_.defined() && base_of(tensor_).is_same(base)) tensor_ = tensor_.detach();
}

const Tensor& SavedTensor::get(const Node& node, const std::string& what) const {
  if (eager::writes_to(*tensor_.impl()) == version_) return tensor_;
  throw Error("backward: " + node.name() + ": " + what +
              " was modified by an in-place operation after it was saved (version " +
              std::to_string(eager::writes_to(*tensor_.impl())) + ", expected " + std::to_string(version_) +
              "); clone() it before it is written, or do not write in place" + place_of(node.location));
}

OpNode::OpNode(const OpCall& call, bool also_first) : op_(call.op), of_(call.derivative) {
  if (op_ == OpId::as_strided && !of_ && !is_of_elements(call, *call.operands[0].tensor))
    eager::fail("as_strided", "self", "a tensor that requires grad and has not all of these elements, in this order",
                "contiguous(): a gradient is one of elements, not of memory", call.location);
  location = caller_line(call.location);
  module = module_path();
  wanted_.resize(call.operands.size());
  operands_.reserve(call.operands.size());
  bool all = call.operands.size() > kSelective;
  for (size_t i = 0; i < call.operands.size(); ++i) {
    const Operand& o = call.operands[i];
    Argument& argument = operands_.emplace_back();
    if (!is_tensor(o)) {
      argument.scalar = o;
      continue;
    }
    argument.tensor = SavedTensor(*o.tensor);
    wanted_[i] = is_floating(o.tensor->impl()->dtype) && (all || is_tracked(*o.tensor) || (also_first && i == 0));
    if (wanted_[i]) edges.push_back(edge_of(*o.tensor));
  }
  attrs_.assign(call.attrs.begin(), call.attrs.end());
}

void OpNode::copy_overwritten(const OpCall& call, const Tensor& base) {
  const Tensor& self = *call.operands[0].tensor;
  const std::shared_ptr<const Plan> plan = Plans::of(call, wanted_, {&self, 1});
  if (!plan->derivative) return;
  for (size_t i = 0; i < operands_.size(); ++i)
    if (is_tensor(call.operands[i]) && plan->reads[i])
      if (const Tensor& t = *call.operands[i].tensor; t.is_same(self) || t.is_same(base))
        operands_[i].tensor = SavedTensor(t.clone(location));
}

void OpNode::save(const OpCall& call, std::span<const Tensor> results) {
  const std::shared_ptr<const Plan> plan = Plans::of(call, wanted_, results);
  derivative_ = plan->derivative;
  copies_ = plan->copies;
  for (const Tensor& t : results) outputs.push_back({t.impl()->dtype, t.impl()->sizes});
  if (!derivative_) return operands_.clear();
  const size_t count = operands_.size();
  attrs_.resize(attrs_.size() + count);
  for (size_t i = 0; i < count; ++i) {
    Argument& argument = operands_[i];
    if (!argument.tensor.defined() || plan->reads[i]) continue;
    const detail::TensorImpl& t = *call.operands[i].tensor->impl();
    attrs_[attrs_.size() - count + i] = ir::Attr::shape_of(t.dtype, Dims(t.sizes.begin(), t.sizes.end()));
    argument.tensor = {};
  }
  // A result that is kept is another handle: the tensor itself holds this node.
  results_.resize(results.size());
  for (size_t i = 0; i < results.size(); ++i)
    if (plan->reads[count + i]) results_[i] = SavedTensor(results[i].detach(location));
}

std::string OpNode::name() const {
  std::string words;
  bool upper = true;
  for (char c : ir::info(op_).name) {
    if (c == '_') {
      upper = true;
      continue;
    }
    words += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = false;
  }
  for (const ir::Derivative* d = of_; d; d = d->of) words += "Backward";
  return words + "Backward";
}

void OpNode::release() {
  for (Argument& argument : operands_)
    if (argument.tensor.defined()) released_ = true, argument.tensor = {};
  for (SavedTensor& result : results_)
    if (result.defined()) released_ = true, result = {};
}

void OpNode::part_from(const Tensor& base) {
  for (Argument& argument : operands_) argument.tensor.part_from(base);
}

std::vector<Tensor> OpNode::apply(const std::vector<Tensor>& cotangents, bool keep) {
  if (released_)
    throw Error(
        "backward: " + name() +
        ": its saved tensors are gone: the tape was used by an earlier backward(); expected retain_graph = true "
        "there" +
        place_of(location));
  std::vector<Tensor> made;
  if (derivative_) {
    const ir::OpInfo& row = ir::info(op_);
    std::vector<Operand> operands;
    operands.reserve(operands_.size() + 2 * cotangents.size());
    for (size_t i = 0; i < operands_.size(); ++i) {
      const Argument& argument = operands_[i];
      if (!argument.tensor.defined()) {
        operands.push_back(argument.scalar);
        continue;
      }
      const std::string what = i < static_cast<size_t>(row.operand_count) && !row.list_first && !of_
                                   ? "operand `" + row.operand(static_cast<int>(i)).name + "`"
                                   : "an operand";
      operands.emplace_back(argument.tensor.get(*this, what));
    }
    // Where the derivative is derived in turn, a kept result leads back to this node.
    std::vector<Tensor> results(results_.size());
    for (size_t i = 0; i < results_.size(); ++i) {
      if (!results_[i].defined()) {
        operands.emplace_back();
        continue;
      }
      results[i] = results_[i].get(*this, "its result");
      if (eager::interceptor(eager::Stage::autograd)) {
        results[i] = results[i].detach(location);
        results[i].impl()->requires_grad = true;
        Meta& meta = meta_of(results[i]);
        meta.node = NodePtr(this);
        meta.output = static_cast<uint32_t>(i);
      }
      operands.emplace_back(results[i]);
    }
    for (const Tensor& t : cotangents) operands.push_back(t.defined() ? Operand(t) : Operand());
    const ModulePathScope path(module);
    made.resize(static_cast<size_t>(derivative_->results()));
    OpCall call{op_, false, operands, attrs_, location};
    call.derivative = derivative_;
    eager::dispatch(call, made);
  }
  std::vector<Tensor> gradients;
  size_t next = 0;
  for (int copied : copies_)
    gradients.push_back(copied >= 0 ? cotangents[static_cast<size_t>(copied)] : std::move(made[next++]));
  if (!keep) release();
  return gradients;
}

NodePtr view_node(const Tensor& view) {
  const Meta& meta = *view.impl()->autograd;
  const Operand operand(meta.parent);
  const OpCall call{meta.view, false, {&operand, 1}, meta.attrs, Location::none()};
  OpNode* node = new OpNode(call);
  NodePtr made(node);
  node->save(call, {&view, 1});
  return made;
}

NodePtr view_write_node(const Tensor& view, NodePtr inner) {
  return NodePtr(new ViewWriteNode(view, std::move(inner)));
}

}  // namespace ingot::autograd
