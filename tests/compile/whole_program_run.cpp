#include "whole_program_run.h"

#include <algorithm>
#include <cstring>
#include <stdexcept>

#include "eager/data.h"

namespace ingot::test {

int64_t Frame::plain(const HostNumber& number) const {
  switch (number.kind) {
    case HostNumber::Kind::constant:
      return number.value;
    case HostNumber::Kind::argument:
      return integers[static_cast<size_t>(number.value)];
    default: {
      const Tensor& t = registers[static_cast<size_t>(number.value)];
      return t.defined() && number.dim < t.dim() ? int64_t{t.size(number.dim)} : 2;
    }
  }
}

SizeArg Frame::size(const HostNumber& number) const {
  if (number.kind != HostNumber::Kind::size) return plain(number);
  const Tensor& t = registers[static_cast<size_t>(number.value)];
  return t.defined() && number.dim < t.dim() ? SizeArg(t.size(number.dim)) : SizeArg(2);
}

bool Frame::holds(const Condition& condition) const {
  switch (condition.kind) {
    case Condition::Kind::asked:
      return asked > 0;
    case Condition::Kind::rank: {
      const Tensor& t = registers[static_cast<size_t>(condition.number.value)];
      return t.defined() && t.dim() > condition.bound;
    }
    default:
      return plain(condition.number) > condition.bound;
  }
}

int OpRow::tensors() const {
  return std::strstr(text, "%c") ? 3 : std::strstr(text, "%b") ? 2 : std::strstr(text, "%a") ? 1 : 0;
}

bool OpRow::product() const { return std::strstr(text, "matmul") || std::strstr(text, "linear"); }

/// As a user's own expression has it: a Size remembers where it comes from, also where it becomes a plain number.
static Size as_given(const SizeArg& n) { return Size::of(n.value, n.origin); }

const std::vector<OpRow>& op_rows() {
  using In = const OpInput&;
  constexpr uint8_t w = OpRow::kWrites, late = OpRow::kChecksData;
  static const std::vector<OpRow> rows = {
      {"%a + %b", 6, [](In i) { return i.a + i.b; }},
      {"%a - %b", 3, [](In i) { return i.a - i.b; }},
      {"%a * %b", 4, [](In i) { return i.a * i.b; }},
      {"%a.maximum(%b)", 1, [](In i) { return i.a.maximum(i.b); }},
      {"%a * %s", 4, [](In i) { return i.a * i.s; }},
      {"%a + %0", 2, [](In i) { return i.a + as_given(i.n[0]); }},
      {"%a.relu()", 2, [](In i) { return i.a.relu(); }},
      {"%a.tanh()", 1, [](In i) { return i.a.tanh(); }},
      {"-%a", 1, [](In i) { return -i.a; }},
      {"%a.square()", 1, [](In i) { return i.a.square(); }},
      {"where(%a > 0, %a, %b)", 1, [](In i) { return where(i.a > 0, i.a, i.b); }},
      {"%a.to(kFloat64)", 1, [](In i) { return i.a.to(kFloat64); }},
      {"%a.to(kFloat32)", 1, [](In i) { return i.a.to(kFloat32); }},
      {"%a.to(kBFloat16)", 1, [](In i) { return i.a.to(kBFloat16); }},
      {"(%a * 3).to(kInt64)", 1, [](In i) { return (i.a.nan_to_num() * 3).clamp(-1e6, 1e6).to(kInt64); }},
      {"%a.clone()", 2, [](In i) { return i.a.clone(); }},
      {"%a.contiguous()", 2, [](In i) { return i.a.contiguous(); }},
      // Products, in each form whose second operand may be packed.
      {"%a.matmul(%b)", 14, [](In i) { return i.a.matmul(i.b); }},
      {"%a.matmul(%b.transpose(-1, -2))", 8, [](In i) { return i.a.matmul(i.b.transpose(-1, -2)); }},
      {"%a.matmul(%b[%0])", 14, [](In i) { return i.a.matmul(i.b.select(0, i.n[0])); }},
      {"%a.matmul(%b.select(1, %0))", 4, [](In i) { return i.a.matmul(i.b.select(1, i.n[0])); }},
      {"linear(%a, %b)", 6, [](In i) { return linear(i.a, i.b); }},
      {"linear(%a, %b[%0])", 6, [](In i) { return linear(i.a, i.b.select(0, i.n[0])); }},
      {"addmm(%c, %a, %b)", 3, [](In i) { return i.c.addmm(i.a, i.b); }},
      {"conv2d(%a, %b)", 4, [](In i) { return conv2d(i.a, i.b, {}, 1, 1); }},
      {"conv2d(%a, %b[%0])", 4, [](In i) { return conv2d(i.a, i.b.select(0, i.n[0]), {}, 1, 0); }},
      {"embedding(%a, %b)", 5, [](In i) { return embedding(i.a, i.b); }, late},
      {"embedding(%a[%0], %b)", 3, [](In i) { return embedding(i.a.select(0, i.n[0]), i.b); }, late},
      {"embedding(%a.narrow(0, %0, %1), %b)", 3, [](In i) { return embedding(i.a.narrow(0, i.n[0], i.n[1]), i.b); },
       late},
      {"%a.index_select(%k, %b)", 4, [](In i) { return i.a.index_select(i.k, i.b); }, late},
      {"%a.index({%b})", 3, [](In i) { return i.a.index({i.b}); }, late},
      {"%a.gather(%k, %b)", 2, [](In i) { return i.a.gather(i.k, i.b); }, late},
      {"%a.floor_divide(%b)", 1, [](In i) { return i.a.floor_divide(i.b); }, late},
      // Reductions and what else looks across elements.
      {"%a.sum(%k)", 4, [](In i) { return i.a.sum(i.k); }},
      {"%a.sum()", 2, [](In i) { return i.a.sum(); }},
      {"%a.mean(%k, true)", 2, [](In i) { return i.a.mean(i.k, true); }},
      {"%a.amax(%k)", 2, [](In i) { return i.a.amax(i.k); }},
      {"%a.argmax(%k)", 1, [](In i) { return i.a.argmax(i.k); }},
      {"softmax(%a, %k)", 3, [](In i) { return softmax(i.a, i.k); }},
      {"%a.cumsum(%k)", 1, [](In i) { return i.a.cumsum(i.k); }},
      {"layer_norm(%a, {%a.size(-1)})", 2, [](In i) { return layer_norm(i.a, {i.a.size(-1)}); }},
      {"cat({%a, %b}, %k)", 5,
       [](In i) {
         return cat({i.a, i.b}, i.k);
       }},
      {"stack({%a, %b}, %k)", 1,
       [](In i) {
         return stack({i.a, i.b}, i.k);
       }},
      {"%a.flip(%k)", 1, [](In i) { return i.a.flip(i.k); }},
      // Views.
      {"%a.select(%k, %0)", 6, [](In i) { return i.a.select(i.k, i.n[0]); }},
      {"%a[%0]", 4, [](In i) { return i.a[as_given(i.n[0])]; }},
      {"%a.narrow(%k, %0, %1)", 8, [](In i) { return i.a.narrow(i.k, i.n[0], i.n[1]); }},
      {"%a.slice(%k, %0)", 4, [](In i) { return i.a.slice(i.k, i.n[0]); }},
      {"%a.slice(%k, %0, None, 2)", 3, [](In i) { return i.a.slice(i.k, i.n[0], {}, 2); }},
      {"%a.index({Slice(%0, None, 2)})", 2, [](In i) { return i.a.index({Slice(as_given(i.n[0]), None, 2)}); }},
      {"%a.transpose(%k, %l)", 6, [](In i) { return i.a.transpose(i.k, i.l); }},
      {"%a.unsqueeze(%k)", 2, [](In i) { return i.a.unsqueeze(i.k); }},
      {"%a.squeeze(%k)", 2, [](In i) { return i.a.squeeze(i.k); }},
      {"%a.reshape({-1})", 3, [](In i) { return i.a.reshape({-1}); }},
      {"%a.view({-1, %0})", 2,
       [](In i) {
         return i.a.view({SizeArg(-1), i.n[0]});
       }},
      {"%a.reshape({%0, -1})", 2,
       [](In i) {
         return i.a.reshape({i.n[0], SizeArg(-1)});
       }},
      {"%a.expand({%0, -1})", 2,
       [](In i) {
         return i.a.expand({i.n[0], SizeArg(-1)});
       }},
      {"%a.flatten(%k, -1)", 1, [](In i) { return i.a.flatten(i.k); }},
      {"%a.diagonal(%0)", 1, [](In i) { return i.a.diagonal(as_given(i.n[0])); }},
      {"%a.unfold(%k, %0, 1)", 1, [](In i) { return i.a.unfold(i.k, i.n[0], 1); }},
      {"%a.chunk(2, %k)[0]", 1, [](In i) { return i.a.chunk(2, i.k)[0]; }},
      // Of sizes and numbers alone.
      {"zeros({%0, %1})", 1,
       [](In i) {
         return zeros({i.n[0], i.n[1]});
       }},
      {"arange(%0)", 1, [](In i) { return arange(as_given(i.n[0])); }},
      {"full({%0}, %s)", 1, [](In i) { return full({i.n[0]}, i.s); }},
      // Writes.
      {"%a.add_(%b)", 6, [](In i) { return i.a.add_(i.b); }, w},
      {"%a.mul_(%s)", 4, [](In i) { return i.a.mul_(i.s); }, w},
      {"%a.copy_(%b)", 5, [](In i) { return i.a.copy_(i.b); }, w},
      {"%a.fill_(%s)", 2, [](In i) { return i.a.fill_(i.s); }, w},
      {"%a.zero_()", 1, [](In i) { return i.a.zero_(); }, w},
      {"%a.select(%k, %0).copy_(%b)", 4, [](In i) { return i.a.select(i.k, i.n[0]).copy_(i.b); }, w},
      {"%a.narrow(%k, %0, %1).mul_(%s)", 4, [](In i) { return i.a.narrow(i.k, i.n[0], i.n[1]).mul_(i.s); }, w},
      {"%a.narrow(%k, %0, %1).copy_(%b)", 4, [](In i) { return i.a.narrow(i.k, i.n[0], i.n[1]).copy_(i.b); }, w},
      {"%a.transpose(%k, %l).add_(%b)", 2, [](In i) { return i.a.transpose(i.k, i.l).add_(i.b); }, w},
      {"%a.index_put_({%b}, %s)", 2, [](In i) { return i.a.index_put_({i.b}, i.s); }, static_cast<uint8_t>(w | late)},
      {"%a.index_add_(%k, %b, %c)", 2, [](In i) { return i.a.index_add_(i.k, i.b, i.c); },
       static_cast<uint8_t>(w | late)},
  };
  return rows;
}

int count_registers(const std::vector<Instruction>& instructions, int count) {
  for (const Instruction& i : instructions) {
    count = std::max(count, i.result + 1);
    // What is read may be written nowhere, once a program has become smaller.
    for (int operand : i.operands) count = std::max(count, operand + 1);
    for (const HostNumber& n : {i.numbers[0], i.numbers[1], i.condition.number}) count = std::max(count, n.value + 1);
    count = count_registers(i.other, count_registers(i.body, count));
  }
  return count;
}

bool may_fail_late(const std::vector<Instruction>& instructions) {
  return std::any_of(instructions.begin(), instructions.end(), [](const Instruction& i) {
    if (i.kind == Instruction::Kind::op)
      return (op_rows()[static_cast<size_t>(i.row)].traits & OpRow::kChecksData) != 0;
    return may_fail_late(i.body) || may_fail_late(i.other);
  });
}

void flush() { (void)ones({}).mul(2).item<double>(); }

bool run_op(const Instruction& instruction, Frame& frame) {
  const OpRow& row = op_rows()[static_cast<size_t>(instruction.row)];
  const int tensors = row.tensors();
  for (int i = 0; i < tensors; ++i)
    if (!frame.registers[static_cast<size_t>(instruction.operands[static_cast<size_t>(i)])].defined()) return false;
  auto operand = [&](int i) {
    return i < tensors ? frame.registers[static_cast<size_t>(instruction.operands[static_cast<size_t>(i)])] : Tensor();
  };
  // Handles of their own: the result may go where an operand stands.
  const Tensor a = operand(0), b = operand(1), c = operand(2);
  const double s = instruction.scalar_argument < 0 ? instruction.scalar
                                                   : frame.numbers[static_cast<size_t>(instruction.scalar_argument)];
  // An error that is told late finds on the tape what came after it.
  if (frame.late && frame.taped && row.traits & OpRow::kWrites) flush();
  Tensor result = row.run({a,
                           b,
                           c,
                           instruction.dims[0],
                           instruction.dims[1],
                           {frame.size(instruction.numbers[0]), frame.size(instruction.numbers[1])},
                           s});
  if (instruction.result >= 0) frame.registers[static_cast<size_t>(instruction.result)] = std::move(result);
  return true;
}

namespace {

// Captured tensors that were replaced by larger ones call by call would soon fill the memory. (Asked without the API:
// the sizes are to decide nothing that a script could see.)
constexpr int64_t kMostKept = 4096;  // elements

void attempt(const Instruction& instruction, Frame& frame) {
  // An error that only data tells is thrown by a compiled function where it computes: inside of this block only what
  // belongs to it may be waiting.
  const bool late = frame.late;
  if (late) flush();
  std::vector<Tensor> before = frame.registers;
  const double asked = frame.asked;
  try {
    run_instructions(instruction.body, frame);
    if (late) flush();
  } catch (const Error&) {
    if (late) try {
        flush();
      } catch (const Error&) {
        // The first error of the block was told by a later one.
      }
    frame.registers = std::move(before);
    frame.asked = asked;
    ++frame.caught;
  }
}

}  // namespace

void run_instructions(const std::vector<Instruction>& instructions, Frame& frame) {
  for (const Instruction& i : instructions) {
    switch (i.kind) {
      case Instruction::Kind::op: {
        const InRegion region(i.region);
        if (i.caught) {
          if (frame.late) flush();
          try {
            run_op(i, frame);
          } catch (const Error&) {
            ++frame.caught;
          }
        } else {
          run_op(i, frame);
        }
        break;
      }
      case Instruction::Kind::branch:
        run_instructions(frame.holds(i.condition) ? i.body : i.other, frame);
        break;
      case Instruction::Kind::repeat:
        for (int64_t n = std::clamp<int64_t>(frame.plain(i.numbers[0]), 0, 4); n > 0; --n)
          run_instructions(i.body, frame);
        break;
      case Instruction::Kind::attempt:
        attempt(i, frame);
        break;
      case Instruction::Kind::ask: {
        const Tensor& t = frame.registers[static_cast<size_t>(i.operands[0])];
        if (t.defined()) frame.asked = t.to(kFloat64).sum().item<double>();
        break;
      }
      case Instruction::Kind::replace:
      case Instruction::Kind::drop: {
        Tensor& t = frame.registers[static_cast<size_t>(i.operands[0])];
        if (i.kind == Instruction::Kind::drop)
          t = Tensor();
        else if (const Tensor& other = frame.registers[static_cast<size_t>(i.operands[1])];
                 other.defined() && eager::count(other.impl()->sizes) <= kMostKept)
          t = other;
        break;
      }
      case Instruction::Kind::fail:
        if (frame.holds(i.condition)) {
          if (frame.late) flush();
          throw std::runtime_error("stop");
        }
        break;
    }
  }
}

}  // namespace ingot::test
