#include "whole_program.h"

#include <algorithm>
#include <random>

#include "whole_program_run.h"

namespace ingot::test {
namespace {

using Mode = WholeProgram::Mode;
using Kind = Instruction::Kind;

class Generator {
 public:
  explicit Generator(uint64_t seed)
      : random_(static_cast<uint32_t>(seed * 2654435761u ^ seed >> 32)), frame_{{}, integers_, numbers_} {
    program_.seed = seed;
  }

  WholeProgram run() {
    const int mode = pick(10);
    program_.mode = mode < 5 ? Mode::checked : mode < 8 ? Mode::frozen : mode == 8 ? Mode::background : Mode::threads;
    catches_all_ = pick(3) == 0;
    seeks_product_ = pick(3) == 0;
    writes_ = program_.mode == Mode::threads ? pick(4) == 0 : pick(4) != 0;
    choose_tensors();
    frame_.registers = sample_registers(program_);
    outside_ = frame_.registers.size();
    frame_.registers.resize(outside_ + 40);
    next_ = static_cast<int>(outside_);
    program_.instructions = block(3 + pick(8), 2);
    choose_results();
    choose_calls();
    return std::move(program_);
  }

 private:
  int pick(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  bool chance(int percent) { return pick(100) < percent; }
  uint32_t seed() { return static_cast<uint32_t>(random_()); }
  bool calls_alone() const { return program_.mode != Mode::threads; }

  void choose_tensors() {
    const int k = 3 + pick(3);
    auto& arguments = program_.argument_shapes;
    auto& captures = program_.capture_shapes;
    const bool windows = chance(12);
    const int dtype = chance(80) ? 0 : chance(50) ? 1 : 3;
    auto floats = [&]() -> ShapeTemplate {
      switch (pick(7)) {
        case 0:
          return {{~0, k}, dtype};
        case 1:
          return {{k}, dtype};
        case 2:
          return {{~0, ~1}, dtype};
        case 3:
          return {{~1, ~0, k}, dtype};
        case 4:
          return {{1, ~1}, dtype};
        case 5:
          return {{~2, k}, dtype};
        default:
          return {{~0, ~2, ~1}, dtype};
      }
    };
    arguments.push_back(windows      ? ShapeTemplate{{~0, 2, ~2, 5}, dtype}
                        : chance(70) ? ShapeTemplate{{~0, k}, dtype}
                                     : ShapeTemplate{{~0, ~1}, dtype});
    for (int n = pick(3); n > 0; --n) arguments.push_back(floats());
    if (chance(45)) arguments.push_back({{chance(50) ? ~0 : ~1}, 2});
    auto weight = [&]() -> ShapeTemplate {
      switch (pick(6)) {
        case 0:
        case 1:
          return {{4, k, k}, dtype};
        case 2:
          return {{k, k}, dtype};
        case 3:
          return {{6, k}, dtype};
        case 4:
          return {{k}, dtype};
        default:
          return {{k, 2 * k}, dtype};
      }
    };
    if (windows)
      captures.push_back(chance(50) ? ShapeTemplate{{3, 2, 3, 3}, dtype} : ShapeTemplate{{3, 3, 2, 2, 2}, dtype});
    for (int n = 1 + pick(3); n > 0; --n) captures.push_back(weight());
    if (chance(25)) captures.push_back({{3}, 2});
    for (size_t i = 0; i < captures.size(); ++i) {
      constexpr TensorRecipe::Kind kinds[] = {TensorRecipe::Kind::whole, TensorRecipe::Kind::permuted,
                                              TensorRecipe::Kind::offset, TensorRecipe::Kind::strided};
      program_.captures.push_back({chance(60) ? kinds[0] : kinds[pick(4)], 0, 1 + pick(5), seed()});
    }
  }

  HostNumber number(const Instruction& i) {
    HostNumber n;
    const int kind = pick(100);
    if (kind < 35) {
      n.value = pick(10) == 0 ? -1 : pick(4);
    } else if (kind < 75) {
      n.kind = HostNumber::Kind::argument;
      n.value = pick(3);
    } else {
      n.kind = chance(70) ? HostNumber::Kind::size : HostNumber::Kind::plain_size;
      n.value = i.operands[0] >= 0 && chance(60) ? i.operands[0] : any_register();
      n.dim = pick(3);
    }
    return n;
  }

  int any_register() {
    for (int tries = 0; tries < 20; ++tries) {
      // The latest are taken more often; arguments and captured tensors always come again.
      const int r = chance(45) ? next_ - 1 - pick(std::min(next_, 4)) : pick(next_);
      if (frame_.registers[static_cast<size_t>(r)].defined()) return r;
    }
    return 0;
  }

  bool is_captured(const Tensor& t) const {
    for (size_t i = program_.argument_shapes.size(); i < outside_; ++i)
      if (frame_.registers[i].defined() && t.shares_storage(frame_.registers[i])) return true;
    return false;
  }

  Condition condition() {
    Condition c;
    switch (pick(6)) {
      case 0:
        c.kind = Condition::Kind::asked;
        break;
      case 1:
        c.kind = Condition::Kind::rank;
        c.number.value = any_register();
        c.bound = 1 + pick(2);
        break;
      case 2:
        c.kind = Condition::Kind::number;
        c.number.kind = chance(50) ? HostNumber::Kind::size : HostNumber::Kind::plain_size;
        c.number.value = any_register();
        c.bound = pick(4);
        break;
      default:
        c.number.kind = HostNumber::Kind::argument;
        c.number.value = pick(3);
        c.bound = pick(2);
    }
    return c;
  }

  bool make_op(Instruction& i) {
    static const int weights = [] {
      int sum = 0;
      for (const OpRow& row : op_rows()) sum += row.weight;
      return sum;
    }();
    for (int tries = 0; tries < 60; ++tries) {
      i = {};
      int at = pick(weights);
      // Products and views of captured tensors begin many programs.
      const bool product = next_ == static_cast<int>(outside_) && tries < 50 && seeks_product_;
      while (at >= op_rows()[static_cast<size_t>(i.row)].weight) at -= op_rows()[static_cast<size_t>(i.row++)].weight;
      const OpRow& row = op_rows()[static_cast<size_t>(i.row)];
      const bool writes = row.traits & OpRow::kWrites;
      if (writes && !writes_) continue;
      if (product && !row.product()) continue;
      for (int o = 0; o < row.tensors(); ++o) i.operands[static_cast<size_t>(o)] = any_register();
      if (row.tensors()) {
        const Tensor& a = frame_.registers[static_cast<size_t>(i.operands[0])];
        if (writes && program_.mode == Mode::threads && is_captured(a)) continue;
        const int rank = std::max<int>(1, static_cast<int>(a.dim()));
        for (int& d : i.dims) d = pick(rank) - (chance(30) ? rank : 0);
      }
      for (HostNumber& n : i.numbers) n = number(i);
      i.scalar = (pick(13) - 6) / 4.0;
      if (chance(35)) i.scalar_argument = pick(2);
      i.caught = catches_all_ && !(row.traits & OpRow::kChecksData);
      // Now and then over what stood there.
      const bool reuse = next_ > static_cast<int>(outside_) && chance(15);
      i.result = writes ? -1 : reuse ? static_cast<int>(outside_) + pick(next_ - static_cast<int>(outside_)) : next_;
      if (i.result >= static_cast<int>(frame_.registers.size())) return false;
      try {
        run_op(i, frame_);
        if (i.result >= 0 && frame_.registers[static_cast<size_t>(i.result)].numel() > 1500) {
          frame_.registers[static_cast<size_t>(i.result)] = Tensor();
          continue;
        }
      } catch (const Error&) {
        // A few that are refused at these sizes; they may pass at others.
        if (!chance(3) || (!i.caught && !chance(20))) continue;
      }
      if (i.result == next_) ++next_;
      return true;
    }
    return false;
  }

  std::vector<Instruction> block(int length, int depth) {
    std::vector<Instruction> instructions;
    for (int at = 0; at < length; ++at) {
      Instruction i;
      const int kind = depth > 0 ? pick(100) : 12 + pick(88);
      if (kind < 6) {
        i.kind = Kind::branch;
        i.condition = condition();
        i.body = block(1 + pick(3), depth - 1);
        i.other = block(pick(3), depth - 1);
      } else if (kind < 8) {
        i.kind = Kind::repeat;
        i.numbers[0].kind = HostNumber::Kind::argument;
        i.numbers[0].value = pick(3);
        i.body = block(1 + pick(2), depth - 1);
      } else if (kind < 12) {
        i.kind = Kind::attempt;
        i.body = block(1 + pick(4), depth - 1);
      } else if (kind < 15) {
        i.kind = Kind::ask;
        i.operands[0] = any_register();
      } else if (kind < 17 && calls_alone() && program_.mode != Mode::frozen &&
                 outside_ > program_.argument_shapes.size()) {
        i.kind = Kind::replace;
        const int arguments = static_cast<int>(program_.argument_shapes.size());
        i.operands[0] = arguments + pick(static_cast<int>(outside_) - arguments);
        i.operands[1] = any_register();
        // What is tried after it sees both, so that a block that is not run hides nothing.
      } else if (kind < 19 && next_ > static_cast<int>(outside_)) {
        i.kind = Kind::drop;
        i.operands[0] = static_cast<int>(outside_) + pick(next_ - static_cast<int>(outside_));
      } else if (kind == 19 && chance(30)) {
        i.kind = Kind::fail;
        i.condition = condition();
      } else if (!make_op(i)) {
        continue;
      }
      instructions.push_back(std::move(i));
    }
    return instructions;
  }

  void choose_results() {
    for (int r = 0; r < next_; ++r)
      if (r + 1 == next_ || chance(r < static_cast<int>(outside_) ? 8 : 45)) program_.results.push_back(r);
  }

  int a_size() {
    constexpr int sizes[] = {0, 0, 1, 1, 1, 2, 3, 4, 5, 7, 17};
    return sizes[pick(11)];
  }

  void choose_calls() {
    ProgramCall call;
    call.sizes = {3, 2, 5};
    if (chance(40))
      for (int& size : call.sizes) size = a_size();
    for (size_t i = 0; i < 3; ++i) call.integers[i] = pick(3);
    call.numbers = {0.5, -1.25};
    const bool always_plain = program_.mode == Mode::frozen && chance(60);
    for (int n = 0, count = 6 + pick(9); n < count; ++n) {
      // Mostly one thing changes at a time, so that what was learnt is used again.
      if (n && chance(45)) call.sizes[static_cast<size_t>(pick(3))] = a_size();
      if (n && chance(10))
        call.sizes = {3, 2, 5};
      else if (n && chance(25))
        for (int& size : call.sizes) size = a_size();
      if (n && chance(75))
        for (int64_t& integer : call.integers)
          if (chance(50)) integer = pick(10) ? pick(4) : pick(12) - 4;
      if (n && chance(40)) call.numbers[static_cast<size_t>(pick(2))] = (pick(17) - 8) / 4.0;
      call.threads = chance(5) ? 1 + pick(3) : 0;
      call.arguments.clear();
      for (size_t i = 0; i < program_.argument_shapes.size(); ++i) call.arguments.push_back(recipe(i, always_plain));
      call.events.clear();
      if (n && calls_alone() && chance(30)) {
        using EventKind = Event::Kind;
        Event event;
        event.kind = static_cast<EventKind>(pick(program_.mode == Mode::frozen ? 3 : 7));
        event.capture = pick(8);
        event.seed = seed();
        call.events.push_back(event);
      }
      program_.calls.push_back(call);
    }
  }

  TensorRecipe recipe(size_t argument, bool plain) {
    using RecipeKind = TensorRecipe::Kind;
    TensorRecipe r;
    r.seed = seed();
    r.shift = 1 + pick(4);
    if (plain || chance(45)) return r;
    constexpr RecipeKind own[] = {RecipeKind::permuted, RecipeKind::offset,  RecipeKind::offset,
                                  RecipeKind::offset,   RecipeKind::strided, RecipeKind::expanded};
    constexpr RecipeKind shared[] = {RecipeKind::same, RecipeKind::overlapping, RecipeKind::capture,
                                     RecipeKind::capture_view, RecipeKind::result};
    if (!calls_alone() || chance(60)) {
      r.kind = own[pick(6)];
    } else {
      r.kind = shared[pick(5)];
      r.source = pick(4);
      if (r.kind == RecipeKind::same || r.kind == RecipeKind::overlapping)
        r.source = argument ? pick(static_cast<int>(argument)) : 9;
      if (chance(30)) r.shift = 0;
    }
    return r;
  }

  std::mt19937 random_;
  WholeProgram program_;
  const std::vector<int64_t> integers_ = {1, 2, 0};
  const std::vector<double> numbers_ = {0.5, -1.25};
  Frame frame_;
  size_t outside_ = 0;
  int next_ = 0;
  bool catches_all_ = false, writes_ = false, seeks_product_ = false;
};

/// Bits of the registers that are written themselves, not as a view.
uint32_t written(const std::vector<Instruction>& instructions) {
  uint32_t bits = 0;
  for (const Instruction& i : instructions) {
    const bool writes = i.kind == Kind::op && op_rows()[static_cast<size_t>(i.row)].traits & OpRow::kWrites;
    if (writes && i.operands[0] < 32) bits |= uint32_t{1} << i.operands[0];
    bits |= written(i.body) | written(i.other);
  }
  return bits;
}

void add_gradients(WholeProgram& program) {
  std::mt19937 random(static_cast<uint32_t>(program.seed * 2246822519u ^ program.seed >> 32));
  auto pick = [&](int n) { return static_cast<int>(random() % static_cast<uint32_t>(n)); };
  // A frozen function writes no tape.
  if (program.mode == Mode::frozen) program.mode = Mode::checked;
  Gradients& g = program.gradients;
  const int kind = pick(10);
  g.kind = kind < 4 ? Gradients::Kind::grad : kind < 6 ? Gradients::Kind::second : Gradients::Kind::accumulate;
  if (program.mode == Mode::threads) g.kind = Gradients::Kind::grad;  // what they share accumulates in any order
  g.outside = pick(2);
  // A leaf may not be written: mostly what is not.
  const uint32_t leaves = pick(6) ? ~written(program.instructions) : ~uint32_t{0};
  const uint32_t chosen = (static_cast<uint32_t>(random()) | static_cast<uint32_t>(random())) & leaves;
  const size_t arguments = program.argument_shapes.size();
  g.arguments = chosen & ((uint32_t{1} << arguments) - 1);
  g.captures = chosen >> arguments;
}

/// A third of the programs: some of their ops, and some calls, are in regions of autocast.
class Regions {
 public:
  explicit Regions(uint64_t seed) : random_(static_cast<uint32_t>(seed * 2654435761u ^ seed >> 32)) {}
  void add(WholeProgram& program) {
    if (random_() % 3) return;
    for (ProgramCall& call : program.calls) call.region = any(3);
    add(program.instructions);
  }

 private:
  Region any(uint32_t of) { return random_() % of ? Region::same : static_cast<Region>(1 + random_() % 3); }
  void add(std::vector<Instruction>& instructions) {
    for (Instruction& i : instructions) {
      if (i.kind == Kind::op) i.region = any(4);
      add(i.body), add(i.other);
    }
  }
  std::mt19937 random_;
};

}  // namespace

WholeProgram whole_program(uint64_t seed, bool gradients) {
  WholeProgram program = Generator(seed).run();
  Regions(seed).add(program);
  if (gradients) add_gradients(program);
  return program;
}

}  // namespace ingot::test
