#include "trace/recorder.h"

#include <algorithm>

#include "trace/recordable.h"

namespace ingot::trace {
namespace {

constexpr const char* kTooManyPaths = "the paths of the function are too many to be recorded";

}  // namespace

Recorder::Recorder(std::shared_ptr<Function> function, std::shared_ptr<Backward> backward)
    : Interceptor(eager::Stage::record),
      function_(std::move(function)),
      tree_(*function_),
      limits_(tree_, *function_),
      segment_(function_->name()),
      runner_(*function_, segment_, memory_, std::move(backward)) {}

void Recorder::begin(std::span<const detail::TensorImpl* const> arguments, Purpose purpose) {
  observation_.reset();
  passthrough_ = ended_well_ = false;
  memory_.begin(arguments, purpose != Purpose::gradients);
  limits_.begin_call(++calls_);
  segment_.start(&tree_.root());
  numerics_.emplace(function_->numerics());
  outer_ = eager::set_interceptor(stage(), this);
  if (purpose == Purpose::observed || purpose == Purpose::trial) observation_.emplace(arguments, segment_.id());
  Observation* observation = observation_ ? &*observation_ : nullptr;
  outer_observer_ = eager::set_interceptor(eager::Stage::observe, observation ? &observation->writer() : nullptr);
  runner_.begin_call(calls_, observation);
  counted_ = purpose != Purpose::trial;
  if (counted_) function_->calls.fetch_add(1, std::memory_order_relaxed);
  if (limits_.pass_over()) pass_through(kTooManyPaths);
}

void Recorder::leave() {
  const bool hit = ended_well_ && !passthrough_ && !limits_.has_recorded() && !runner_.has_compiled();
  if (counted_ && !hit) function_->misses.fetch_add(1, std::memory_order_relaxed);
  segment_.clear();
  segment_.end();
  limits_.end_call(passthrough_);
  eager::set_interceptor(stage(), outer_);
  eager::set_interceptor(eager::Stage::observe, outer_observer_);
  numerics_.reset();
}

void Recorder::forget_observation() { observation_.reset(); }

void Recorder::compute(const char* reason) {
  if (!passthrough_ && !segment_.empty()) end_segment(reason, Location::none());
}

void Recorder::finish() {
  struct Leave {
    Recorder* recorder;
    ~Leave() { recorder->leave(); }
  } leave{this};
  if (!passthrough_ && !segment_.empty()) runner_.run(*tree_.flush_node(segment_, "end of the call", Location::none()));
  ended_well_ = true;
}

void Recorder::abandon() {
  struct Leave {
    Recorder* recorder;
    ~Leave() { recorder->leave(); }
  } leave{this};
  if (segment_.empty()) return;
  segment_.check_versions();
  runner_.run_one_by_one("the callable threw");
}

// An op that was recorded costs what is compared here: all that is rare stands elsewhere.
void Recorder::call(const eager::OpCall& call, std::span<Tensor> outputs) {
  if (passthrough_) return proceed(call, outputs);
  if (memory_.anything_handed_out() && reaches_handed_out(call)) return call_at_once(call, outputs);
  if (ir::info(call.op).has(ir::kOfMemory) && !call.derivative && reads_beyond(call)) {
    flush("as_strided reads memory beyond its tensor", call.location);
    return proceed(call, outputs);
  }
  Node* known = segment_.next(call);
  if (!known) return leave_known_paths(call, outputs);
  tree_.refresh(*known, call, segment_);
  segment_.advance(known, call, outputs);
}

void Recorder::call_at_once(const eager::OpCall& call, std::span<Tensor> outputs) {
  flush("the callable holds a pointer to the memory", call.location);
  proceed(call, outputs);
  if (call.inplace || (ir::info(call.op).kind == ir::OpKind::view && !call.derivative)) return;
  for (const Tensor& output : outputs) memory_.note_made(*output.impl()->storage);
}

void Recorder::leave_known_paths(const eager::OpCall& call, std::span<Tensor> outputs) {
  if (const char* reason = why_not_recorded(call)) {
    flush(reason, call.location);
  } else if (!segment_.cursor()->children.empty() && !segment_.root()->may_compile(function_->recompile_limit())) {
    function_->note_limit(caller_line(call.location));
    pass_through(function_->limit_reason());
  } else if (!limits_.may_record()) {
    pass_through(kTooManyPaths);
  } else {
    return segment_.advance(tree_.record(call, segment_, memory_), call, outputs);
  }
  proceed(call, outputs);
}

void Recorder::pass_through(std::string why) {
  struct FromHere {  // also where one of the recorded ops fails now
    Recorder* recorder;
    ~FromHere() {
      recorder->segment_.clear();
      recorder->passthrough_ = true;
    }
  } from_here{this};
  segment_.check_versions();
  runner_.run_one_by_one(std::move(why));
}

void Recorder::flush(const char* reason, Location location) {
  if (observation_) observation_->note_break(reason, location);
  if (passthrough_ || segment_.empty()) return;
  location = caller_line(location);
  const Node& last = *segment_.path().back();
  function_->note_break(reason, std::string(ir::info(last.op).name), location.line ? location : last.location);
  end_segment(reason, location);
}

void Recorder::hand_out(const detail::TensorImpl& tensor, bool writable) {
  if (!passthrough_) memory_.hand_out(*tensor.storage, writable);
}

bool Recorder::reaches_handed_out(const eager::OpCall& call) const {
  for (size_t i = 0; i < call.operands.size(); ++i) {
    const eager::Operand& operand = call.operands[i];
    if (operand.kind != eager::Operand::Kind::tensor) continue;
    const runtime::Storage* storage = segment_.storage_of(*operand.tensor->impl());
    if (storage && memory_.is_in_use(*storage, call.inplace && i == 0)) return true;
  }
  return false;
}

std::vector<Tensor> Recorder::call(const eager::OpaqueCall& call) {
  if (observation_) observation_->note_break("custom op " + call.name, call.location);
  const Location location = caller_line(call.location);
  if (!passthrough_) {
    function_->note_break("a custom op runs between two programs", call.name, location);
    if (!segment_.empty()) end_segment(call.name.c_str(), location);
  }
  const eager::WithoutInterceptors unseen(eager::Stage::observe);
  std::vector<Tensor> results = call.body();
  for (const Tensor& made : results)
    if (made.defined() && made.impl()->storage) memory_.note_made(*made.impl()->storage);
  return results;
}

void Recorder::end_segment(const char* reason, Location location) {
  struct Start {
    Segment& segment;
    Node* root;
    ~Start() { segment.start(root); }
  } start{segment_, tree_.flush_node(segment_, reason, location)};
  runner_.run(*start.root);
}

// A recorded call costs about what two small eager ops do, and an op in it half of one (docs/frozen.md).
bool Recorder::slight() const {
  constexpr size_t kFewOps = 3;
  constexpr int64_t kFewElements = 1024;
  auto is_short = [](const Ints& sizes) {
    int64_t elements = 1;
    for (int64_t size : sizes) elements *= std::min(size, kFewElements + 1);
    return sizes.size() <= 6 && elements <= kFewElements;
  };
  auto is_light = [&](const Node* node) {
    return std::all_of(node->slots.begin(), node->slots.end(),
                       [&](const SlotRecord& s) { return is_short(s.sizes); }) &&
           std::all_of(node->outputs.begin(), node->outputs.end(),
                       [&](const OutputRecord& o) { return is_short(o.meta.sizes); });
  };
  const std::span<Node* const> path = segment_.path();
  return !passthrough_ && segment_.root() == &tree_.root() && path.size() <= kFewOps &&
         std::all_of(path.begin(), path.end(), is_light);
}

}  // namespace ingot::trace
