#include "codegen/lower.h"

#include <array>
#include <chrono>

#include "codegen/cuda/cuda.h"
#include "codegen/lower/lifetimes.h"
#include "codegen/lower/lowering.h"
#include "codegen/lower/prologues.h"
#include "codegen/lower/slices.h"
#include "codegen/lower/steps.h"

namespace ingot::codegen {
namespace {

using lowering::Lowering;

void find_layouts(Lowering& l) {
  l.layouts.emplace(l.graph, l.result.program.dims, l.options.channels_last && !l.result.program.target.cuda_arch,
                    l.options.free_outputs);
  for (uint32_t k = 0; k < l.graph.outputs.size(); ++k) l.result.output_orders.push_back(l.layouts->output_order(k));
}

void form_groups(Lowering& l) {
  l.fusion.emplace(l.graph, l.result.program.target, *l.layouts, l.options, l.result.explanation);
  fuse(*l.fusion);
}

void schedule_groups(Lowering& l) {
  l.plan = schedule(*l.fusion);
  l.fusion.reset();
}

void emit_steps(Lowering& l) {
  l.result.program.buffers = l.plan.buffers;
  lowering::StepWriter writer(l.graph, *l.layouts, l.plan, l.options, l.result);
  for (uint32_t group : l.plan.order) writer.write(group);
}

void slice_batch(Lowering& l) {
  if (!l.result.program.target.cuda_arch) lowering::slice_batch(l.result, l.graph, l.options);
}

void keep_values(Lowering& l) {
  if (!l.result.program.target.cuda_arch) lowering::keep_values(l.result.program, l.graph);
}

void join_prologues(Lowering& l) {
  if (!l.result.program.target.cuda_arch) lowering::join_prologues(l.result, l.options);
}

void find_lifetimes(Lowering& l) { lowering::set_lifetimes(l.result.program); }

void join_buffers(Lowering& l) {
  if (!l.result.program.target.cuda_arch) lowering::join_buffers(l.result.program);
}

void write_unit(Lowering& l) {
  Program& program = l.result.program;
  if (program.target.cuda_arch) program.device_source = cuda::translation_unit(program);
}

constexpr std::array kStages = {
    Stage{"layout", find_layouts, lowering::layouts_text},
    Stage{"channels_last", nullptr, nullptr, &LowerOptions::channels_last},
    Stage{"group", form_groups, lowering::groups_text},
    Stage{"fuse", nullptr, nullptr, &LowerOptions::fuse},
    Stage{"siblings", nullptr, nullptr, &LowerOptions::siblings},
    Stage{"split_cat", nullptr, nullptr, &LowerOptions::split_cat},
    Stage{"schedule", schedule_groups, lowering::schedule_text},
    Stage{"emit", emit_steps, lowering::program_text},
    Stage{"side_by_side", nullptr, nullptr, &LowerOptions::side_by_side},
    Stage{"transpose", nullptr, nullptr, &LowerOptions::transpose},
    Stage{"winograd", nullptr, nullptr, &LowerOptions::winograd},
    Stage{"slice", slice_batch, lowering::program_text, &LowerOptions::slice, true},
    Stage{"keep", keep_values, lowering::program_text, &LowerOptions::keep, true},
    Stage{"prologue", join_prologues, lowering::program_text, &LowerOptions::prologue, true},
    Stage{"lifetimes", find_lifetimes, lowering::program_text, nullptr, true},
    Stage{"join_buffers", join_buffers, lowering::program_text, &LowerOptions::join_buffers, true},
    Stage{"device_source", write_unit, lowering::device_text, nullptr, true},
};

}  // namespace

std::span<const Stage> stages() { return kStages; }

LowerResult lower(const ir::Graph& graph, const Target& target, const LowerOptions& options) {
  using Clock = std::chrono::steady_clock;
  LowerResult result;
  Program& program = result.program;
  program.target = target;
  program.dims = graph.dims;
  program.inputs = static_cast<uint32_t>(graph.inputs.size());
  program.outputs = static_cast<uint32_t>(graph.outputs.size());
  program.scalars = graph.scalars;

  Lowering state{graph, options, result};
  for (const Stage& stage : kStages) {
    if (!stage.run || (options.part && stage.whole) || (stage.option && !(options.*stage.option))) continue;
    const Clock::time_point start = Clock::now();
    stage.run(state);
    result.stages.push_back(
        {stage.name, std::chrono::duration<double, std::milli>(Clock::now() - start).count(), graph.nodes.size()});
    if (!options.after) continue;
    if (const std::string text = stage.text(state); !text.empty()) options.after(stage.name, text);
  }
  return result;
}

}  // namespace ingot::codegen
