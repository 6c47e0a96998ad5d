#include "codegen/lower/lifetimes.h"

#include <algorithm>
#include <optional>

#include "codegen/lower/plan.h"

namespace ingot::codegen::lowering {

// The largest set of steps and buffers in which steps read constant inputs and kept buffers, write kept buffers, and
// nobody else writes those. What moves from slice to slice is something else for each.
void keep_values(Program& program, const ir::Graph& graph) {
  constexpr int64_t kMostOfOne = 64 << 10, kMostInAll = 1 << 20;  // bytes
  std::vector<bool> kept, makes;
  for (const ProgramBuffer& b : program.buffers)
    kept.push_back(b.place == Place::arena && b.bytes.is_constant() && b.bytes.code > 0 && b.bytes.code <= kMostOfOne);
  for (const Step& step : program.steps) {
    bool constant = step.is<LoopStep>();
    for_each_dim(step, [&](Dim d) { constant = constant && d.is_constant(); });
    makes.push_back(constant);
  }
  for (bool moved = true; moved;) {
    moved = false;
    std::vector<bool> written(program.buffers.size());
    for (uint32_t s = 0; s < program.steps.size(); ++s) {
      const Program::Segment* segment = segment_of(program, s);
      auto ours = [&](const Argument& a) {
        const ProgramBuffer& b = program.buffers[a.buffer];
        if (segment && !(segment->moved(a.buffer) == Dim(0))) return false;
        return kept[a.buffer] || (a.read_only && b.place == Place::input && graph.inputs[b.number].constant);
      };
      bool all = makes[s];
      for_each_argument(program.steps[s], [&](const Argument& a) { all = all && ours(a); });
      moved = moved || all != makes[s];
      makes[s] = all;
      for_each_argument(program.steps[s], [&](const Argument& a) {
        if (a.read_only) return;
        written[a.buffer] = true;
        moved = moved || (kept[a.buffer] && !all);
        kept[a.buffer] = kept[a.buffer] && all;
      });
    }
    for (size_t b = 0; b < kept.size(); ++b) kept[b] = kept[b] && written[b];
  }
  int64_t bytes = 0;
  for (size_t b = 0; b < kept.size(); ++b) bytes += kept[b] ? program.buffers[b].bytes.code : 0;
  if (bytes > kMostInAll) return;
  uint32_t number = 0;
  for (size_t b = 0; b < kept.size(); ++b)
    if (kept[b]) program.buffers[b].place = Place::kept, program.buffers[b].number = number++;
}

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
  // What one slice finds in a buffer, or leaves in its part of one, has to be there until the segment ends.
  for (const Program::Segment& s : program.segments) {
    auto keep = [&](const Argument& a) {
      ProgramBuffer& b = program.buffers[a.buffer];
      if (b.place != Place::arena) return;
      const bool within = s.first_step <= b.first_step && b.last_step < s.end_step;
      if (within && s.moved(a.buffer) == Dim(0)) return;
      b.first_step = std::min(b.first_step, s.first_step);
      b.last_step = std::max(b.last_step, s.end_step - 1);
    };
    for (uint32_t step = s.first_step; step < s.end_step; ++step) for_each_argument(program.steps[step], keep);
  }
  for (ProgramBuffer& b : program.buffers)
    if (b.place == Place::arena && b.first_step == ~0u) b.first_step = b.last_step = 0, b.bytes = 0;
}

namespace {

/// What a step stores, and the value that it changes or copies there: both of this shape.
struct Handover {
  const Argument *from, *to;
  const Dims* shape;
};
std::optional<Handover> handover_of(const Step& step) {
  if (const auto* loop = std::get_if<LoopStep>(&step.work); loop && loop->copies && loop->arguments.size() == 2)
    return Handover{&loop->arguments[0], &loop->arguments[1], &loop->space};
  if (const auto* host = std::get_if<HostStep>(&step.work); host && !host->overwrites.empty())
    return Handover{&host->operand(host->overwrites).place, &host->results[0].place, &host->results[0].shape};
  return std::nullopt;
}

/// True if these are all of so many dense bytes.
bool covers_all(DimTable& dims, const Dims& shape, const Argument& place, Dim bytes) {
  if (!(place.offset == Dim(0))) return false;
  std::optional<Dim> dense;
  for (size_t d = shape.size(); d-- > 0;) {
    if (shape[d] == Dim(1)) continue;
    if (dense && !(place.strides[d] == *dense)) return false;
    dense = dims.mul(place.strides[d], shape[d]);
  }
  return dense && *dense == bytes;
}

bool writes(const Step& step, uint32_t buffer) {
  bool found = false;
  for_each_argument(step, [&](const Argument& a) { found = found || (a.buffer == buffer && !a.read_only); });
  return found;
}

/// A value that dies as it is handed over to an output may lie in the output's memory from the start: of several writes
/// to parts of one tensor only the first copies it then, and that one may be donated.
void join_outputs(Program& program) {
  std::vector<uint32_t> first_touch(program.buffers.size(), ~0u);
  for (uint32_t s = 0; s < program.steps.size(); ++s)
    for_each_argument(program.steps[s],
                      [&](const Argument& a) { first_touch[a.buffer] = std::min(first_touch[a.buffer], s); });
  for (uint32_t s = static_cast<uint32_t>(program.steps.size()); s-- > 0;) {
    const auto handover = handover_of(program.steps[s]);
    if (!handover) continue;
    const uint32_t from = handover->from->buffer, to = handover->to->buffer;
    const ProgramBuffer &source = program.buffers[from], &target = program.buffers[to];
    if (source.place != Place::arena || target.place != Place::output || source.first_step == s ||
        first_touch[to] != s || !may_write_over(program.steps[s], to, from) ||
        !covers_all(program.dims, *handover->shape, *handover->to, source.bytes))
      continue;
    // Who reads it after that comes before the next write, or is that step; a copy is none.
    const uint32_t last = source.last_step;
    uint32_t write = s + (program.steps[s].is<LoopStep>() ? 1 : 0);
    while (write <= last && !writes(program.steps[write], to)) ++write;
    if (write < last || (write == last && !may_write_over(program.steps[last], to, from))) continue;
    bool sliced = false;
    for (uint32_t step = source.first_step; step <= last; ++step) sliced = sliced || segment_of(program, step);
    if (sliced) continue;
    for (uint32_t step = source.first_step; step <= last; ++step)
      for_each_argument(program.steps[step], [&](Argument& a) {
        if (a.buffer == from) a.buffer = to;
      });
    first_touch[to] = source.first_step;
    program.buffers[from] = {};
  }
}

}  // namespace

void join_buffers(Program& program) {
  join_outputs(program);
  std::vector<uint32_t> becomes(program.buffers.size());
  for (uint32_t i = 0; i < becomes.size(); ++i) becomes[i] = i;
  std::vector<uint32_t> made, dying;
  for (uint32_t s = 0; s < program.steps.size(); ++s) {
    made.clear(), dying.clear();
    const Program::Segment* segment = segment_of(program, s);
    for_each_argument(program.steps[s], [&](Argument& a) {
      a.buffer = becomes[a.buffer];
      const ProgramBuffer& b = program.buffers[a.buffer];
      if (b.place != Place::arena) return;
      if (!a.read_only && b.first_step == s) made.push_back(a.buffer);
      if (a.read_only && b.first_step != s && b.last_step == s) dying.push_back(a.buffer);
    });
    for (uint32_t to : made)
      for (uint32_t& from : dying) {
        if (from == kNoBuffer || !(program.buffers[to].bytes == program.buffers[from].bytes) ||
            (segment && !(segment->moved(to) == segment->moved(from))) || !may_write_over(program.steps[s], to, from))
          continue;
        program.buffers[from].last_step = program.buffers[to].last_step;
        program.buffers[to] = {};
        for_each_argument(program.steps[s], [&](Argument& a) {
          if (a.buffer == to) a.buffer = from;
        });
        becomes[to] = from;
        for (Program::Segment& later : program.segments)
          for (Program::Segment::Move& move : later.moves)
            if (move.buffer == to) move.buffer = from;
        std::replace(dying.begin(), dying.end(), uint32_t{from}, kNoBuffer);
        break;
      }
  }
}

}  // namespace ingot::codegen::lowering
