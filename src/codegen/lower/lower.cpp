#include "codegen/lower.h"

#include <algorithm>

#include "codegen/cuda/cuda.h"
#include "codegen/lower/plan.h"
#include "codegen/lower/steps.h"

namespace ingot::codegen {
namespace {

/// From the first to the last step that touches an arena buffer.
void set_lifetimes(Program& program) {
  for (ProgramBuffer& b : program.buffers)
    if (b.place == Place::arena) b.first_step = ~0u;
  for (uint32_t s = 0; s < program.steps.size(); ++s)
    for_each_argument(program.steps[s], [&](const Argument& a) {
      ProgramBuffer& b = program.buffers[a.buffer];
      if (b.place != Place::arena) return;
      b.first_step = std::min(b.first_step, s);
      b.last_step = std::max(b.last_step, s);
    });
  for (ProgramBuffer& b : program.buffers)
    if (b.first_step == ~0u) b.first_step = b.last_step = 0, b.bytes = 0;
}

}  // namespace

LowerResult lower(const ir::Graph& graph, const Target& target, const LowerOptions& options) {
  LowerResult result;
  Program& program = result.program;
  program.target = target;
  program.dims = graph.dims;
  program.inputs = static_cast<uint32_t>(graph.inputs.size());
  program.outputs = static_cast<uint32_t>(graph.outputs.size());
  program.scalars = graph.scalars;

  lowering::Layouts layouts(graph, program.dims);
  lowering::Plan plan = lowering::fuse(graph, layouts, options, result.explanation);
  program.buffers = plan.buffers;
  lowering::StepWriter writer(graph, layouts, plan, target, options, result);
  for (uint32_t group : plan.order) writer.write(group);
  set_lifetimes(program);
  if (target.cuda_arch) program.device_source = cuda::translation_unit(program);
  return result;
}

}  // namespace ingot::codegen
