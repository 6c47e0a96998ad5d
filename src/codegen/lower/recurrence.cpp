#include "codegen/lower/recurrence.h"

#include <algorithm>
#include <map>

#include "ir/recurrence.h"

namespace ingot::codegen::lowering {
namespace {

/// One step of the sequence.
class StepOfSequence {
 public:
  StepOfSequence(StepWriter& w, const Group& g, bool first) : w_(w), g_(g), node_(*g.anchor), first_(first) {}

  /// Appends its steps to the program; what it reads and writes of the sequence is that of one step of it.
  void write() {
    std::vector<ir::StepGraph::Given> given(g_.operands.size());
    for (size_t i = 0; i < given.size(); ++i) {
      const StoredOperand& o = g_.operands[i];
      if (o.value != ir::kNoValue) given[i].dtype = o.dtype;
      if (o.rounded) given[i].rounded = DType::bf16;
    }
    ir::StepGraph step = ir::step_graph(w_.graph, w_.dims, node_, first_, given);
    for (size_t i = 0; i < step.inputs.size(); ++i) {
      const ir::StepGraph::Input& input = step.inputs[i];
      ir::InputInfo& info = step.graph.inputs[i];
      info.strides = at_a_step(input.before ? g_.outputs[input.number].strides : g_.operands[input.number].strides);
      info.constant = !input.before && is_constant(g_.operands[input.number]);
    }
    LowerOptions options = w_.options;
    options.part = true;
    options.outputs_may_alias = false;
    options.after = {};
    options.find = [this](const std::string& key) { return w_.known(key); };
    options.free_outputs.clear();
    options.output_strides.clear();
    for (const Output& output : g_.outputs) options.output_strides.push_back(at_a_step(output.strides));
    LowerResult made = lower(step.graph, w_.target, options);
    w_.dims = std::move(made.program.dims);
    take(step, std::move(made.program));
    for (std::string& note : made.explanation.notes) w_.result.explanation.notes.push_back(std::move(note));
  }

  /// How buffers move from step to step of the sequence.
  std::vector<Program::Segment::Move> moves() const {
    std::map<uint32_t, Dim> all;
    auto add = [&](uint32_t buffer, Dim bytes) {
      const auto [at, added] = all.emplace(buffer, bytes);
      INGOT_CHECK(added || at->second == bytes, "a buffer of a sequence moves in one way");
    };
    for (size_t i = 0; i < g_.operands.size(); ++i)
      if (const StoredOperand& o = g_.operands[i]; o.value != ir::kNoValue)
        add(buffer_of(o), ir::over_time(w_.graph.type(o.value)) ? bytes(w_.dims, o.strides[0], o.dtype) : Dim(0));
    for (const Output& o : g_.outputs) add(o.buffer, bytes(w_.dims, o.strides[0], o.dtype));
    std::vector<Program::Segment::Move> moves;
    for (const auto& [buffer, distance] : all)
      if (!(distance == Dim(0))) moves.push_back({buffer, distance});
    return moves;
  }

 private:
  static Dims at_a_step(Dims strides) {
    if (strides.size() == 3) strides.erase(0);
    return strides;
  }
  uint32_t buffer_of(const StoredOperand& o) const {
    return o.buffer != kNoBuffer ? o.buffer : w_.plan.stored[o.root].buffer;
  }
  bool is_constant(const StoredOperand& o) const { return w_.is_constant(o) && !ir::over_time(w_.graph.type(o.value)); }

  struct Place {
    uint32_t buffer;
    Dim offset;  // bytes
  };
  /// In time, counted from the first slice of the segment: which is the one behind the first step, or, where the
  /// sequence goes backwards, the first one in memory. The step before it lies on the other side.
  Dim offset(Dim distance, bool before) const {
    if (!ir::goes_backwards(node_)) return first_ || before ? Dim(0) : distance;
    const Dim steps = w_.graph.type(node_.outputs[0]).shape[0];
    if (first_) return w_.dims.mul(distance, w_.dims.sub(steps, 1));
    return before ? distance : Dim(0);
  }
  Place place(const StoredOperand& o) const {
    const Dim own = bytes(w_.dims, o.offset, o.dtype);
    if (!ir::over_time(w_.graph.type(o.value))) return {buffer_of(o), own};
    return {buffer_of(o), w_.dims.add(own, offset(bytes(w_.dims, o.strides[0], o.dtype), false))};
  }
  Place place(const Output& o, bool before) const {
    const Dim own = bytes(w_.dims, o.offset, o.dtype);
    return {o.buffer, w_.dims.add(own, offset(bytes(w_.dims, o.strides[0], o.dtype), before))};
  }

  void take(const ir::StepGraph& step, Program program) {
    std::vector<Place> places;
    for (const ProgramBuffer& buffer : program.buffers) {
      if (buffer.place == ingot::Place::arena) {
        places.push_back({w_.arena_buffer(buffer.bytes), 0});
      } else if (buffer.place == ingot::Place::output) {
        places.push_back(place(g_.outputs[buffer.number], false));
      } else {
        const ir::StepGraph::Input& input = step.inputs[buffer.number];
        places.push_back(input.before ? place(g_.outputs[input.number], true) : place(g_.operands[input.number]));
      }
    }
    for (Step& s : program.steps) {
      for_each_kernel(s, [&](const KernelPtr& kernel) { w_.remember(kernel); });
      for_each_argument(s, [&](Argument& a) {
        const Place& at = places[a.buffer];
        a.buffer = at.buffer;
        a.offset = w_.dims.add(a.offset, at.offset);
      });
      w_.append(std::move(s));
    }
  }

  StepWriter& w_;
  const Group& g_;
  const ir::Node& node_;
  const bool first_;
};

}  // namespace

void write_recurrence(StepWriter& w, uint32_t group) {
  const Group& g = w.plan.groups[group];
  StepOfSequence(w, g, true).write();
  const Dim steps = w.graph.type(g.anchor->outputs[0]).shape[0];
  if (steps == Dim(1)) return;
  Program::Segment segment;
  segment.first_step = static_cast<uint32_t>(w.result.program.steps.size());
  StepOfSequence others(w, g, false);
  others.write();
  segment.end_step = static_cast<uint32_t>(w.result.program.steps.size());
  segment.slices = w.dims.sub(steps, 1);
  segment.backwards = ir::goes_backwards(*g.anchor);
  segment.moves = others.moves();
  // A weight that others make, or that a step of training writes, is packed once for all steps.
  std::vector<Step>& all = w.result.program.steps;
  auto written = [&](uint32_t buffer) {
    bool found = false;
    for (uint32_t s = segment.first_step; s < segment.end_step; ++s)
      for_each_argument(all[s], [&](const Argument& a) { found = found || (a.buffer == buffer && !a.read_only); });
    return found;
  };
  for (uint32_t s = segment.first_step; s < segment.end_step; ++s)
    if (auto* product = std::get_if<MatmulStep>(&all[s].work))
      product->b_stays =
          !product->b_is_weight && segment.moved(product->b.buffer) == Dim(0) && !written(product->b.buffer);
  w.result.program.segments.push_back(std::move(segment));
}

}  // namespace ingot::codegen::lowering
