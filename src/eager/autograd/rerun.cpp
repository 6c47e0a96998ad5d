#include "eager/autograd/rerun.h"

#include <algorithm>
#include <bit>

#include "base/function_scope.h"
#include "base/module_path.h"
#include "eager/autograd/op_node.h"
#include "eager/autograd/tape.h"
#include "eager/call/call.h"

namespace ingot::autograd {

using eager::OpCall;
using eager::Operand;

Tensor Recomputed::placed(const Tensor& made) const {
  Tensor tensor = tape().handle_of(made, Location::none());
  if (!edge.node) return tensor;
  tensor.impl()->requires_grad = true;
  set_node(tensor, edge.node, edge.output);
  return tensor;
}

RegionTensor::RegionTensor(std::shared_ptr<Region> from, size_t at, const Tensor& of, Edge to)
    : Recomputed(std::move(to)),
      region(std::move(from)),
      number(at),
      dtype(of.impl()->dtype),
      sizes(of.impl()->sizes) {}
RegionTensor::~RegionTensor() { region->forget(number); }

const Tensor* RegionTensor::intact(Tensor&) {
  if (!tensor.defined()) {
    const std::shared_ptr<Region> held = region;
    held->run_again();
  }
  return eager::writes_to(*tensor.impl()) == version ? &tensor : nullptr;
}

void RegionTensor::take(const Tensor& made) {
  tensor = placed(made);
  version = eager::writes_to(*tensor.impl());
}

namespace {

uint64_t value_of(const Operand& o) {
  if (o.kind == Operand::Kind::tensor) return eager::writes_to(*o.tensor->impl());
  return o.category == Category::floating ? std::bit_cast<uint64_t>(o.number) : static_cast<uint64_t>(o.integer);
}

}  // namespace

void RegionRun::call(const OpCall& given, std::span<Tensor> outputs) {
  begin(given);
  OpCall call = given;
  InlineVector<Operand, 6> operands;
  operands.reserve(given.operands.size());
  for (size_t i = 0; i < given.operands.size(); ++i) {
    Operand& o = operands.emplace_back(given.operands[i]);
    o.origin = operand(given, i, value_of(o));
  }
  call.operands = operands;
  proceed(call, outputs);
}

/// Notes what is called, and what nodes would keep.
class Region::FirstRun final : public RegionRun {
 public:
  explicit FirstRun(Region& region) : region_(region), outer_(current()) {}
  std::unique_ptr<Recomputed> keep(const Tensor& tensor) override {
    const size_t number = region_.waiting_.size();
    region_.waiting_.push_back(nullptr);
    Edge edge = edge_of(tensor);
    if (edge.leaf.defined()) return nullptr;  // a parameter is there in any case
    auto later = std::make_unique<RegionTensor>(region_.shared_from_this(), number, tensor, std::move(edge));
    region_.waiting_[number] = later.get();
    return later;
  }
  std::optional<eager::Draws> known_draws() override {
    const std::optional<eager::Draws> known = outer_ ? outer_->known_draws() : std::nullopt;
    if (known) region_.draws_.push_back(*known);
    return known;
  }
  void note(eager::Draws draws) override {
    region_.draws_.push_back(draws);
    if (outer_) outer_->note(draws);
  }
  bool is_second() const override { return outer_ && outer_->is_second(); }

 private:
  void begin(const OpCall& call) override {
    region_.calls_.push_back({call.op, call.derivative, call.inplace, call.operands.size()});
  }
  uint64_t operand(const OpCall& call, size_t i, uint64_t value) override {
    const Operand& o = call.operands[i];
    // A number is named, so that who records both runs knows it again.
    const bool unnamed = o.kind == Operand::Kind::scalar && !o.special && !o.origin;
    region_.operands_.push_back({value, unnamed ? next_scalar() : o.origin});
    return region_.operands_.back().name;
  }

  Region& region_;
  RegionRun* const outer_;
};

/// Holds the function to what it did at first, and fills what waits.
class Region::SecondRun final : public RegionRun {
 public:
  explicit SecondRun(Region& region) : region_(region) {}
  std::unique_ptr<Recomputed> keep(const Tensor& tensor) override {
    if (next_kept_ == region_.waiting_.size()) fail("more tensors for its backward", Location::none());
    RegionTensor* const later = region_.waiting_[next_kept_++];
    if (!later) return nullptr;
    const ingot::detail::TensorImpl& made = *tensor.impl();
    if (made.dtype != later->dtype || made.sizes != later->sizes)
      fail(type_text(made.dtype, made.sizes) + " where it had " + type_text(later->dtype, later->sizes),
           Location::none());
    later->take(tensor);
    return nullptr;
  }
  std::optional<eager::Draws> known_draws() override {
    if (next_draws_ == region_.draws_.size()) fail("more random numbers", Location::none());
    return region_.draws_[next_draws_++];
  }
  void note(eager::Draws) override {}
  bool is_second() const override { return true; }
  void end() const {
    if (next_call_ != region_.calls_.size()) fail("fewer ops", Location::none());
    if (next_kept_ != region_.waiting_.size()) fail("fewer tensors for its backward", Location::none());
  }

 private:
  [[noreturn]] void fail(const std::string& got, Location location) const {
    eager::fail("checkpoint", "function", got + " as it ran again",
                "what it did in its first run" + place_of(region_.location_), location);
  }
  static std::string name_of(const OpCall& call) { return ir::name_of_call(call.op, call.derivative, call.inplace); }
  void begin(const OpCall& call) override {
    if (next_call_ == region_.calls_.size()) fail("one more " + name_of(call), call.location);
    const Called& before = region_.calls_[next_call_++];
    if (before.op != call.op || before.derivative != call.derivative || before.inplace != call.inplace ||
        before.operands != call.operands.size())
      fail(name_of(call) + " where it called " + ir::name_of_call(before.op, before.derivative, before.inplace),
           call.location);
  }
  uint64_t operand(const OpCall& call, size_t i, uint64_t value) override {
    const CalledWith& before = region_.operands_[next_operand_++];
    if (before.value == value) return before.name;
    const std::string which = "operand " + std::to_string(i) + " of " + name_of(call);
    if (call.operands[i].kind == Operand::Kind::tensor) {
      const ingot::detail::TensorImpl& t = *call.operands[i].tensor->impl();
      fail(which + ", " + type_text(t.dtype, t.sizes) + ", written to in between", call.location);
    }
    fail("another number as " + which, call.location);
  }

  Region& region_;
  size_t next_call_ = 0, next_operand_ = 0, next_kept_ = 0, next_draws_ = 0;
};

Region::Region(Function function, const std::vector<Tensor>& inputs, Location location)
    : function_(std::move(function)),
      location_(caller_line(location)),
      module_(kept_module_path()),
      autocast_(eager::interceptor(eager::Stage::autocast)) {
  for (const Tensor& t : inputs) {
    inputs_.push_back(t.defined() ? SavedTensor(tape().handle_of(t, location_)) : SavedTensor());
    tracked_.push_back(t.defined() && is_tracked(t));
  }
}
Region::~Region() = default;

void Region::run(const std::vector<Tensor>& inputs, void* results) {
  FirstRun run(*this);
  const eager::InterceptorScope scope(eager::Stage::checkpoint, &run);
  function_(inputs, results);
}

void Region::run_again() {
  std::vector<Tensor> inputs(inputs_.size());
  for (size_t i = 0; i < inputs.size(); ++i) {
    if (!inputs_[i].defined()) continue;
    Tensor room;
    const Tensor* const input = inputs_[i].intact(room);
    if (!input)
      eager::fail("checkpoint", "inputs", "number " + std::to_string(i) + ", which was written to in place since",
                  "a tensor that rests until backward() has come here: clone() it before it is written", location_);
    inputs[i] = tape().handle_of(*input, location_);
    inputs[i].impl()->requires_grad = tracked_[i];
    inputs_[i].let_go();
  }
  SecondRun run(*this);
  const CallerLine own{CallerLine::Own()};
  const FunctionScope function{CalledFunction()};
  const ModulePathScope path(*module_);
  const eager::InterceptorScope checkpoint(eager::Stage::checkpoint, &run);
  const eager::InterceptorScope autocast(eager::Stage::autocast, autocast_);
  const eager::InterceptorScope tape_scope(eager::Stage::autograd, &tape());
  try {
    function_(inputs, nullptr);
    run.end();
  } catch (...) {
    for (RegionTensor* later : waiting_)
      if (later) later->tensor = {};
    throw;
  }
}

SideEffect::SideEffect() : outer_(RegionRun::current()), due_(!outer_ || !outer_->is_second()) {
  eager::set_interceptor(eager::Stage::checkpoint, nullptr);
}

}  // namespace ingot::autograd
