// What follows from the description of a step's fields: walks, equality, hash and text.
#include "base/program.h"

#include <gtest/gtest.h>

#include <functional>

namespace ingot {
namespace {

KernelPtr kernel(const std::string& key) {
  auto source = std::make_shared<KernelSource>();
  source->key = key;
  source->name = "kernel";
  return source;
}

template <class T>
concept Shared = requires(const T& x) {
  typename T::element_type;
  requires Described<std::remove_const_t<typename T::element_type>>;
};

/// Gives every part of x a value of its own; lists get two elements.
template <class T>
void fill(T& x, int64_t& next) {
  if constexpr (std::is_same_v<T, KernelPtr>) {
    x = kernel(std::to_string(++next));
  } else if constexpr (std::is_same_v<T, Dim>) {
    x = Dim(++next);
  } else if constexpr (std::is_same_v<T, DimTable>) {
    x.symbol(8);
  } else if constexpr (Described<T>) {
    for_each_field(x, [&](std::string_view, auto& field) { fill(field, next); });
  } else if constexpr (is_variant<T>) {
    std::visit([&](auto& one) { fill(one, next); }, x);
  } else if constexpr (Text<T>) {
    x = "text " + std::to_string(++next);
  } else if constexpr (Range<T>) {
    x.resize(2);
    for (auto& element : x) fill(element, next);
  } else if constexpr (Shared<T>) {
    std::remove_const_t<typename T::element_type> made;
    fill(made, next);
    x = std::make_shared<decltype(made)>(std::move(made));
  } else if constexpr (MaybeOne<T>) {
    fill(x.emplace(), next);
  } else if constexpr (std::is_same_v<T, bool>) {
    x = true;
  } else if constexpr (!std::is_enum_v<T>) {
    x = static_cast<T>(++next);
  }
}

/// Calls check(path) with one part of x changed at a time, for each.
using Check = std::function<void(const std::string& path)>;
template <class T>
void vary(T& x, const std::string& path, const Check& check) {
  const T old = x;
  auto as = [&](T changed, const char* how) {
    x = std::move(changed);
    check(path + how);
    x = old;
  };
  if constexpr (std::is_same_v<T, KernelPtr>) {
    as(kernel("another"), ": another");
    as(nullptr, ": none");
  } else if constexpr (std::is_same_v<T, Dim>) {
    as(Dim(old.code + 1), "");
  } else if constexpr (std::is_same_v<T, DimTable>) {
    DimTable other;
    other.symbol(9);
    as(other, ": a hint");
    other = old;
    other.symbol(8);
    as(other, ": a symbol");
    other = old;
    (void)other.equal(other.symbol_dim(0), 8);
    as(other, ": a guard");
  } else if constexpr (Described<T>) {
    for_each_field(x, [&](std::string_view name, auto& field) { vary(field, path + "." + std::string(name), check); });
  } else if constexpr (is_variant<T>) {
    std::visit([&](auto& one) { vary(one, path, check); }, x);
  } else if constexpr (Text<T>) {
    as(old + "!", "");
  } else if constexpr (Range<T>) {
    for (size_t i = 0; i < x.size(); ++i) vary(x[i], path + "[" + std::to_string(i) + "]", check);
    T shorter = old;
    shorter.pop_back();
    as(shorter, ": shorter");
  } else if constexpr (Shared<T>) {
    auto copy = *old;
    vary(copy, path, [&](const std::string& where) {
      x = std::make_shared<decltype(copy)>(copy);
      check(where);
    });
    as(nullptr, ": none");
  } else if constexpr (MaybeOne<T>) {
    vary(*x, path, check);
    as(std::nullopt, ": none");
  } else if constexpr (std::is_same_v<T, bool>) {
    as(!old, "");
  } else if constexpr (std::is_enum_v<T>) {
    as(static_cast<T>(static_cast<int>(old) ^ 1), "");
  } else {
    as(static_cast<T>(old + 1), "");
  }
}

template <class Kind>
Step step_of() {
  Step step;
  step.work = Kind();
  return step;
}

/// One step of each kind, with every field filled.
Program filled() {
  Program program;
  int64_t next = 0;
  fill(program, next);
  program.steps = {step_of<LoopStep>(),         step_of<ColumnStep>(),    step_of<MatmulStep>(),
                   step_of<Conv2dStep>(),       step_of<AttentionStep>(), step_of<AttentionBackwardStep>(),
                   step_of<Conv2dWeightStep>(), step_of<HostStep>()};
  for (Step& step : program.steps) fill(step, next);
  return program;
}

TEST(Program, OneFieldThatDiffersShowsInEqualityHashAndText) {
  static_assert(std::variant_size_v<decltype(Step::work)> == 8, "filled() has a step of each kind");
  const Program original = filled();
  const std::string text = str(original);
  const uint64_t hash = hash_of(original);
  Program changed = filled();
  EXPECT_TRUE(changed == original) << "kernels are the same by key";
  EXPECT_EQ(hash_of(changed), hash);
  EXPECT_EQ(str(changed), text);
  int differences = 0;
  vary(changed, "program", [&](const std::string& path) {
    ++differences;
    EXPECT_FALSE(changed == original) << path;
    EXPECT_NE(hash_of(changed), hash) << path;
    EXPECT_NE(str(changed), text) << path;
  });
  EXPECT_GT(differences, 400);
  EXPECT_TRUE(changed == original) << "all is as it was";
}

TEST(Program, TextNamesWhatIsNotAsUsual) {
  DimTable dims;
  const Dim rows = dims.symbol(8);
  LoopStep loop;
  loop.space = {rows, 4};
  loop.arguments = {{2, 0, {16, 4}, 0, true}};
  loop.rows_whole = true;
  EXPECT_EQ(str(Step{"sum", 32, 0, loop}, dims),
            "(name=sum, operations=32, work=loop(space=[s0, 4], arguments=[(buffer=2, strides=[16, 4], "
            "read_only=true)], rows_whole=true))");
  EXPECT_EQ(str(Step{"", 0, 0, HostStep{"sort", {}, {}, {{"dim", 1}}, {}}}, dims),
            "(work=host(op=sort, attributes=[(name=dim, value=1)]))");
}

TEST(Program, WalksReachEveryPart) {
  ProductKernels kernels;
  kernels.tiles = {kernel("tile")}, kernels.transposed = kernel("transposed");
  MatmulStep matmul;
  matmul.m = 3;
  matmul.a.buffer = 1, matmul.b.buffer = 2;
  matmul.epilogue.arguments.resize(2);
  matmul.epilogue.arguments[0].buffer = 3, matmul.epilogue.arguments[1].buffer = 4;
  matmul.epilogue.scalars = {{ScalarSource::Kind::call, 7, 0, DType::f32},
                             {ScalarSource::Kind::call, 5, 0, DType::f32}};
  matmul.epilogue.kernels = {kernel("epilogue"), nullptr};
  matmul.prologue.emplace();
  matmul.prologue->kernel = kernel("prologue");
  matmul.prologue->arguments.resize(1);
  matmul.prologue->arguments[0].buffer = 5;
  matmul.prologue->scalars = {{ScalarSource::Kind::call, 6, 0, DType::f32}};
  matmul.kernels = std::make_shared<ProductKernels>(kernels);
  Step step{"product", 0, 0, matmul};
  std::vector<std::string> keys;
  for_each_kernel(step, [&](const KernelPtr& k) { keys.push_back(k->key); });
  EXPECT_EQ(keys, (std::vector<std::string>{"epilogue", "prologue", "tile", "transposed"}));
  std::vector<uint32_t> buffers, scalars;
  for_each_argument(step, [&](const Argument& a) { buffers.push_back(a.buffer); });
  EXPECT_EQ(buffers, (std::vector<uint32_t>{1, 2, 3, 4, 5}));
  for_each_scalar(step, [&](const ScalarSource& s) { scalars.push_back(s.number); });
  EXPECT_EQ(scalars, (std::vector<uint32_t>{7, 5, 6}));
  for_each_part<Dim>(step, [](Dim& d) { d = 9; });
  EXPECT_EQ(step.as<MatmulStep>().m, Dim(9));
  EXPECT_EQ(step.as<MatmulStep>().epilogue.arguments[1].offset, Dim(9));
  EXPECT_EQ(step.as<MatmulStep>().epilogue.scalars[0].size, Dim(9));
  EXPECT_EQ(step.operations, Dim(9));
}

TEST(Program, AHostStepsOperandsAndAttributesAreKnownByName) {
  HostStep sort{"sort", {}, {{"self", {}, {4}, DType::f64}}, {{"dim", 1}}, {}};
  EXPECT_EQ(sort.operand("self").dtype, DType::f64);
  EXPECT_EQ(sort.find("sorter"), nullptr);
  EXPECT_EQ(sort.attribute("dim"), Dim(1));
  EXPECT_ANY_THROW((void)sort.attribute("descending"));
  EXPECT_ANY_THROW((void)sort.operand("sorter"));
}

}  // namespace
}  // namespace ingot
