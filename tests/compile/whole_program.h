// Whole programs of random numbers: a callable over arguments, captured tensors and host numbers, and a sequence of
// calls of it. What compile() makes of them is compared with eager, call by call.
#pragma once
#include <array>
#include <cstdint>
#include <string>
#include <vector>

namespace ingot::test {

/// A host integer inside a program.
struct HostNumber {
  enum class Kind : uint8_t { constant, argument, size, plain_size } kind = Kind::constant;
  int value = 0;  // the constant, the number of the argument, or the register whose size it is
  int dim = 0;
};

/// A condition on what the host sees.
struct Condition {
  enum class Kind : uint8_t { flag, number, rank, asked } kind = Kind::flag;
  HostNumber number;  // flag, number: true if it is greater than `bound`
  int bound = 0;
};

/// In which region of autocast: that which there is, none, or one of its own.
enum class Region : uint8_t { same, none, bf16, f16 };

struct Instruction {
  enum class Kind : uint8_t {
    op,       // registers[result] = row(operands)
    branch,   // if (condition) body else other
    repeat,   // body, as often as numbers[0] says
    attempt,  // try body; what it assigned is forgotten where it throws
    ask,      // a value of a tensor becomes a host number: a flush
    replace,  // a captured tensor is another from now on
    drop,     // a handle goes
    fail      // throws where the condition holds
  } kind = Kind::op;
  int row = 0;
  int result = -1;
  std::array<int, 3> operands{-1, -1, -1};
  std::array<int, 2> dims{0, 0};
  std::array<HostNumber, 2> numbers;
  double scalar = 0;
  int scalar_argument = -1;  // of the call's doubles; -1: `scalar`
  bool caught = false;       // an Error of this op is caught right there
  Region region = Region::same;
  Condition condition;
  std::vector<Instruction> body, other;
};

/// How an argument or a captured tensor is made.
struct TensorRecipe {
  enum class Kind : uint8_t {
    whole,         // row-major, its own storage
    permuted,      // the last dim first in memory
    offset,        // behind `shift` elements of a larger storage
    strided,       // every other element of the last dim
    expanded,      // one row for all of the first dim
    same,          // the handle of argument `source`
    overlapping,   // another view of the storage of argument `source`, `shift` elements on
    capture,       // the handle of captured tensor `source`
    capture_view,  // a view of it, `shift` elements on
    result         // what an earlier call returned
  } kind = Kind::whole;
  int source = 0, shift = 0;
  uint32_t seed = 0;
};

/// A shape whose dims are numbers of the case, or fixed.
struct ShapeTemplate {
  std::vector<int> dims;  // >= 0: a size; < 0: the call's size ~dim
  int dtype = 0;          // f32, f64, i64, bf16
};

/// What happens to a captured tensor between two calls.
struct Event {
  enum class Kind : uint8_t {
    reload,
    write_part,
    write_memory,
    replace,
    grow,
    transpose_memory,
    slice
  } kind = Kind::reload;
  int capture = 0;
  uint32_t seed = 0;
};

struct ProgramCall {
  std::array<int, 3> sizes{};
  std::array<int64_t, 3> integers{};
  std::array<double, 2> numbers{};
  std::vector<TensorRecipe> arguments;
  std::vector<Event> events;  // before it
  int threads = 0;            // set_num_threads before it; 0: as it is
  Region region = Region::same;
};

/// Gradients of the results by what requires grad, asked for at the end of the callable or behind it.
struct Gradients {
  enum class Kind : uint8_t {
    none,
    grad,       // they are results themselves
    second,     // and their own gradients
    accumulate  // they are left in .grad
  } kind = Kind::none;
  bool outside = false;                  // of the callable
  uint32_t arguments = 0, captures = 0;  // bit i: it requires grad
};

struct WholeProgram {
  enum class Mode : uint8_t { checked, background, frozen, threads } mode = Mode::checked;
  uint64_t seed = 0;
  std::vector<ShapeTemplate> argument_shapes, capture_shapes;
  std::vector<TensorRecipe> captures;
  std::vector<Instruction> instructions;
  std::vector<int> results;  // registers
  Gradients gradients;
  std::vector<ProgramCall> calls;
};

/// What was met while programs were judged: a generator that makes nothing of a kind proves nothing about it.
struct ProgramCounts {
  int64_t programs = 0, calls = 0, results = 0, threw = 0, caught = 0, frozen = 0, hits = 0, flushes = 0,
          empty_arguments = 0, aliases = 0, events = 0, gradients = 0, written = 0;
  void add(const ProgramCounts& other);
  std::string str() const;
};

/// The program of a seed. Uses eager on this thread, to find ops that go together. `gradients`: the same, and backward.
WholeProgram whole_program(uint64_t seed, bool gradients = false);
/// As a person reads it.
std::string to_text(const WholeProgram& program);
/// Empty if compiled does what eager does; else what differs, and in which call. Throws nothing.
std::string judge(const WholeProgram& program, ProgramCounts* counts = nullptr);
/// A smaller program for which `fails` still holds.
WholeProgram smaller(WholeProgram program, bool (*fails)(const WholeProgram&, void*), void* context);

}  // namespace ingot::test
