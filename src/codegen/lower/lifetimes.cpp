#include "codegen/lower/lifetimes.h"

#include <algorithm>

#include "codegen/lower/plan.h"

namespace ingot::codegen::lowering {

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
        if (from == kNoBuffer || !(program.buffers[to].bytes == program.buffers[from].bytes) ||
            !may_write_over(program.steps[s], to, from))
          continue;
        program.buffers[from].last_step = program.buffers[to].last_step;
        program.buffers[to] = {Place::arena, 0, 0, 0, 0};
        for_each_part<Argument>(program.steps[s], [&](Argument& a) {
          if (a.buffer == to) a.buffer = from;
        });
        becomes[to] = from;
        std::replace(dying.begin(), dying.end(), uint32_t{from}, kNoBuffer);
        break;
      }
  }
}

}  // namespace ingot::codegen::lowering
