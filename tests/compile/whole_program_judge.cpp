#include <atomic>
#include <chrono>
#include <cmath>
#include <cstring>
#include <optional>
#include <sstream>
#include <stdexcept>
#include <thread>

#include "base/half.h"
#include "runtime/memory/storage.h"
#include "runtime/thread_pool.h"
#include "whole_program_run.h"

namespace ingot::test {
namespace {

/// A generator that is no part of what is tested.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed * 0x9e3779b97f4a7c15 + 1) {}
  uint64_t next() {
    uint64_t z = state_ += 0x9e3779b97f4a7c15;
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return z ^ z >> 31;
  }
  int64_t below(int64_t n) { return static_cast<int64_t>(next() % static_cast<uint64_t>(n)); }

 private:
  uint64_t state_;
};

constexpr DType kDTypes[] = {kFloat32, kFloat64, kInt64, kBFloat16};

void fill(const Tensor& t, uint32_t seed) {
  Random random(seed);
  const int64_t n = t.numel();
  // One in fifty lists of positions holds one that many tables have not.
  const bool far = random.below(50) == 0;
  for (int64_t i = 0; i < n; ++i) {
    const double value =
        static_cast<double>(random.below(33) - 16) / 8 + static_cast<double>(random.below(1000)) * 1e-4;
    switch (t.dtype()) {
      case DType::f32:
        static_cast<float*>(t.mutable_data_ptr())[i] = static_cast<float>(value);
        break;
      case DType::f64:
        static_cast<double*>(t.mutable_data_ptr())[i] = value;
        break;
      case DType::i64:
        static_cast<int64_t*>(t.mutable_data_ptr())[i] =
            far && i == n / 2 ? 1000000 : random.below(4) - (random.below(40) == 0);
        break;
      default: {
        uint32_t bits;
        const float narrow = static_cast<float>(value);
        std::memcpy(&bits, &narrow, 4);
        static_cast<uint16_t*>(t.mutable_data_ptr())[i] = static_cast<uint16_t>(bits >> 16);
        break;
      }
    }
  }
}

int64_t product(const std::vector<int64_t>& sizes) {
  int64_t n = 1;
  for (int64_t size : sizes) n *= size;
  return n;
}

std::vector<int64_t> shape_of(const ShapeTemplate& shape, const std::array<int, 3>& sizes) {
  std::vector<int64_t> dims;
  for (int d : shape.dims) dims.push_back(d < 0 ? sizes[static_cast<size_t>(~d)] : d);
  return dims;
}

/// One side: its tensors hold what the other's hold, in storages of their own.
struct World {
  std::vector<Tensor> captures;
  std::vector<Tensor> pending;               // captured tensors as the call in progress leaves them
  std::vector<std::vector<Tensor>> results;  // of earlier calls
  std::vector<Tensor> bases;                 // all memory that the call's arguments were made over
  int64_t caught = 0;

  Tensor filled(const std::vector<int64_t>& sizes, DType dtype, uint32_t seed) {
    Tensor t = empty(sizes, dtype);
    fill(t, seed);
    bases.push_back(t);
    return t;
  }

  /// Row-major over the storage of `from`, `shift` elements behind its first; absent if it does not fit.
  static Tensor window(const Tensor& from, const std::vector<int64_t>& sizes, int shift, DType dtype) {
    if (!from.defined() || from.dtype() != dtype) return {};
    const int64_t first = from.storage_offset() + shift;
    const int64_t room = static_cast<int64_t>(from.impl()->storage->bytes()) / from.itemsize();
    if (first + product(sizes) > room) return {};
    std::vector<int64_t> strides(sizes.size(), 1);
    for (size_t d = sizes.size(); d-- > 1;) strides[d - 1] = strides[d] * std::max<int64_t>(sizes[d], 1);
    // Other memory than the elements of a leaf has no gradient.
    const bool within = from.is_contiguous() && from.storage_offset() == 0 && first + product(sizes) <= from.numel();
    return (within ? from : from.detach()).as_strided(sizes, strides, first);
  }

  Tensor make(const TensorRecipe& recipe, const ShapeTemplate& shape, const std::array<int, 3>& dims,
              const std::vector<Tensor>& arguments) {
    using Kind = TensorRecipe::Kind;
    const DType dtype = kDTypes[shape.dtype];
    std::vector<int64_t> sizes = shape_of(shape, dims);
    const size_t source = static_cast<size_t>(recipe.source);
    switch (recipe.kind) {
      case Kind::permuted:
        if (sizes.size() > 1) {
          std::swap(sizes.front(), sizes.back());
          return filled(sizes, dtype, recipe.seed).transpose(0, -1);
        }
        break;
      case Kind::offset:
        return filled({product(sizes) + recipe.shift}, dtype, recipe.seed).slice(0, recipe.shift).view(sizes);
      case Kind::strided:
        if (!sizes.empty()) {
          sizes.back() *= 2;
          return filled(sizes, dtype, recipe.seed).slice(-1, 0, {}, 2);
        }
        break;
      case Kind::expanded:
        if (!sizes.empty()) {
          std::vector<int64_t> one = sizes;
          one.front() = 1;
          return filled(one, dtype, recipe.seed).expand(sizes);
        }
        break;
      case Kind::same:
        if (source < arguments.size()) return arguments[source];
        break;
      case Kind::overlapping:
        if (source < arguments.size())
          if (Tensor t = window(arguments[source], sizes, recipe.shift, dtype); t.defined()) return t;
        break;
      case Kind::capture:
        if (source < captures.size()) return captures[source];
        break;
      case Kind::capture_view:
        if (source < captures.size())
          if (Tensor t = window(captures[source], sizes, recipe.shift, dtype); t.defined()) return t;
        break;
      case Kind::result:
        if (!results.empty())
          if (const auto& last = results[source % results.size()]; !last.empty())
            return last[static_cast<size_t>(recipe.shift) % last.size()];
        break;
      default:
        break;
    }
    return filled(shape_of(shape, dims), dtype, recipe.seed);
  }

  /// Between two calls nothing is on the tape.
  void happen(const Event& event) {
    using Kind = Event::Kind;
    const NoGradGuard no_grad;
    Tensor& t = captures[static_cast<size_t>(event.capture) % captures.size()];
    const bool leaf = t.requires_grad();
    const std::vector<int64_t> sizes = t.sizes().vec();
    auto fresh = [&](std::vector<int64_t> shape) {
      Tensor made = empty(shape, t.dtype());
      fill(made, event.seed);
      return made;
    };
    switch (event.kind) {
      case Kind::reload:
        t.copy_(fresh(sizes));
        break;
      case Kind::write_part:
        if (t.dim() && t.size(0) > 0) t.select(0, event.seed % static_cast<uint32_t>(int64_t{t.size(0)})).fill_(1);
        break;
      case Kind::write_memory:
        if (t.is_contiguous()) fill(t, event.seed);
        break;
      case Kind::replace:
        t = fresh(sizes);
        break;
      case Kind::grow:
        if (t.dim() && t.numel() < 500) t = cat({t, t.narrow(0, 0, std::min<int64_t>(t.size(0), 1))}, 0);
        break;
      case Kind::transpose_memory:
        if (t.dim() > 1) t = t.transpose(0, -1).clone().transpose(0, -1);
        break;
      case Kind::slice:
        if (t.dim()) {
          std::vector<int64_t> larger = sizes;
          larger[0] += 2;
          t = fresh(larger).narrow(0, event.seed % 3, sizes[0]);
        }
        break;
    }
    if (leaf) t.requires_grad_();
  }

  /// What a call made of captured tensors has no past in the next one.
  void cut_tapes() {
    for (Tensor& t : captures)
      if (!t.is_leaf()) t = t.detach();
  }
};

/// A cotangent that tells elements apart.
Tensor cotangent_of(const Tensor& root) {
  return arange(root.numel()).remainder(7).sub(3).to(root.dtype()).reshape(root.sizes());
}

/// Tensors among the arguments and captured ones that require grad.
std::vector<Tensor> leaves_of(const std::vector<Tensor>& arguments, const std::vector<Tensor>& captures) {
  std::vector<Tensor> leaves;
  for (const auto* list : {&arguments, &captures})
    for (const Tensor& t : *list)
      if (t.requires_grad()) leaves.push_back(t);
  return leaves;
}

/// The results, and their gradients behind them.
std::vector<Tensor> with_gradients(const Gradients& gradients, std::vector<Tensor> results,
                                   const std::vector<Tensor>& leaves) {
  auto roots_of = [](const std::vector<Tensor>& tensors) {
    std::vector<Tensor> roots;
    for (const Tensor& t : tensors)
      if (t.defined() && t.requires_grad() && roots.size() < 3) roots.push_back(t);
    return roots;
  };
  std::vector<Tensor> roots = roots_of(results), cotangents;
  for (const Tensor& root : roots) cotangents.push_back(cotangent_of(root));
  if (roots.empty()) return results;
  if (gradients.kind == Gradients::Kind::accumulate) {
    autograd::backward(roots, cotangents);
    return results;
  }
  const bool second = gradients.kind == Gradients::Kind::second;
  std::vector<Tensor> made = autograd::grad(roots, leaves, cotangents, {}, second, true);
  const std::vector<Tensor> first = roots_of(made);
  if (second && !first.empty()) {
    cotangents.clear();
    for (const Tensor& root : first) cotangents.push_back(cotangent_of(root));
    for (const Tensor& t : autograd::grad(first, leaves, cotangents, {}, false, true)) made.push_back(t);
  }
  for (const Tensor& t : made) results.push_back(t.defined() ? t : zeros({0}));
  return results;
}

std::vector<Tensor> run_program(const WholeProgram& program, World& world, const std::vector<Tensor>& arguments,
                                const std::vector<int64_t>& integers, const std::vector<double>& numbers,
                                bool keep_captures) {
  Frame frame{{}, integers, numbers};
  frame.registers.reserve(arguments.size() + world.captures.size() + 32);
  frame.registers = arguments;
  for (const Tensor& t : world.captures) frame.registers.push_back(t);
  const size_t outside = frame.registers.size();
  int count = count_registers(program.instructions, static_cast<int>(outside));
  for (int r : program.results) count = std::max(count, r + 1);
  frame.registers.resize(static_cast<size_t>(count));
  frame.late = may_fail_late(program.instructions);
  frame.taped = program.gradients.kind != Gradients::Kind::none;
  run_instructions(program.instructions, frame);
  std::vector<Tensor> results;
  for (int r : program.results)
    if (frame.registers[static_cast<size_t>(r)].defined()) results.push_back(frame.registers[static_cast<size_t>(r)]);
  // What accumulates stays, whatever is told later.
  if (program.gradients.kind == Gradients::Kind::accumulate && frame.late) flush();
  if (frame.taped && !program.gradients.outside)
    results = with_gradients(program.gradients, std::move(results), leaves_of(arguments, world.captures));
  if (keep_captures) {
    world.pending.clear();
    for (size_t i = arguments.size(); i < outside; ++i)
      world.pending.push_back(frame.registers[i].defined() ? frame.registers[i] : world.captures[i - arguments.size()]);
    world.caught += frame.caught;
  }
  return results;
}

bool is_nan(DType dtype, const char* element) {
  switch (dtype) {
    case DType::f32: {
      float v;
      std::memcpy(&v, element, 4);
      return std::isnan(v);
    }
    case DType::f64: {
      double v;
      std::memcpy(&v, element, 8);
      return std::isnan(v);
    }
    case DType::bf16: {
      uint16_t v;
      std::memcpy(&v, element, 2);
      return (v & 0x7fff) > 0x7f80;
    }
    case DType::f16: {
      uint16_t v;
      std::memcpy(&v, element, 2);
      return (v & 0x7fff) > 0x7c00;
    }
    default:
      return false;
  }
}

std::string list(IntArrayRef values) {
  std::ostringstream out;
  out << values;
  return out.str();
}

/// What differs, all NaNs being equal; empty if nothing.
std::string difference(const Tensor& got, const Tensor& expected) {
  if (got.dtype() != expected.dtype()) return "dtypes differ";
  if (!(got.sizes() == expected.sizes())) return "sizes " + list(got.sizes()) + ", not " + list(expected.sizes());
  if (!(got.strides() == expected.strides()))
    return "strides " + list(got.strides()) + ", not " + list(expected.strides()) + " of sizes " + list(got.sizes());
  if (got.storage_offset() != expected.storage_offset())
    return "offset " + std::to_string(got.storage_offset()) + ", not " + std::to_string(expected.storage_offset());
  if (got.requires_grad() != expected.requires_grad() || got.is_leaf() != expected.is_leaf())
    return std::string(got.requires_grad() ? "requires grad" : "does not require grad") +
           (got.is_leaf() ? ", a leaf" : ", no leaf");
  const NoGradGuard no_grad;
  if (got.grad().defined() != expected.grad().defined())
    return got.grad().defined() ? "has a gradient" : "has no gradient";
  if (got.grad().defined())
    if (std::string text = difference(got.grad(), expected.grad()); !text.empty()) return "the gradient: " + text;
  const Tensor a = got.contiguous(), b = expected.contiguous();
  const size_t size = static_cast<size_t>(a.itemsize());
  const char *x = static_cast<const char*>(a.data_ptr()), *y = static_cast<const char*>(b.data_ptr());
  for (int64_t i = 0, n = a.numel(); i < n; ++i, x += size, y += size)
    if (std::memcmp(x, y, size) != 0 && !(is_nan(a.dtype(), x) && is_nan(a.dtype(), y)))
      return "bits of element " + std::to_string(i) + " of\n" + got.str() + "\nnot\n" + expected.str();
  return {};
}

struct Outcome {
  std::vector<Tensor> results;
  std::string error;  // type and text
};

template <class Body>
Outcome outcome_of(Body body) {
  Outcome outcome;
  try {
    outcome.results = body();
  } catch (const Error& e) {
    outcome.error = std::string("Error: ") + e.what();
  } catch (const InternalError& e) {
    outcome.error = std::string("InternalError: ") + e.what();
  } catch (const std::exception& e) {
    outcome.error = std::string("std::exception: ") + e.what();
  }
  return outcome;
}

std::string difference(const std::vector<Tensor>& got, const std::vector<Tensor>& expected, const char* what) {
  if (got.size() != expected.size())
    return std::to_string(got.size()) + " of " + what + ", not " + std::to_string(expected.size());
  for (size_t i = 0; i < got.size(); ++i)
    if (std::string text = difference(got[i], expected[i]); !text.empty())
      return std::string(what) + " " + std::to_string(i) + ": " + text;
  return {};
}

std::string difference(const Outcome& got, const Outcome& expected) {
  if (got.error != expected.error) return "threw \"" + got.error + "\", not \"" + expected.error + "\"";
  return difference(got.results, expected.results, "result");
}

/// Which of these share storage, and at which distance.
std::string sharing(const std::vector<Tensor>& results, const std::vector<Tensor>& others) {
  std::string text;
  for (size_t i = 0; i < results.size(); ++i) {
    for (size_t j = 0; j < i; ++j)
      if (results[i].shares_storage(results[j])) text += " result" + std::to_string(i) + "=result" + std::to_string(j);
    for (size_t j = 0; j < others.size(); ++j)
      if (results[i].shares_storage(others[j])) text += " result" + std::to_string(i) + "=" + std::to_string(j);
  }
  return text;
}

Tensor with_flag(const Tensor& t, uint32_t requires_grad) {
  return requires_grad & 1 && t.is_leaf() && is_floating(t.dtype()) ? t.requires_grad_() : t;
}

World new_world(const WholeProgram& program) {
  World world;
  for (size_t i = 0; i < program.captures.size(); ++i)
    world.captures.push_back(with_flag(world.make(program.captures[i], program.capture_shapes[i], {3, 2, 5}, {}),
                                       program.gradients.captures >> i));
  world.bases.clear();
  return world;
}

std::vector<Tensor> arguments_of(const WholeProgram& program, const ProgramCall& call, World& world) {
  world.bases.clear();
  std::vector<Tensor> arguments;
  for (size_t i = 0; i < call.arguments.size(); ++i)
    arguments.push_back(with_flag(world.make(call.arguments[i], program.argument_shapes[i], call.sizes, arguments),
                                  program.gradients.arguments >> i));
  return arguments;
}

std::vector<Tensor> joined(std::vector<Tensor> a, const std::vector<Tensor>& b) {
  a.insert(a.end(), b.begin(), b.end());
  return a;
}

auto compiled_of(const WholeProgram& program, World& world) {
  CompileOptions options;
  options.background = program.mode == WholeProgram::Mode::background;
  if (program.mode == WholeProgram::Mode::frozen) options.mode = CompileMode::frozen;
  const bool keep = program.mode != WholeProgram::Mode::threads && program.mode != WholeProgram::Mode::frozen;
  return compile(
      [&program, &world, keep](const std::vector<Tensor>& arguments, const std::vector<int64_t>& integers,
                               const std::vector<double>& numbers) {
        return run_program(program, world, arguments, integers, numbers, keep);
      },
      options);
}

/// What is done with the results of a call.
std::vector<Tensor> behind(const WholeProgram& program, std::vector<Tensor> results,
                           const std::vector<Tensor>& arguments, const World& world) {
  if (program.gradients.kind == Gradients::Kind::none || !program.gradients.outside) return results;
  return with_gradients(program.gradients, std::move(results), leaves_of(arguments, world.captures));
}

/// Calls one after the other.
std::string judge_calls(const WholeProgram& program, ProgramCounts& counts) {
  World eager = new_world(program), world = new_world(program);
  auto fast = compiled_of(program, world);
  const bool keep = program.mode != WholeProgram::Mode::frozen;
  for (size_t number = 0; number < program.calls.size(); ++number) {
    const ProgramCall& call = program.calls[number];
    if (call.threads) set_num_threads(call.threads);
    auto at = [&](const std::string& text) { return "call " + std::to_string(number) + ": " + text; };
    for (const Event& event : call.events) {
      if (eager.captures.empty()) break;
      const Outcome expected = outcome_of([&] { return eager.happen(event), std::vector<Tensor>(); });
      const Outcome got = outcome_of([&] { return world.happen(event), std::vector<Tensor>(); });
      if (std::string text = difference(got, expected); !text.empty()) return at("event: " + text);
      ++counts.events;
    }
    const std::vector<int64_t> integers(call.integers.begin(), call.integers.end());
    const std::vector<double> numbers(call.numbers.begin(), call.numbers.end());
    const std::vector<Tensor> a = arguments_of(program, call, eager), b = arguments_of(program, call, world);
    for (const Tensor& t : a) counts.empty_arguments += t.numel() == 0;
    for (const TensorRecipe& recipe : call.arguments) counts.aliases += recipe.kind >= TensorRecipe::Kind::same;
    const InRegion region(call.region);
    const Outcome expected =
        outcome_of([&] { return behind(program, run_program(program, eager, a, integers, numbers, keep), a, eager); });
    const Outcome got = outcome_of([&] { return behind(program, fast(b, integers, numbers), b, world); });
    ++counts.calls;
    counts.threw += !expected.error.empty();
    counts.results += static_cast<int64_t>(expected.results.size());
    counts.written += expected.error.find("modified by an in-place operation") != std::string::npos;
    for (const Tensor& t : leaves_of(a, eager.captures)) counts.gradients += expected.error.empty() && t.is_leaf();
    if (std::string text = difference(got, expected); !text.empty()) return at(text);
    for (auto [side, outcome] : {std::pair(&eager, &expected), std::pair(&world, &got)}) {
      if (outcome->error.empty() && keep) side->captures = side->pending;
      side->pending.clear();
      side->results.push_back(outcome->results);
      side->cut_tapes();
    }
    if (std::string text = difference(world.bases, eager.bases, "memory of the arguments"); !text.empty())
      return at(text);
    if (std::string text = difference(b, a, "argument"); !text.empty()) return at(text);
    if (std::string text = difference(world.captures, eager.captures, "captured tensor"); !text.empty())
      return at(text);
    const std::string shared = sharing(got.results, joined(b, world.captures)),
                      should = sharing(expected.results, joined(a, eager.captures));
    if (shared != should) return at("results share storage:" + shared + "; should:" + should);
  }
  // What was returned stays what it was, as far as nothing else wrote to it.
  for (size_t i = 0; i < world.results.size(); ++i)
    if (std::string text = difference(world.results[i], eager.results[i], "result"); !text.empty())
      return "after the last call, call " + std::to_string(i) + ": " + text;
  counts.caught += eager.caught;
  // A fallback hides what went wrong inside: its result is right.
  for (const Explanation::Notice& notice : fast.explain().fallbacks)
    if (notice.reason.find("internal error") != std::string::npos) return notice.reason;
  const Statistics statistics = fast.stats();
  counts.hits += statistics.hits;
  counts.flushes += statistics.graph_breaks;
  if (program.mode == WholeProgram::Mode::frozen) {
    const std::string state = fast.explain().frozen;
    counts.frozen += !state.empty() && state[0] >= '1' && state[0] <= '9';
  }
  return {};
}

/// Several threads call one function, each with arguments of its own.
std::string judge_threads(const WholeProgram& program, ProgramCounts& counts) {
  constexpr size_t kThreads = 3;
  World eager = new_world(program), world = new_world(program);
  struct Expected {
    Outcome outcome;
    std::vector<Tensor> bases;
  };
  auto numbers_of = [](const ProgramCall& call) {
    return std::pair(std::vector<int64_t>(call.integers.begin(), call.integers.end()),
                     std::vector<double>(call.numbers.begin(), call.numbers.end()));
  };
  auto versions = [](const std::vector<Tensor>& tensors) {
    std::vector<uint64_t> all;
    for (const Tensor& t : tensors) all.push_back(t.impl()->storage->version());
    return all;
  };
  const std::vector<uint64_t> before = versions(eager.captures);
  std::vector<Expected> expected;
  for (const ProgramCall& call : program.calls) {
    const std::vector<Tensor> a = arguments_of(program, call, eager);
    const auto given = numbers_of(call);
    const InRegion region(call.region);
    expected.push_back({outcome_of([&] {
                          return behind(program, run_program(program, eager, a, given.first, given.second, false), a,
                                        eager);
                        }),
                        eager.bases});
    ++counts.calls;
    counts.threw += !expected.back().outcome.error.empty();
  }
  // Threads that write to what they share race, compiled or not: such a program is judged call by call.
  if (versions(eager.captures) != before) {
    WholeProgram alone = program;
    alone.mode = WholeProgram::Mode::checked;
    return judge_calls(alone, counts);
  }
  auto fast = compiled_of(program, world);
  std::array<std::string, kThreads> wrong;
  std::vector<std::thread> threads;
  for (size_t t = 0; t < kThreads; ++t)
    threads.emplace_back([&, t] {
      World mine;
      mine.captures = world.captures;
      for (size_t round = 0; round < 2 * program.calls.size() && wrong[t].empty(); ++round) {
        const size_t number = (round + t) % program.calls.size();
        const ProgramCall& call = program.calls[number];
        const std::vector<Tensor> b = arguments_of(program, call, mine);
        const auto given = numbers_of(call);
        const InRegion region(call.region);
        const Outcome got = outcome_of([&] { return behind(program, fast(b, given.first, given.second), b, world); });
        std::string text = difference(got, expected[number].outcome);
        if (text.empty()) text = difference(mine.bases, expected[number].bases, "memory of the arguments");
        if (!text.empty()) wrong[t] = "thread " + std::to_string(t) + ", call " + std::to_string(number) + ": " + text;
      }
    });
  for (std::thread& thread : threads) thread.join();
  for (const std::string& text : wrong)
    if (!text.empty()) return text;
  if (std::string text = difference(world.captures, eager.captures, "captured tensor"); !text.empty()) return text;
  return {};
}

}  // namespace

std::vector<Tensor> sample_registers(const WholeProgram& program) {
  World world = new_world(program);
  std::vector<Tensor> registers;
  for (size_t i = 0; i < program.argument_shapes.size(); ++i)
    registers.push_back(world.make({.seed = static_cast<uint32_t>(i + 1)}, program.argument_shapes[i], {3, 2, 5}, {}));
  return joined(std::move(registers), world.captures);
}

std::string judge(const WholeProgram& program, ProgramCounts* counts) {
  ProgramCounts none;
  ProgramCounts& into = counts ? *counts : none;
  ++into.programs;
  const int threads = num_threads();
  std::string text;
  try {
    text = program.mode == WholeProgram::Mode::threads ? judge_threads(program, into) : judge_calls(program, into);
  } catch (const std::exception& e) {
    text = std::string("outside of any call: ") + e.what();
  }
  set_num_threads(threads);
  return text;
}

}  // namespace ingot::test
