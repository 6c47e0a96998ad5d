#include "eager/autograd/op_node.h"

#include <algorithm>
#include <array>
#include <bit>
#include <mutex>
#include <unordered_map>

#include "base/first_use.h"
#include "base/free_list.h"
#include "base/hash.h"
#include "base/module_path.h"
#include "base/mutex.h"
#include "base/small_vector.h"
#include "base/thread_object.h"
#include "eager/autograd/tape.h"
#include "eager/call/call.h"
#include "ir/derivative.h"
#include "ir/traits.h"

namespace ingot::autograd {

/// What the tape keeps of one kind of call.
struct Plan {
  OpId op;
  const ir::Derivative* of;          // of the call itself
  const ir::Derivative* derivative;  // of the derived call, without gradients that are cotangents as they are; or null
  std::vector<bool> reads;           // of the derived call's operands
  std::vector<bool> wanted;          // of each operand, whether its gradient goes on: one edge each
  std::vector<int> copies;           // of each wanted operand: the cotangent that is its gradient, or -1
  std::vector<ir::Attr> attrs;       // of the call that it was made for; another one may have other sizes
};

namespace {

using eager::OpCall;
using eager::Operand;

/// Of each operand, whether its gradient goes on; one edge each.
using Wanted = SmallVector<bool, 16>;

/// Above this number of operands all gradients are asked for, so that there are few derivatives.
constexpr size_t kSelective = 16;

/// Sizes below this are told apart by value: those that broadcast, the windows of a convolution.
constexpr int64_t kNumberedFrom = 16;

/// Small sizes as they are; larger ones by number, in the order in which they first occur.
class SizeNumbers {
 public:
  int64_t operator()(int64_t size) {
    if (size < kNumberedFrom) return size;
    for (size_t i = 0; i < count_; ++i)
      if (few_[i] == size) return kNumberedFrom + static_cast<int64_t>(i);
    if (count_ < kFew) return few_[count_] = size, kNumberedFrom + static_cast<int64_t>(count_++);
    return number_among_many(size);
  }

 private:
  static constexpr size_t kFew = 8;
  [[gnu::noinline]] int64_t number_among_many(int64_t size) {
    const auto found = std::find(more_.begin(), more_.end(), size);
    const int64_t place = found - more_.begin();
    if (found == more_.end()) more_.push_back(size);
    return kNumberedFrom + static_cast<int64_t>(kFew) + place;
  }
  int64_t few_[kFew];
  size_t count_ = 0;
  std::vector<int64_t> more_;
};

/// What tells calls apart that keep different things, word by word to `next`, until that is false: rules look at small
/// sizes, and at which sizes are equal. True at the end of all.
template <class Next>
bool describe(const OpCall& call, const Wanted& wanted, std::span<const Tensor> results, Next next) {
  SizeNumbers number;
  auto put = [&](int64_t word, const ingot::detail::TensorImpl& t) __attribute__((always_inline)) {
    if (!next(word | static_cast<int64_t>(t.sizes.size()) << 32 | static_cast<int64_t>(t.dtype) << 40)) return false;
    for (int64_t size : t.sizes)
      if (!next(number(size))) return false;
    return true;
  };
  if (!next(static_cast<int64_t>(call.op)) || !next(reinterpret_cast<int64_t>(call.derivative))) return false;
  for (size_t i = 0; i < call.operands.size(); ++i) {
    const Operand& o = call.operands[i];
    const int64_t word = static_cast<int64_t>(o.kind) | static_cast<int64_t>(o.category) << 8 |
                         static_cast<int64_t>(o.special) << 16 | static_cast<int64_t>(wanted[i]) << 24;
    if (!(o.is_tensor() ? put(word, *o.tensor->impl()) : next(word))) return false;
  }
  for (const Tensor& t : results)
    if (!put(0, *t.impl())) return false;
  for (size_t i = 0; i < call.attrs.size(); ++i) {
    const ir::Attr& a = call.attrs[i];
    if (!next(static_cast<int64_t>(a.kind) << 32 | static_cast<int64_t>(a.list.size())) || !next(a.integer))
      return false;
    const bool sizes = !a.list.empty() && ir::holds_sizes(ir::info(call.op), i);
    for (Dim d : a.list)
      if (!next(sizes ? number(d.code) : d.code)) return false;
  }
  return true;
}

Plan make_plan(const OpCall& call, const Wanted& asked, std::span<const Tensor> results) {
  const std::vector<bool> wanted(asked.begin(), asked.end());
  std::vector<Dims> shapes;
  shapes.reserve(call.operands.size() + 2 * results.size());
  std::vector<ir::OperandType> types;
  std::vector<ir::Operand> special(call.operands.size());
  auto put = [&](const Tensor& t) {
    shapes.emplace_back(t.impl()->sizes.begin(), t.impl()->sizes.end());
    ir::OperandType type;
    type.kind = ir::OperandType::Kind::tensor;
    type.dtype = t.impl()->dtype;
    type.shape = &shapes.back();
    types.push_back(type);
  };
  for (const Operand& o : call.operands) {
    if (o.is_tensor()) {
      put(*o.tensor);
    } else {
      ir::OperandType& type = types.emplace_back();
      if (o.kind == Operand::Kind::none) continue;
      type.kind = ir::OperandType::Kind::scalar;
      type.category = o.category;
      if (o.special) special[types.size() - 1] = eager::special_constant(o);
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
  Plan plan{call.op, call.derivative, nullptr, {}, wanted, {}, {call.attrs.begin(), call.attrs.end()}};
  auto reads_of = [&](const ir::Derivative* derivative) {
    return ir::derivative_reads(call.op, *derivative, types, call.attrs, special);
  };
  ir::DerivativeReads all = reads_of(ir::derivative_of(call.derivative, wanted));
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
  if (any) plan.reads = computed == wanted ? std::move(all.operands) : reads_of(plan.derivative).operands;
  return plan;
}

/// The plans of the process, by description. The first kMost stay for good, so that who holds one need not count;
/// those past them go with the last node that holds them.
class Plans {
 public:
  static std::shared_ptr<const Plan> of(const OpCall& call, const Wanted& wanted, std::span<const Tensor> results) {
    struct Latest {
      std::vector<int64_t> words;
      std::shared_ptr<const Plan> plan;
    };
    constinit thread_local ThreadObject<std::array<Latest, 256>> mine;
    Latest& latest = (*mine)[place_of_call(call) % mine->size()];
    size_t at = 0;
    const size_t count = latest.words.size();
    const int64_t* known = latest.words.data();
    if (describe(call, wanted, results, [&](int64_t word) { return at < count && known[at++] == word; }) && at == count)
      return latest.plan;
    static constinit FirstUse<Plans> plans;
    std::vector<int64_t> words;
    describe(call, wanted, results, [&](int64_t word) { return words.push_back(word), true; });
    const uint64_t hash = hash_ints(words);
    const Plan* plan = plans->find(words, hash);
    latest.plan = plan ? std::shared_ptr<const Plan>(std::shared_ptr<void>(), plan)
                       : plans->insert(words, hash, make_plan(call, wanted, results));
    latest.words = std::move(words);
    return latest.plan;
  }

 private:
  static constexpr size_t kMost = 16384;
  using Bucket = std::vector<std::pair<std::vector<int64_t>, const Plan*>>;

  /// For a table of few: what often differs between calls that come in turns.
  static uint64_t place_of_call(const OpCall& call) {
    uint64_t mixed = static_cast<uint64_t>(call.op) << 32 | static_cast<uint64_t>(call.location.line);
    for (const Operand& o : call.operands)
      if (o.is_tensor() && !o.tensor->impl()->sizes.empty())
        mixed = std::rotl(mixed, 11) + static_cast<uint64_t>(o.tensor->impl()->sizes.back());
    return hash_combine(0, mixed);
  }

  const Plan* find(const std::vector<int64_t>& words, uint64_t hash) {
    std::lock_guard lock(mutex_);
    if (const auto bucket = plans_.find(hash); bucket != plans_.end())
      for (const auto& [known, plan] : bucket->second)
        if (known == words) return plan;
    return nullptr;
  }
  std::shared_ptr<const Plan> insert(const std::vector<int64_t>& words, uint64_t hash, Plan made) {
    std::lock_guard lock(mutex_);
    if (count_ == kMost) return std::make_shared<Plan>(std::move(made));
    ++count_;
    const Plan* plan = new Plan(std::move(made));
    plans_[hash].emplace_back(words, plan);
    return {std::shared_ptr<void>(), plan};
  }

  Mutex mutex_;
  size_t count_ = 0;
  std::unordered_map<uint64_t, Bucket> plans_;
};

constinit thread_local FreeList<sizeof(OpNode), 4096> free_nodes;

ir::Attr shape_of(DType dtype, const Ints& sizes) {
  return ir::Attr::shape_of(dtype, Dims(sizes.begin(), sizes.end()));
}

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
  ViewWriteNode(const Tensor& view, CountedPtr<OpNode> inner) : inner_(std::move(inner)) {
    for (const Tensor& step : views_to(view))
      steps_.push_back({step.impl()->autograd->view, step.impl()->autograd->attrs});
    const Tensor& base = base_of(view);
    outputs.push_back({base.impl()->dtype, base.impl()->sizes});
    location = inner_->location;
    module = inner_->module;
    edges.push_back(edge_of(base));
    for (size_t i = 1; i < inner_->edges.size(); ++i) edges.push_back(inner_->edges[i]);
  }
  std::string name() const override { return inner_->name() + " (of a view)"; }
  std::vector<Tensor> apply(const std::vector<Tensor>& cotangents, bool keep) override {
    Tensor whole = cotangents[0].clone(location), part = view_of(whole);
    // Where the derivative is derived in turn, what was written is a view of this node's result.
    Edge written;
    if (eager::interceptor(eager::Stage::autograd)) {
      const Tensor result = whole.detach(location);
      result.impl()->requires_grad = true;
      set_node(result, NodePtr(this));
      written = edge_of(view_of(result));
    }
    std::vector<Tensor> gradients = inner_->derive({part.clone(location)}, keep, written.node ? &written : nullptr);
    if (gradients[0].defined())
      part.copy_(gradients[0], location);
    else
      part.zero_(location);
    gradients[0] = std::move(whole);
    return gradients;
  }
  void release() override { inner_->release(); }
  void part_from(const Tensor& base) override { inner_->part_from(base); }
  void count_kept(uint64_t trace, std::vector<int32_t>& counts) const override { inner_->count_kept(trace, counts); }
  void defer(uint64_t trace, std::span<const DeferredPtr> by_value) override { inner_->defer(trace, by_value); }

 private:
  Tensor view_of(Tensor base) const {
    for (const auto& [op, attrs] : steps_) base = apply_view(op, attrs, base);
    return base;
  }

  const CountedPtr<OpNode> inner_;
  std::vector<std::pair<OpId, std::vector<ir::Attr>>> steps_;
};

}  // namespace

bool is_of_elements(const OpCall& call, const Tensor& tensor) {
  const ingot::detail::TensorImpl& t = *tensor.impl();
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

SavedTensor::SavedTensor(Tensor tensor) {
  if (RegionRun* run = RegionRun::current(); run && (recomputed_ = run->keep(tensor))) return;
  tensor_ = std::move(tensor);
  version_ = eager::writes_to(*tensor_.impl());
  std::atomic<bool>& saved = base_of(tensor_).impl()->saved;
  if (!saved.load(std::memory_order_relaxed)) saved.store(true, std::memory_order_relaxed);
}

void SavedTensor::part_from(const Tensor& base) {
  if (tensor_.defined() && base_of(tensor_).is_same(base)) tensor_ = tensor_.detach();
}

// Not one that was written to since: who asks for it is to be told.
void SavedTensor::count(uint64_t trace, std::vector<int32_t>& counts) const {
  const Tensor& t = recomputed_ ? recomputed_->tensor : tensor_;
  if (!t.defined() || t.impl()->trace != trace) return;
  const bool is_leaf = t.impl()->requires_grad && !t.impl()->node;
  if (!is_leaf && eager::writes_to(*t.impl()) == (recomputed_ ? recomputed_->version : version_))
    ++counts[t.impl()->value];
}

void SavedTensor::defer(uint64_t trace, std::span<const DeferredPtr> by_value) {
  Tensor& t = recomputed_ ? recomputed_->tensor : tensor_;
  if (!t.defined() || t.impl()->trace != trace || !by_value[t.impl()->value]) return;
  if (!recomputed_) recomputed_ = std::make_unique<DeferredTensor>(by_value[t.impl()->value], edge_of(t));
  t = {};
}

const Tensor* SavedTensor::intact(Tensor& room) const {
  if (recomputed_) return recomputed_->intact(room);
  return eager::writes_to(*tensor_.impl()) == version_ ? &tensor_ : nullptr;
}

const Tensor& SavedTensor::get(const Node& node, const std::string& what, Tensor& room) const {
  if (const Tensor* t = intact(room)) return *t;
  const ingot::detail::TensorImpl& written = *(recomputed_ ? recomputed_->tensor : tensor_).impl();
  throw Error("backward: " + node.name() + ": " + what + " " + type_text(written.dtype, written.sizes) +
              " was modified by an in-place operation after it was saved (version " +
              std::to_string(eager::writes_to(written)) + ", expected " +
              std::to_string(recomputed_ ? recomputed_->version : version_) +
              "); clone() it before it is written, or do not write in place" + lines_of(node));
}

void check_elements(const OpCall& call) {
  if (ir::has_trait(call.op, ir::kOfMemory) && !call.derivative && !is_of_elements(call, *call.operands[0].tensor))
    eager::fail(ir::info(call.op).name, "self",
                "a tensor that requires grad and has not all of these elements, in this order",
                "contiguous(): a gradient is one of elements, not of memory", call.location);
}

void* OpNode::operator new(size_t) { return free_nodes.take(); }
void OpNode::operator delete(void* block) { free_nodes.give(block); }
OpNode::~OpNode() = default;

OpNode::OpNode(const OpCall& call, std::span<const Tensor> results, const Tensor* overwritten) {
  location = caller_line(call.location);
  const Tensor* const self = call.operands[0].tensor;
  const size_t count = call.operands.size();
  const bool all = count > kSelective, view = overwritten && !overwritten->is_same(*self);
  Wanted wanted(count);
  for (size_t i = 0; i < count; ++i) {
    if (!call.operands[i].is_tensor()) continue;
    const Tensor& t = *call.operands[i].tensor;
    const bool tracked = is_tracked(t);
    wanted[i] = is_floating(t.impl()->dtype) && (tracked || all || (view && i == 0));
    if (wanted[i]) edges.push_back(tracked ? tracked_edge(t) : Edge());
  }
  for (const Tensor& t : results) outputs.emplace_back(t.impl()->dtype, t.impl()->sizes);
  plan_ = Plans::of(call, wanted, results);
  if (!plan_->derivative) return;
  operands_.reserve(count);
  const bool same = std::equal(call.attrs.begin(), call.attrs.end(), plan_->attrs.begin(),
                               [](const ir::Attr& a, const ir::Attr& b) { return a.list == b.list; });
  if (!same) attrs_ = std::make_unique<std::vector<ir::Attr>>(call.attrs.begin(), call.attrs.end());
  size_t next_edge = 0;
  for (size_t i = 0; i < count; ++i) {
    const Operand& o = call.operands[i];
    const bool told = wanted[i] && edges[next_edge++].valid();
    SavedTensor& kept = operands_.emplace_back();
    if (!o.is_tensor()) {
      if (o.kind == Operand::Kind::scalar) scalars_.emplace_back(i, o);
    } else if (!plan_->reads[i]) {
      if (told) continue;
      if (!shapes_) shapes_ = std::make_unique<std::vector<Shape>>();
      shapes_->push_back({i, shape_of(o.tensor->impl()->dtype, o.tensor->impl()->sizes)});
    } else if (overwritten && (o.tensor->is_same(*self) || o.tensor->is_same(*overwritten))) {
      kept = SavedTensor(o.tensor->clone(location));
    } else {
      kept = SavedTensor(*o.tensor);
    }
  }
}

// What tells plans apart leaves nothing open in them but larger sizes.
std::span<const ir::Attr> OpNode::attributes() const { return attrs_ ? *attrs_ : plan_->attrs; }

template <size_t N>
void OpNode::put_attributes(InlineVector<ir::Attr, N>& attrs) const {
  attrs.reserve(attributes().size() + operands_.size());
  for (const ir::Attr& a : attributes()) attrs.emplace_back(a);
  ir::Attr* const shapes = attrs.end();
  for (size_t i = 0; i < operands_.size(); ++i) attrs.emplace_back();
  size_t next_edge = 0;
  for (size_t i = 0; i < operands_.size(); ++i) {
    if (!plan_->wanted[i]) continue;
    const Edge& edge = edges[next_edge++];
    if (operands_[i].defined() || !edge.valid()) continue;
    const Output like = output_of(edge);
    shapes[i] = shape_of(like.dtype, like.sizes);
  }
  if (!shapes_) return;
  for (const Shape& shape : *shapes_) shapes[shape.number] = shape.attr;
}

void OpNode::save(std::span<const Tensor> results) {
  if (!plan_->derivative) return;
  for (size_t i = 0; i < results.size(); ++i) {
    SavedTensor& kept = results_.emplace_back();
    // Another handle: the tensor itself holds this node.
    if (plan_->reads[operands_.size() + i]) kept = SavedTensor(tape().handle_of(results[i], location));
  }
}

std::string OpNode::name() const {
  std::string words;
  bool upper = true;
  for (char c : ir::info(plan_->op).name) {
    if (c == '_') {
      upper = true;
      continue;
    }
    words += upper ? static_cast<char>(std::toupper(static_cast<unsigned char>(c))) : c;
    upper = false;
  }
  for (const ir::Derivative* d = plan_->of; d; d = d->of) words += "Backward";
  return words + "Backward";
}

void OpNode::release() {
  if (!released_) used_ = BackwardLine::current();
  for (SavedTensor& operand : operands_)
    if (operand.defined()) released_ = true, operand = {};
  for (SavedTensor& result : results_)
    if (result.defined()) released_ = true, result = {};
}

void OpNode::let_go() const {
  for (const SavedTensor& operand : operands_) operand.let_go();
  for (const SavedTensor& result : results_) result.let_go();
}

void OpNode::part_from(const Tensor& base) {
  for (SavedTensor& operand : operands_) operand.part_from(base);
}

void OpNode::count_kept(uint64_t trace, std::vector<int32_t>& counts) const {
  for (const SavedTensor& operand : operands_) operand.count(trace, counts);
  for (const SavedTensor& result : results_) result.count(trace, counts);
}

void OpNode::defer(uint64_t trace, std::span<const DeferredPtr> by_value) {
  for (SavedTensor& operand : operands_) operand.defer(trace, by_value);
  for (SavedTensor& result : results_) result.defer(trace, by_value);
}

std::vector<Tensor> OpNode::derive(const std::vector<Tensor>& cotangents, bool keep, const Edge* result) {
  if (released_) fail_used(*this, used_);
  std::vector<Tensor> made;
  if (plan_->derivative) {
    const ir::OpInfo& row = ir::info(plan_->op);
    InlineVector<Operand, 12> operands;
    operands.reserve(operands_.size() + 2 * cotangents.size());
    InlineVector<Tensor, 4> made_again;
    made_again.reserve(operands_.size());
    for (size_t i = 0; i < operands_.size(); ++i) {
      if (!operands_[i].defined()) {
        operands.emplace_back();
        continue;
      }
      const std::string what = i < static_cast<size_t>(row.operand_count) && !row.list_first && !plan_->of
                                   ? "operand `" + row.operand(static_cast<int>(i)).name + "`"
                                   : "an operand";
      operands.emplace_back(operands_[i].get(*this, what, made_again.emplace_back()));
    }
    for (const Scalar& scalar : scalars_) operands[scalar.number] = scalar.operand;
    // Where the derivative is derived in turn, a kept result leads back to this node.
    std::vector<Tensor> results(results_.size());
    for (size_t i = 0; i < results_.size(); ++i) {
      if (!results_[i].defined()) {
        operands.emplace_back();
        continue;
      }
      Tensor room;
      results[i] = results_[i].get(*this, "its result", room);
      if (eager::interceptor(eager::Stage::autograd)) {
        results[i] = results[i].detach(location);
        results[i].impl()->requires_grad = true;
        if (result)
          set_node(results[i], result->node, result->output);
        else
          set_node(results[i], NodePtr(this), static_cast<uint32_t>(i));
      }
      operands.emplace_back(results[i]);
    }
    for (const Tensor& t : cotangents) operands.push_back(t.defined() ? Operand(t) : Operand());
    const ModulePathScope path(*module);
    made.resize(static_cast<size_t>(plan_->derivative->results()));
    InlineVector<ir::Attr, 6> attrs;
    put_attributes(attrs);
    OpCall call{plan_->op, false, operands, attrs, location};
    call.derivative = plan_->derivative;
    eager::dispatch(call, made);
  }
  std::vector<Tensor> gradients;
  size_t next = 0;
  for (int copied : plan_->copies)
    gradients.push_back(copied >= 0 ? cotangents[static_cast<size_t>(copied)] : std::move(made[next++]));
  if (keep)
    let_go();
  else
    release();
  return gradients;
}

NodePtr view_node(const Tensor& view) {
  const Meta& meta = *view.impl()->autograd;
  const Operand operand(meta.parent);
  const OpCall call{meta.view, false, {&operand, 1}, meta.attrs, Location::none()};
  check_elements(call);
  OpNode* node = new OpNode(call, {&view, 1});
  NodePtr made = NodePtr::take(node);
  node->save({&view, 1});
  return made;
}

NodePtr view_write_node(const Tensor& view, CountedPtr<OpNode> inner) {
  return NodePtr::take(new ViewWriteNode(view, std::move(inner)));
}

}  // namespace ingot::autograd
