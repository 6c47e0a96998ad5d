// The interpreter of whole programs: the callable that is compiled.
#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "ingot.h"
#include "whole_program.h"

namespace ingot::test {

/// Registers and host numbers of one call.
struct Frame {
  std::vector<Tensor> registers;  // arguments, captured tensors, then what the program makes
  const std::vector<int64_t>& integers;
  const std::vector<double>& numbers;
  bool late = false;   // the program has ops that may fail for what their tensors hold
  bool taped = false;  // what is written to a tensor from outside may go on its tape
  double asked = 0;
  int64_t caught = 0;

  int64_t plain(const HostNumber& number) const;
  SizeArg size(const HostNumber& number) const;
  bool holds(const Condition& condition) const;
};

/// Operands of one op.
struct OpInput {
  const Tensor &a, &b, &c;
  int k, l;  // dims
  std::array<SizeArg, 2> n;
  double s;
};

struct OpRow {
  const char* text;  // %r %a %b %c: registers; %k %l: dims; %0 %1: host integers; %s: a double
  int weight;
  Tensor (*run)(const OpInput&);
  enum : uint8_t { kWrites = 1, kChecksData = 2 };
  uint8_t traits = 0;
  int tensors() const;
  bool product() const;
};
const std::vector<OpRow>& op_rows();

/// Arguments and captured tensors of the program at sizes 3, 2, 5: what ops are tried on while it is made.
std::vector<Tensor> sample_registers(const WholeProgram& program);

/// Number of registers that instructions use.
int count_registers(const std::vector<Instruction>& instructions, int count = 0);
/// True if an op may fail for what its tensors hold: a compiled function says so at the next flush, which may be any op
/// after it (where a path goes on op by op).
bool may_fail_late(const std::vector<Instruction>& instructions);

/// What was recorded is computed here, and what it has to complain of is thrown here.
void flush();

/// A thread's region of autocast while it lives.
class InRegion {
 public:
  explicit InRegion(Region region) {
    if (region != Region::same) guard_.emplace(region == Region::f16 ? kFloat16 : kBFloat16, region != Region::none);
  }

 private:
  std::optional<AutocastGuard> guard_;
};

/// Runs one op on the frame; false if an operand is absent.
bool run_op(const Instruction& instruction, Frame& frame);
void run_instructions(const std::vector<Instruction>& instructions, Frame& frame);

}  // namespace ingot::test
