// Bad arguments for every op of the table, eager and compiled: a clear Error that names the op, the same text from
// both, and operands as they were.
#include <gtest/gtest.h>
#include <sys/resource.h>

#include <cmath>
#include <fstream>
#include <functional>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "base/sanitizer.h"
#include "eager/call/check_values.h"
#include "eager/op_support.h"
#include "ingot.h"
#include "interpreted.h"
#include "ir/samples.h"

namespace ingot {
namespace {

/// A sample's call, with arguments that may be spoilt.
struct Call {
  const ir::OpInfo* op;
  std::vector<Tensor> tensors;
  std::vector<eager::Operand> operands;  // without tensors: those are bound by run
  std::vector<int> tensor_of;            // of each operand, or -1
  std::vector<ir::Attr> attrs;

  explicit Call(const ir::Sample& sample) : op(sample.op) {
    const ir::Graph graph = ir::parse(sample.text);
    for (const ReferenceTensor& r : random_inputs(graph, op->name, 7)) tensors.push_back(eager_tensor(r));
    const ir::Node& node = graph.nodes.at(0);
    attrs = node.attrs;
    for (const ir::Operand& o : node.operands) {
      tensor_of.push_back(o.is_value() ? static_cast<int>(o.id) : -1);
      operands.emplace_back();
      if (o.kind != ir::Operand::Kind::constant) continue;
      if (o.category == Category::floating)
        operands.back() = eager::Operand(Scalar(o.number));
      else
        operands.back() = eager::Operand(o.category == Category::boolean ? Scalar(o.integer != 0) : Scalar(o.integer));
    }
  }

  std::vector<eager::Operand> bound(const std::vector<Tensor>& from) const {
    std::vector<eager::Operand> all = operands;
    for (size_t i = 0; i < all.size(); ++i)
      if (tensor_of[i] >= 0) all[i] = eager::Operand(from[static_cast<size_t>(tensor_of[i])]);
    return all;
  }

  std::vector<ir::Attr> normal() const {
    std::vector<eager::Operand> all = bound(tensors);
    std::vector<ir::Attr> result = attrs;
    eager::settle({op->id, false, all, result, Location("model.cpp", 12)}, result);
    return result;
  }

  std::vector<Tensor> run(const std::vector<Tensor>& from) const {
    std::vector<eager::Operand> all = bound(from);
    std::vector<ir::Attr> normal = attrs;
    eager::OpCall call{op->id, false, all, normal, Location("model.cpp", 12)};
    eager::settle(call, normal);
    std::vector<Tensor> outputs(op->outputs);
    eager::dispatch(call, outputs);
    return outputs;
  }
};

/// The text of the Error that it throws; nothing if it throws none.
std::optional<std::string> error_of(const std::function<void()>& run) {
  try {
    run();
  } catch (const Error& e) {
    return e.what();
  } catch (const std::exception& e) {
    ADD_FAILURE() << "no ingot::Error: " << e.what();
  }
  return std::nullopt;
}

/// Of a tensor that may be larger than memory: what it is, and its values where they are few.
std::string contents(const Tensor& t) {
  std::string text = std::string(name_of(t.dtype()));
  for (int64_t n : t.sizes()) text += " " + std::to_string(n);
  return t.numel() < (1 << 20) ? text + ": " + bytes_of(t) : text;
}

void check_interpreter(const Call& call, const std::vector<Tensor>& got) {
  const std::vector<eager::Operand> operands = call.bound(call.tensors);
  const std::vector<ir::Attr> attrs = call.normal();
  const test::Interpreted expected({call.op->id, false, operands, attrs, Location("model.cpp", 12)});
  expect_close(expected.inputs, got, expected.outputs);
}

/// `must`: the op may not take this.
void check(const Call& call, bool must, const std::string& what, bool interpreted = false) {
  SCOPED_TRACE(what);
  std::vector<std::string> before, expected, got;
  for (const Tensor& t : call.tensors) before.push_back(contents(t));
  std::vector<Tensor> results;
  const std::optional<std::string> eager = error_of([&] {
    results = call.run(call.tensors);
    for (const Tensor& t : results) expected.push_back(contents(t));
  });
  auto fast = compile([&](const std::vector<Tensor>& tensors) { return call.run(tensors); });
  const std::optional<std::string> compiled = error_of([&] {
    for (const Tensor& t : fast(call.tensors)) got.push_back(contents(t));
  });
  // A program may need more memory than the op by itself, or less.
  auto too_large = [&](const std::optional<std::string>& text) {
    return text && text->starts_with(std::string(call.op->name) + ": cannot allocate ") &&
           text->find("model.cpp:12") != std::string::npos;
  };
  if (too_large(eager) || too_large(compiled)) {
    EXPECT_TRUE(!eager || too_large(eager)) << *eager;
    EXPECT_TRUE(!compiled || too_large(compiled)) << *compiled;
    return;
  }
  EXPECT_EQ(eager, compiled);
  EXPECT_EQ(got, expected);
  if (must) EXPECT_TRUE(eager.has_value());
  if (eager) {
    EXPECT_TRUE(eager->starts_with(std::string(call.op->name) + ": ")) << *eager;
    EXPECT_NE(eager->find("expected"), std::string::npos) << *eager;
    EXPECT_NE(eager->find("model.cpp:12"), std::string::npos) << *eager;
    // Only how large its intermediate results are may be said by a step of an op; all else its own rules refuse.
    if (eager->find("a step of it") != std::string::npos)
      EXPECT_TRUE(eager->find("2^59") != std::string::npos || eager->find("2^63") != std::string::npos) << *eager;
  }
  for (size_t i = 0; i < before.size(); ++i) EXPECT_EQ(contents(call.tensors[i]), before[i]) << "operand " << i;
  bool few = !eager;
  for (const Tensor& t : results) few = few && t.numel() < 2000;
  if (few && interpreted) check_interpreter(call, results);
}

/// What this process may still take: a call that wants more than there is fails here and not the machine.
struct LittleMemory {
  rlimit old{};
  // ThreadSanitizer takes several bytes of its own for each that the program has.
  static constexpr rlim_t kRoom = INGOT_TSAN ? rlim_t{3} << 29 : rlim_t{1} << 28;
  LittleMemory() {
    getrlimit(RLIMIT_AS, &old);
    int64_t pages = 0;
    std::ifstream("/proc/self/statm") >> pages;
    rlimit now = old;
    now.rlim_cur = std::min<rlim_t>(static_cast<rlim_t>(pages) * 4096 + kRoom, old.rlim_max);
    setrlimit(RLIMIT_AS, &now);
  }
  ~LittleMemory() { setrlimit(RLIMIT_AS, &old); }
};

std::string text_of(const Ints& values) {
  std::string text;
  for (int64_t v : values) text += (text.empty() ? "[" : ", ") + std::to_string(v);
  return text + "]";
}

ir::Attr list(const Ints& values) {
  Dims dims;
  for (int64_t v : values) dims.push_back(eager::raw_size(v));
  return ir::Attr::of(dims);
}

class OpErrors : public testing::TestWithParam<int> {
  LittleMemory little_memory;
};
constexpr int kShards = 8;
constexpr int64_t kHostile[] = {
    0, -1, INT64_MIN, INT64_MIN + 1, INT64_MAX, 1000, int64_t{1} << 31, int64_t{1} << 40, int64_t{1} << 62};

TEST_P(OpErrors, DimsAndSizes) {
  const std::vector<ir::Sample> samples = ir::samples();
  for (size_t i = static_cast<size_t>(GetParam()); i < samples.size(); i += kShards) {
    SCOPED_TRACE(samples[i].text);
    const Call good(samples[i]);
    for (size_t a = 0; a < good.attrs.size(); ++a) {
      const ir::ArgInfo& argument = good.op->attribute(static_cast<int>(a));
      auto with = [&](const ir::Attr& attr, bool must, const std::string& what) {
        Call bad = good;
        bad.attrs[a] = attr;
        check(bad, must, argument.name + " = " + what, argument.kind != ir::ArgKind::number);
      };
      Ints old;
      for (Dim d : good.attrs[a].list) old.push_back(d.code);
      // Each entry of a list by itself, and all of them.
      auto with_entries = [&](int64_t value) {
        for (size_t i = 0; i < old.size(); ++i) {
          Ints one = old;
          one[i] = value;
          with(list(one), false, text_of(one));
        }
        if (old.size() == 1) return;
        const Ints every(old.size(), value);
        with(list(every), false, text_of(every));
      };
      switch (argument.kind) {
        case ir::ArgKind::dim:
        case ir::ArgKind::new_dim:
          for (int64_t value : {int64_t{9}, int64_t{-9}, INT64_MIN, INT64_MAX})
            with(ir::Attr::of(value), true, std::to_string(value));
          break;
        case ir::ArgKind::dims:
          for (int64_t value : {int64_t{9}, int64_t{-9}, INT64_MIN, INT64_MAX})
            with(list({value}), true, std::to_string(value));
          with(list({0, 0}), false, "a dim twice");
          break;
        case ir::ArgKind::sizes:
          with(list({}), false, "none");
          with(list({1, 1, 1, 1}), false, "four");
          [[fallthrough]];
        case ir::ArgKind::size:
          for (int64_t value : kHostile) with_entries(value);
          with(list({-7}), good.op->id != OpId::roll && good.op->id != OpId::slice, "-7");
          break;
        case ir::ArgKind::integers:
          with(list({}), false, "none");
          with(list({1, 1, 1, 1}), false, "four");
          for (int64_t value : kHostile) with_entries(value);
          with(list({-1, -1, -1, -1, -1, -1, -1}), true, "seven negative ones");
          break;
        case ir::ArgKind::integer:
          for (int64_t value : kHostile) with(ir::Attr::of(value), false, std::to_string(value));
          break;
        case ir::ArgKind::number:
          for (double value : {0.0, -1.0, 1e308, -1e308, HUGE_VAL, -HUGE_VAL, std::nan("")})
            with(ir::Attr::number(value), false, std::to_string(value));
          break;
        case ir::ArgKind::mode:
          for (size_t mode = 0; mode < argument.modes.size(); ++mode)
            with(ir::Attr::mode(static_cast<int>(mode)), false, argument.modes[mode]);
          break;
        case ir::ArgKind::boolean:
          with(ir::Attr::of(good.attrs[a].integer == 0), false, "the other one");
          break;
        case ir::ArgKind::dtype:
          for (DType dtype : {DType::bool_, DType::u8, DType::f64, DType::c64})
            with(ir::Attr::of(dtype), false, std::string(name_of(dtype)));
          break;
        default:
          break;
      }
    }
  }
}

TEST_P(OpErrors, Scalars) {
  const std::vector<ir::Sample> samples = ir::samples();
  for (size_t i = static_cast<size_t>(GetParam()); i < samples.size(); i += kShards) {
    SCOPED_TRACE(samples[i].text);
    const Call good(samples[i]);
    for (size_t k = 0; k < good.operands.size(); ++k) {
      if (good.operands[k].kind != eager::Operand::Kind::scalar) continue;
      const std::string& name = good.op->operand(static_cast<int>(k)).name;
      auto with = [&](const Scalar& value, const std::string& what) {
        Call bad = good;
        bad.operands[k] = eager::Operand(value);
        check(bad, false, name + " = " + what,
              (value.to_double() >= 0 || good.op->has(ir::kExact)) && std::abs(value.to_double()) < 2);
      };
      for (int64_t value : kHostile) with(Scalar(value), std::to_string(value));
      if (name == "seed" || name == "offset") continue;  // the generator's, integers
      for (double value : {0.0, -1.0, -1.5, 1e308, HUGE_VAL, -HUGE_VAL, std::nan("")})
        with(Scalar(value), std::to_string(value));
    }
  }
}

TEST_P(OpErrors, OperandsOfOtherShapesAndDtypes) {
  const std::vector<ir::Sample> samples = ir::samples();
  for (size_t i = static_cast<size_t>(GetParam()); i < samples.size(); i += kShards) {
    SCOPED_TRACE(samples[i].text);
    const Call good(samples[i]);
    for (DType dtype : {kBool, kUInt8, kInt64}) {
      Call bad = good;
      for (Tensor& t : bad.tensors) t = t.to(dtype);
      check(bad, false, "all " + std::string(name_of(dtype)));
    }
    for (size_t t = 0; t < good.tensors.size(); ++t) {
      auto with = [&](Tensor tensor, const std::string& what) {
        Call bad = good;
        bad.tensors[t] = std::move(tensor);
        check(bad, false, "operand " + std::to_string(t) + ": " + what);
      };
      const DType dtype = good.tensors[t].dtype();
      with(ones({1, 2, 1, 2, 1, 2, 7}).to(dtype), "a shape of seven dims");
      with(ones({}).to(dtype), "no dims");
      with(ones({0}).to(dtype), "no elements");
      with(good.tensors[t].to(kBool), "bools");
      with(good.tensors[t].to(kInt8), "small integers");
      with(good.tensors[t].to(kFloat64), "doubles");
      // 2^58 elements in the memory of one.
      with(ones({1}).to(dtype).expand({0, int64_t{1} << 58}), "a wide tensor of no elements");
    }
  }
}

TEST_P(OpErrors, PositionsOutOfRangeAndDivisionByZero) {
  const std::vector<ir::Sample> samples = ir::samples();
  int checked = 0;
  for (size_t i = static_cast<size_t>(GetParam()); i < samples.size(); i += kShards) {
    SCOPED_TRACE(samples[i].text);
    Call bad(samples[i]);
    const std::vector<eager::Operand> bound = bad.bound(bad.tensors);
    const eager::ValueChecks values = eager::value_checks({bad.op->id, false, bound, bad.attrs, Location()});
    if (values.empty()) continue;
    const eager::ValueCheck& value = values[0];
    const int tensor = value.operand < bad.tensor_of.size() ? bad.tensor_of[value.operand] : -1;
    if (tensor < 0) continue;
    if (value.kind == eager::ValueCheck::Kind::positions) {
      for (int64_t position : {int64_t{1000}, int64_t{-1000}, INT64_MIN, INT64_MAX}) {
        if (std::abs(position / 2) > 1000 && bad.tensors[static_cast<size_t>(tensor)].dtype() != kInt64) continue;
        bad.tensors[static_cast<size_t>(tensor)].fill_(position);
        check(bad, true, "position " + std::to_string(position));
      }
      ++checked;
    } else if (value.kind == eager::ValueCheck::Kind::divisor) {
      bad.tensors[static_cast<size_t>(tensor)].zero_();
      check(bad, true, "division by zero");
      ++checked;
    }
  }
  EXPECT_GT(checked, 0);
}
INSTANTIATE_TEST_SUITE_P(Samples, OpErrors, testing::Range(0, kShards));

}  // namespace
}  // namespace ingot
