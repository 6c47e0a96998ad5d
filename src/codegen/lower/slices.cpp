#include "codegen/lower/slices.h"

#include <algorithm>
#include <numeric>
#include <optional>
#include <set>
#include <string>

#include "codegen/lower/steps.h"

namespace ingot::codegen::lowering {
namespace {

/// What is known of a buffer: that no element of the batch has a part of its own, or how far these parts are apart.
struct Parts {
  enum class Kind : uint8_t { unknown, common, apart } kind = Kind::unknown;
  Dim distance;  // bytes; apart only
  static Parts common() { return {Kind::common, {}}; }
  static Parts apart(Dim distance) { return {Kind::apart, distance}; }
};

/// The dims over which a step runs and how its arguments move along them.
struct Walk {
  struct Access {
    const Argument* argument;
    std::vector<size_t> over;  // the dims of its strides
  };
  std::vector<Dim> sizes;
  std::vector<Dim*> places;  // of the sizes in the step, where the batch may be along them; else null
  std::vector<Access> accesses;
};

std::vector<size_t> numbers(size_t first, size_t end) {
  std::vector<size_t> list;
  for (size_t i = first; i < end; ++i) list.push_back(i);
  return list;
}
std::vector<size_t> joined(std::vector<size_t> list, std::initializer_list<size_t> more) {
  list.insert(list.end(), more);
  return list;
}

Walk over_space(Dims& space, const std::vector<Argument>& arguments) {
  Walk walk;
  for (Dim& size : space) walk.sizes.push_back(size), walk.places.push_back(&size);
  for (const Argument& a : arguments) walk.accesses.push_back({&a, numbers(0, space.size())});
  return walk;
}

std::optional<Walk> walk_of(LoopStep& step, DimTable&) {
  Walk walk = over_space(step.space, step.arguments);
  for (int64_t d : step.positions) walk.places[static_cast<size_t>(d)] = nullptr;
  // Columns are reduced, known to the kernel, or in panels.
  if (step.rows_whole || short_row(walk.sizes.back()) || !step.transposing.kernels.empty())
    walk.places.back() = nullptr;
  return walk;
}

std::optional<Walk> walk_of(ColumnStep& step, DimTable&) {
  if (step.positions) return std::nullopt;
  Walk walk = over_space(step.space, step.arguments);
  const size_t rank = walk.sizes.size();
  walk.places[rank - 2] = nullptr;
  for (const ColumnStep::Result& result : step.results)
    walk.accesses.push_back({&result.out, joined(numbers(0, rank - 2), {rank - 1})});
  return walk;
}

std::optional<Walk> walk_of(MatmulStep& step, DimTable&) {
  Walk walk = over_space(step.batch, {});
  const size_t m = step.batch.size(), n = m + 1, k = m + 2;
  walk.sizes.insert(walk.sizes.end(), {step.m, step.n, step.k});
  walk.places.insert(walk.places.end(), {&step.m, nullptr, nullptr});
  const std::vector<size_t> batch = numbers(0, m);
  walk.accesses = {{&step.a, joined(batch, {m, k})}, {&step.b, joined(batch, {k, n})}};
  for (const Argument& a : step.epilogue.arguments) walk.accesses.push_back({&a, joined(batch, {m, n})});
  return walk;
}

Dim results_along(DimTable& dims, Dim size, Dim taps, Dim stride, Dim padding, Dim dilation) {
  const Dim reach = dims.add(dims.mul(dilation, dims.sub(taps, 1)), 1);
  return dims.add(dims.floor_div(dims.sub(dims.add(size, dims.mul(2, padding)), reach), stride), 1);
}

std::optional<Walk> walk_of(Conv2dStep& step, DimTable& dims) {
  enum : size_t { images, channels, height, width, results, pixels };
  const Dims &in = step.input_shape, &taps = step.weight_shape;
  const Dim out_height = results_along(dims, in[2], taps[2], step.stride.h, step.padding.h, step.dilation.h),
            out_width = results_along(dims, in[3], taps[3], step.stride.w, step.padding.w, step.dilation.w);
  Walk walk{{in[0], in[1], in[2], in[3], taps[0], dims.mul(out_height, out_width)}, {&step.input_shape[0]}, {}};
  walk.places.resize(walk.sizes.size());
  walk.accesses = {{&step.input, {images, channels, height, width}}, {&step.weight, {}}};
  const bool rows = step.form == ConvolutionForm::patches;
  for (const Argument& a : step.epilogue.arguments)
    walk.accesses.push_back({&a, {images, rows ? results : pixels, rows ? pixels : results}});
  return walk;
}

std::optional<Walk> walk_of(AttentionStep& step, DimTable&) {
  enum : size_t { batch, heads, key_heads, queries, keys, depth, value_depth };
  AttentionProbabilities& p = step.probabilities;
  Walk walk{{p.batch, p.heads, p.key_heads, p.queries, p.keys, p.depth, step.value_depth}, {&p.batch}, {}};
  walk.places.resize(walk.sizes.size());
  walk.accesses = {{&p.query, {batch, heads, queries, depth}},
                   {&p.key, {batch, key_heads, keys, depth}},
                   {&step.value, {batch, key_heads, keys, value_depth}},
                   {&step.out, {batch, heads, queries, value_depth}}};
  if (p.mask) walk.accesses.push_back({&*p.mask, {batch, heads, queries, keys}});
  return walk;
}

template <class Work>
std::optional<Walk> walk_of(Work&, DimTable&) {
  return std::nullopt;
}

class Slicer {
 public:
  Slicer(const Program& program, const ir::Graph& graph, const LowerOptions& options)
      : program_(program), graph_(graph), options_(options), parts_(program.buffers.size()) {}

  /// Finds the segments that gain most; false where there are none.
  bool find() {
    if (!find_batch()) return false;
    follow_common();
    for (size_t s = 0; s < program_.steps.size(); ++s) along_.push_back(look_at(s));
    follow_buffers();
    if (options_.slice_size) {
      if (!divides(options_.slice_size)) return false;
      slice_ = options_.slice_size;
      take_all();
    } else {
      const int64_t all = dims().hint(batch_);
      double most = 0;
      for (int64_t slice = options_.least_slice; slice < all; ++slice) {
        if (!divides(slice)) continue;
        const Chosen chosen = choose(slice);
        if (chosen.gain > most) most = chosen.gain, slice_ = slice, segments_ = chosen.segments;
      }
    }
    return !segments_.empty();
  }

  /// The program with the sizes of slices in its segments. What is common stands before them. Returns where each step
  /// is now.
  std::vector<uint32_t> rewrite() {
    const Dim slice = slice_, slices = dims().floor_div(batch_, slice);
    std::vector<uint32_t> order(program_.steps.size());
    std::iota(order.begin(), order.end(), 0);
    for (const Range& range : segments_) {
      const auto begin = order.begin() + static_cast<ptrdiff_t>(range.first),
                 end = order.begin() + static_cast<ptrdiff_t>(range.end),
                 moving = std::stable_partition(begin, end, [&](uint32_t s) { return !along_[s].moves; });
      Program::Segment& segment = made_.emplace_back();
      segment.first_step = static_cast<uint32_t>(moving - order.begin());
      segment.end_step = static_cast<uint32_t>(range.end);
      segment.slices = slices;
      std::set<uint32_t> along;
      for (size_t s = range.first; s < range.end; ++s) {
        if (!along_[s].moves) continue;
        Step& step = program_.steps[s];
        Walk walk = *walk_of(step);
        *walk.places[along_[s].dim] = dims().mul(along_[s].times, slice);
        for (Dim* cost : {&step.operations, &step.bytes}) *cost = dims().floor_div(dims().mul(*cost, slice), batch_);
        for (const Walk::Access& a : walk.accesses)
          if (parts_[a.argument->buffer].kind == Parts::Kind::apart) along.insert(a.argument->buffer);
      }
      for (uint32_t b : along) {
        const Dim part = dims().mul(parts_[b].distance, slice);
        if (is_within(b, range))
          program_.buffers[b].bytes = part;
        else
          segment.moves.push_back({b, part});
      }
    }
    program_.segments.insert(program_.segments.end(), made_.begin(), made_.end());
    std::ranges::sort(program_.segments, {}, &Program::Segment::first_step);
    std::vector<Step> steps;
    std::vector<uint32_t> now(order.size());
    for (uint32_t s : order)
      now[s] = static_cast<uint32_t>(steps.size()), steps.push_back(std::move(program_.steps[s]));
    program_.steps = std::move(steps);
    return now;
  }

  /// A line for each segment.
  std::vector<std::string> notes() {
    std::vector<std::string> lines;
    for (size_t i = 0; i < segments_.size(); ++i) {
      const Range& range = segments_[i];
      int64_t bytes = 0;
      for (size_t b = 0; b < parts_.size(); ++b)
        if (is_within(static_cast<uint32_t>(b), range)) bytes = std::max(bytes, whole_[b]);
      lines.push_back("steps " + std::to_string(made_[i].first_step) + " to " + std::to_string(range.end - 1) +
                      " run over the batch in slices of " + std::to_string(slice_) + " of " + dims().str(batch_) +
                      ": the largest result between them, " + std::to_string(bytes / 1024) + " KiB, takes " +
                      std::to_string(bytes * slice_ / std::max<int64_t>(dims().hint(batch_), 1) / 1024) + " KiB");
    }
    return lines;
  }

  Program& program() { return program_; }

 private:
  struct Along {
    bool alone = false;  // each element of the batch is computed from its own parts, or from what is common
    bool moves = false;  // there are such parts, along
    size_t dim = 0;      // of the walk, of whose size
    Dim times = 1;       // so many belong to each
  };
  struct Range {
    size_t first, end;  // steps
  };
  struct Chosen {
    double gain = 0;  // bytes that do not go to memory and back
    std::vector<Range> segments;
  };

  DimTable& dims() { return program_.dims; }
  std::optional<Walk> walk_of(Step& step) {
    return std::visit([&](auto& work) { return lowering::walk_of(work, dims()); }, step.work);
  }
  bool divides(int64_t slice) {
    return batch_.is_constant() ? slice < batch_.code && batch_.code % slice == 0 : slice == 1;
  }

  bool find_batch() {
    bool found = false;
    for (uint32_t b = 0; b < program_.buffers.size(); ++b) {
      const ProgramBuffer& buffer = program_.buffers[b];
      if (buffer.place != Place::input) continue;
      const ir::InputInfo& input = graph_.inputs[buffer.number];
      const ir::TensorType& type = graph_.type(input.value);
      parts_[b] = Parts::common();
      if (input.constant || type.shape.empty() || input.strides[0] == Dim(0)) continue;
      if (!found && dims().hint(type.shape[0]) > 1) batch_ = type.shape[0], found = true;
      if (found && type.shape[0] == batch_)
        parts_[b] = Parts::apart(dims().mul(input.strides[0], ingot::size_of(type.dtype)));
    }
    return found;
  }

  /// What is made of common buffers alone is common, too, unless it joins others in a buffer.
  void follow_common() {
    std::vector<uint32_t> writers(parts_.size());
    for (const Step& step : program_.steps)
      for_each_argument(step, [&](const Argument& a) { writers[a.buffer] += !a.read_only; });
    for (const Step& step : program_.steps) {
      bool common = true;
      for_each_argument(step, [&](const Argument& a) {
        if (a.read_only) common = common && parts_[a.buffer].kind == Parts::Kind::common;
      });
      if (!common) continue;
      for_each_argument(step, [&](const Argument& a) {
        if (!a.read_only && --writers[a.buffer] == 0) parts_[a.buffer] = Parts::common();
      });
    }
  }

  Dim whole_bytes(size_t b) {
    const ProgramBuffer& buffer = program_.buffers[b];
    if (buffer.place != Place::output) return buffer.bytes;
    const ir::TensorType& type = graph_.type(graph_.outputs[buffer.number]);
    return dims().mul(dims().product(type.shape), ingot::size_of(type.dtype));
  }

  /// How a step treats the batch. A buffer that it is the first to write, and does not write along the batch, is taken
  /// for parts of equal size one behind the other: a later step that finds it otherwise is not along.
  Along look_at(size_t s) {
    Step& step = program_.steps[s];
    const bool sequence = segment_of(program_, static_cast<uint32_t>(s)) != nullptr;
    auto take_for_parts = [&] {
      for_each_argument(step, [&](const Argument& a) {
        if (parts_[a.buffer].kind != Parts::Kind::unknown) return;
        const std::optional<Dim> distance = quotient(whole_bytes(a.buffer));
        parts_[a.buffer] = distance && !(*distance == Dim(0)) ? Parts::apart(*distance) : Parts::common();
      });
    };
    bool reads_parts = false;
    for_each_argument(step, [&](const Argument& a) {
      reads_parts = reads_parts || (a.read_only && parts_[a.buffer].kind == Parts::Kind::apart);
    });
    if (!reads_parts) take_for_parts();
    bool parts = false;
    for_each_argument(step, [&](const Argument& a) { parts = parts || parts_[a.buffer].kind == Parts::Kind::apart; });
    if (!parts) return {.alone = !sequence};
    if (sequence) {
      take_for_parts();
      return {};
    }
    if (const std::optional<Walk> walk = walk_of(step))
      for (size_t d = 0; d < walk->sizes.size(); ++d) {
        if (!walk->places[d]) continue;
        const std::optional<Dim> times = quotient(walk->sizes[d]);
        if (!times || !goes_along(*walk, d, *times)) continue;
        for (const Walk::Access& a : walk->accesses)
          if (parts_[a.argument->buffer].kind == Parts::Kind::unknown)
            parts_[a.argument->buffer] = Parts::apart(dims().mul(stride(a, d), *times));
        return {true, true, d, *times};
      }
    take_for_parts();
    return {};
  }

  /// size / batch, where it divides.
  std::optional<Dim> quotient(Dim size) {
    if (size.is_constant() && !batch_.is_constant()) return std::nullopt;
    const Dim times = dims().floor_div(size, batch_);
    if (dims().same(dims().mul(times, batch_), size)) return times;
    return std::nullopt;
  }

  static Dim stride(const Walk::Access& a, size_t dim) {
    const auto it = std::find(a.over.begin(), a.over.end(), dim);
    return it == a.over.end() ? Dim(0) : a.argument->strides[static_cast<size_t>(it - a.over.begin())];
  }

  /// Whether the step computes each element of the batch from its own parts, when `times` of a dim belong to each.
  bool goes_along(const Walk& walk, size_t dim, Dim times) {
    return std::all_of(walk.accesses.begin(), walk.accesses.end(), [&](const Walk::Access& a) {
      const uint32_t b = a.argument->buffer;
      const Dim along = stride(a, dim);
      if (parts_[b].kind == Parts::Kind::common) return a.argument->read_only && along == Dim(0);
      if (along == Dim(0)) return false;
      const Dim distance = dims().mul(along, times);
      if (parts_[b].kind == Parts::Kind::apart && !dims().same(distance, parts_[b].distance)) return false;
      if (program_.buffers[b].place == Place::input) return true;
      return dims().same(dims().mul(distance, batch_), whole_bytes(b)) && stays_in_part(walk, a, dim, times, distance);
    });
  }

  /// Whether an argument reaches no further than the next part.
  bool stays_in_part(const Walk& walk, const Walk::Access& a, size_t dim, Dim times, Dim distance) {
    Dim last = a.argument->offset;
    for (size_t i = 0; i < a.over.size(); ++i) {
      const Dim size = a.over[i] == dim ? times : walk.sizes[a.over[i]];
      if (size == Dim(0)) return false;
      if (dims().hint(a.argument->strides[i]) < 0) return false;  // read backwards: how far is not asked
      last = dims().add(last, dims().mul(dims().sub(size, 1), a.argument->strides[i]));
    }
    return dims().less(last, distance);
  }

  /// Where buffers are in use, and how large they are.
  void follow_buffers() {
    first_.assign(parts_.size(), program_.steps.size());
    last_.assign(parts_.size(), 0);
    for (size_t s = 0; s < program_.steps.size(); ++s)
      for_each_argument(program_.steps[s], [&](const Argument& a) {
        first_[a.buffer] = std::min(first_[a.buffer], s);
        last_[a.buffer] = std::max(last_[a.buffer], s);
      });
    for (size_t b = 0; b < parts_.size(); ++b) whole_.push_back(dims().hint(whole_bytes(b)));
  }
  bool is_within(uint32_t b, const Range& range) const {
    return program_.buffers[b].place == Place::arena && parts_[b].kind == Parts::Kind::apart &&
           first_[b] >= range.first && last_[b] < range.end;
  }

  void take_all() {
    for (size_t s = 0; s < along_.size(); ++s) {
      size_t end = s, moving = 0;
      for (; end < along_.size() && along_[end].alone; ++end) moving += along_[end].moves;
      if (moving > 1) segments_.push_back({s, end});
      s = end;
    }
  }

  /// Segments that do not meet and together keep most bytes from memory: what is stored and read between their steps
  /// and is too large for the caches as a whole, less the weights that each slice reads again and what a step costs.
  Chosen choose(int64_t slice) {
    constexpr double kStep = 64 << 10;  // bytes, for which there is time while a short step begins and ends
    constexpr double kWeights = 2;      // their panels leave the tiles' L2, too
    const auto slices = static_cast<double>(dims().hint(batch_)) / static_cast<double>(slice);
    const auto cache = static_cast<double>(options_.cache_bytes);
    const size_t n = along_.size();
    std::vector<double> cost(n), traffic(parts_.size());
    double weights = 0;
    for (const ir::InputInfo& input : graph_.inputs)
      if (input.constant) weights += bytes_of(input.value);
    std::vector<std::vector<uint32_t>> starting(n);  // buffers, by the step that makes them
    for (size_t s = 0; s < n; ++s) {
      double bytes = kStep;
      for_each_argument(program_.steps[s], [&](const Argument& a) {
        const ProgramBuffer& buffer = program_.buffers[a.buffer];
        if (parts_[a.buffer].kind == Parts::Kind::apart)
          traffic[a.buffer] += a.read_only ? 1 : 0.5;  // stores are waited for less
        else if (buffer.place == Place::input && weights > cache)
          bytes += kWeights * bytes_of(graph_.inputs[buffer.number].value);
      });
      cost[s] = along_[s].moves ? bytes * (slices - 1) : 0;
    }
    for (uint32_t b = 0; b < parts_.size(); ++b) {
      const auto bytes = static_cast<double>(whole_[b]);
      traffic[b] *= bytes > cache / 2 && bytes / slices <= cache ? bytes : 0;
      if (is_within(b, {0, n}) && traffic[b] > 0) starting[first_[b]].push_back(b);
    }
    if (std::ranges::all_of(starting, [](const auto& list) { return list.empty(); })) return {};
    std::vector<Chosen> best(n + 1);  // of the steps before one
    for (size_t end = 1; end <= n; ++end) {
      best[end] = best[end - 1];
      double gain = 0;
      size_t first_of_best = end;
      for (size_t first = end; first-- > 0 && along_[first].alone;) {
        gain -= cost[first];
        for (uint32_t b : starting[first])
          if (last_[b] < end) gain += traffic[b];
        if (best[first].gain + gain <= best[end].gain) continue;
        best[end].gain = best[first].gain + gain;
        first_of_best = first;
      }
      if (first_of_best == end) continue;
      best[end].segments = best[first_of_best].segments;
      best[end].segments.push_back({first_of_best, end});
    }
    return best[n];
  }

  double bytes_of(ir::ValueId value) {
    const ir::TensorType& type = graph_.type(value);
    auto bytes = static_cast<double>(ingot::size_of(type.dtype));
    for (Dim d : type.shape) bytes *= static_cast<double>(dims().hint(d));
    return bytes;
  }

  Program program_;
  const ir::Graph& graph_;
  const LowerOptions& options_;
  Dim batch_ = 0;
  std::vector<Parts> parts_;          // by buffer
  std::vector<Along> along_;          // by step
  std::vector<size_t> first_, last_;  // steps that touch a buffer
  std::vector<int64_t> whole_;        // bytes of a buffer
  int64_t slice_ = 0;
  std::vector<Range> segments_;
  std::vector<Program::Segment> made_;  // of these
};

}  // namespace

void slice_batch(LowerResult& result, const ir::Graph& graph, const LowerOptions& options) {
  constexpr size_t kMostSteps = 1024;  // more take too long to choose among
  if (!options.slices() || result.program.steps.size() < 2 || result.program.steps.size() > kMostSteps) return;
  Slicer slicer(result.program, graph, options);
  std::vector<uint32_t> now;
  try {
    if (!slicer.find()) return;
    now = slicer.rewrite();
  } catch (const SizeOverflow&) {
    return;  // sizes too large to be told apart
  }
  for (FusionGroup& group : result.explanation.groups)
    for (uint32_t& step : group.steps) step = now[step];
  for (std::string& note : slicer.notes()) result.explanation.notes.push_back(std::move(note));
  result.program = std::move(slicer.program());
}

}  // namespace ingot::codegen::lowering
