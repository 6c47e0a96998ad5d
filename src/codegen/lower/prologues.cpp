#include "codegen/lower/prologues.h"

#include <algorithm>
#include <optional>
#include <vector>

namespace ingot::codegen::lowering {
namespace {

/// What a product reads as A: rows of k elements, with strides over `sizes`, of which k is the last.
struct Rows {
  const Argument* a;
  Dims sizes, strides;
  int64_t element;
  std::optional<LoopStep>* prologue;
  Dim count(DimTable& dims) const { return dims.product(std::span(sizes).first(sizes.size() - 1)); }
};

/// Of a product that may have a prologue: its tiles read A as it lies, and B is packed before.
std::optional<Rows> rows_of(MatmulStep& step) {
  if (!step.b_is_weight || !step.batch.empty() || step.kernels->rows_of_a != RowsOfA::along || step.kernels->pack_a)
    return std::nullopt;
  return Rows{&step.a, {step.m, step.k}, step.a.strides, size_of(step.dtype), &step.prologue};
}

std::optional<Rows> rows_of(Conv2dStep& step) {
  if (step.form != ConvolutionForm::pixels || step.kernels->rows_of_a != RowsOfA::along || step.groups != 1)
    return std::nullopt;
  const Dims &n = step.input_shape, &s = step.input.strides;
  return Rows{&step.input, {n[0], n[2], n[3], n[1]}, {s[0], s[2], s[3], s[1]}, size_of(step.dtype), &step.prologue};
}

template <class Work>
std::optional<Rows> rows_of(Work&) {
  return std::nullopt;
}

/// Whether strides are those of a dense tensor of rows.
bool dense(DimTable& dims, const Dims& sizes, const Dims& strides, int64_t element) {
  Dim expected = element;
  for (size_t d = sizes.size(); d-- > 0; expected = dims.mul(expected, sizes[d]))
    if (!(sizes[d] == Dim(1)) && !dims.same(strides[d], expected)) return false;
  return true;
}

/// The only argument that it writes, or null.
const Argument* result_of(const LoopStep& loop) {
  const Argument* result = nullptr;
  for (const Argument& a : loop.arguments) {
    if (a.read_only) continue;
    if (result) return nullptr;
    result = &a;
  }
  return result;
}

/// Whether it may run for any rows of its space, with results elsewhere.
bool runs_by_rows(const LoopStep& loop) {
  return !loop.copies && loop.positions.empty() && loop.transposing.kernels.empty();
}

class Prologues {
 public:
  Prologues(LowerResult& result, int64_t fewest_rows)
      : explanation_(result.explanation),
        program_(result.program),
        dims_(program_.dims),
        fewest_rows_(fewest_rows),
        readers_(program_.buffers.size()),
        writers_(program_.buffers.size()) {
    for (uint32_t s = 0; s < program_.steps.size(); ++s) {
      becomes_.push_back(s);
      for_each_argument(program_.steps[s],
                        [&](const Argument& a) { (a.read_only ? readers_ : writers_)[a.buffer].push_back(s); });
    }
  }

  void join() {
    for (uint32_t s = 0; s < program_.steps.size(); ++s) {
      auto* loop = std::get_if<LoopStep>(&program_.steps[s].work);
      if (!loop || !runs_by_rows(*loop)) continue;
      const uint32_t product = only_reader(s, *loop);
      if (product != s) join_if_alike(s, *loop, product);
    }
    renumber();
  }

 private:
  /// The step that alone reads what a loop makes, and may do so later; or the loop itself.
  uint32_t only_reader(uint32_t s, const LoopStep& loop) const {
    const Argument* result = result_of(loop);
    if (!result || program_.buffers[result->buffer].place != Place::arena) return s;
    const std::vector<uint32_t>& readers = readers_[result->buffer];
    if (readers.size() != 1 || writers_[result->buffer].size() != 1 || readers[0] < s ||
        segment_of(program_, s) != segment_of(program_, readers[0]))
      return s;
    for (const Argument& a : loop.arguments)
      for (uint32_t writer : writers_[a.buffer])
        if (s < writer && writer <= readers[0]) return s;
    return readers[0];
  }

  void join_if_alike(uint32_t s, LoopStep& loop, uint32_t product) {
    Step &from = program_.steps[s], &to = program_.steps[product];
    const std::optional<Rows> rows = std::visit([](auto& work) { return rows_of(work); }, to.work);
    const Argument& result = *result_of(loop);
    if (!rows || *rows->prologue || rows->a->buffer != result.buffer) return;
    const Dim count = rows->count(dims_), loops = dims_.product(std::span(loop.space).first(loop.space.size() - 1));
    if (!dims_.same(loop.space.back(), rows->sizes.back()) || !dims_.same(loops, count) ||
        !dims_.same(result.offset, rows->a->offset) || !dense(dims_, loop.space, result.strides, rows->element) ||
        !dense(dims_, rows->sizes, rows->strides, rows->element) || dims_.hint(count) < fewest_rows_)
      return;
    // Nothing of it is written to memory, or read from there.
    const Dim saved = dims_.mul(dims_.mul(count, rows->sizes.back()), 2 * rows->element);
    to.name = from.name + "_" + to.name;
    to.operations = dims_.add(to.operations, from.operations);
    to.bytes = dims_.sub(dims_.add(to.bytes, from.bytes), saved);
    program_.buffers[result.buffer].bytes = 0;
    for (Program::Segment& segment : program_.segments)
      std::erase_if(segment.moves, [&](const auto& move) { return move.buffer == result.buffer; });
    explain(s, dims_.hint(saved));
    *rows->prologue = std::move(loop);
    becomes_[s] = product;
  }

  void explain(uint32_t s, int64_t bytes_saved) {
    for (FusionGroup& group : explanation_.groups) {
      if (std::find(group.steps.begin(), group.steps.end(), s) == group.steps.end() || group.stored.size() != 1)
        continue;
      for (FusionDecision& decision : explanation_.decisions)
        if (decision.value == group.stored[0])
          decision.fused = true, decision.reason = "the product that reads it makes its rows when their turn comes",
          decision.bytes_saved = bytes_saved;
      group.stored.clear();
    }
  }

  void renumber() {
    std::vector<uint32_t> number;  // of each step, without those that are gone
    uint32_t left = 0;
    for (uint32_t s = 0; s < becomes_.size(); ++s) {
      number.push_back(left);
      if (becomes_[s] != s) continue;
      if (left != s) program_.steps[left] = std::move(program_.steps[s]);
      ++left;
    }
    number.push_back(left);
    program_.steps.resize(left);
    for (Program::Segment& segment : program_.segments)
      segment.first_step = number[segment.first_step], segment.end_step = number[segment.end_step];
    for (FusionGroup& group : explanation_.groups)
      for (uint32_t& step : group.steps) step = number[becomes_[step]];
  }

  Explanation& explanation_;
  Program& program_;
  DimTable& dims_;
  const int64_t fewest_rows_;
  std::vector<std::vector<uint32_t>> readers_, writers_;  // of each buffer: an entry an argument
  std::vector<uint32_t> becomes_;                         // of each step: itself, or the product that it is a part of
};

}  // namespace

void join_prologues(LowerResult& result, const LowerOptions& options) {
  Prologues(result, options.prologue_rows).join();
}

}  // namespace ingot::codegen::lowering
