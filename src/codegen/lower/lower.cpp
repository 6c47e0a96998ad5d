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

/// What a step writes may lie where an operand lay that nobody reads after it: the two become one buffer.
void join_buffers(Program& program) {
  std::vector<uint32_t> becomes(program.buffers.size());
  for (uint32_t i = 0; i < becomes.size(); ++i) becomes[i] = i;
  std::vector<uint32_t> made, dying;
  for (uint32_t s = 0; s < program.steps.size(); ++s) {
    made.clear(), dying.clear();
    for_each_part<Argument>(program.steps[s], [&](Argument& a) {
      a.buffer = becomes[a.buffer];
      const ProgramBuffer& b = program.buffers[a.buffer];
      if (b.place != Place::arena) return;
      if (!a.read_only && b.first_step == s) made.push_back(a.buffer);
      if (a.read_only && b.first_step != s && b.last_step == s) dying.push_back(a.buffer);
    });
    for (uint32_t to : made)
      for (uint32_t& from : dying) {
        if (from == lowering::kNoBuffer || !(program.buffers[to].bytes == program.buffers[from].bytes) ||
            !may_write_over(program.steps[s], to, from))
          continue;
        program.buffers[from].last_step = program.buffers[to].last_step;
        program.buffers[to] = {Place::arena, 0, 0, 0, 0};
        for_each_part<Argument>(program.steps[s], [&](Argument& a) {
          if (a.buffer == to) a.buffer = from;
        });
        becomes[to] = from;
        std::replace(dying.begin(), dying.end(), uint32_t{from}, lowering::kNoBuffer);
        break;
      }
  }
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
  if (!target.cuda_arch) join_buffers(program);
  if (target.cuda_arch) program.device_source = cuda::translation_unit(program);
  return result;
}

}  // namespace ingot::codegen
