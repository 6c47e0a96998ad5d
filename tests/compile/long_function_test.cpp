// Functions of thousands of ops: their kernels' stack frames are bounded, and nothing on their way recurses on depth.
#include <pthread.h>

#include <exception>

#include "support.h"

namespace ingot {
namespace {

using test::same_bits;
using Callable = std::function<Tensor(const Tensor&)>;

/// Runs f on a thread with a stack of so many bytes.
void on_stack(size_t bytes, std::function<void()> f) {
  pthread_attr_t attributes;
  ASSERT_EQ(pthread_attr_init(&attributes), 0);
  ASSERT_EQ(pthread_attr_setstacksize(&attributes, bytes), 0);
  pthread_t thread;
  auto enter = [](void* body) -> void* {
    try {
      (*static_cast<std::function<void()>*>(body))();
    } catch (const std::exception& e) {
      ADD_FAILURE() << e.what();
    }
    return nullptr;
  };
  ASSERT_EQ(pthread_create(&thread, &attributes, enter, &f), 0);
  pthread_join(thread, nullptr);
  pthread_attr_destroy(&attributes);
}

/// Each op on the one before.
Callable chain(int ops) {
  return [ops](const Tensor& x) {
    Tensor y = x;
    for (int i = 0; i < ops / 2; ++i) y = y * 0.75 + x;
    return y;
  };
}

/// Everything is computed before the first of it is used, the last first: all of it would live at once.
Callable all_alive(int ops) {
  return [ops](const Tensor& x) {
    std::vector<Tensor> values{x};
    for (int i = 0; i < ops / 2; ++i) values.push_back(values.back() * (1.0 - i * 1e-6));
    Tensor y = x;
    while (values.size() > 1) {
      y = y - values.back();
      values.pop_back();
    }
    return y;
  };
}

/// Independent values, each from the input, summed in the order in which they were made.
Callable wide(int ops) {
  return [ops](const Tensor& x) {
    std::vector<Tensor> values;
    for (int i = 0; i < ops / 2; ++i) values.push_back(x + i);
    Tensor y = x;
    for (const Tensor& v : values) y = maximum(y * 0.5, v) - y;
    return y;
  };
}

/// Masks, long definitions, and two types side by side.
Callable mixed(int ops) {
  return [ops](const Tensor& x) {
    Tensor y = x, z = x.to(kFloat64);
    std::vector<Tensor> masks;
    for (int i = 0; i < ops / 8; ++i) {
      Tensor mask = y > 0.25;
      masks.push_back(mask);
      y = where(mask, sin(y), exp(y * -0.5));
      z = z * 0.5 + y.to(kFloat64);
    }
    for (size_t i = masks.size(); i-- > 0;) y = where(masks[i], y + 1, y * 0.5);
    return y + z.to(kFloat32);
  };
}

/// Rows are reduced all along the way.
Callable rows(int ops) {
  return [ops](const Tensor& x) {
    Tensor y = x;
    for (int i = 0; i < ops / 4; ++i) y = y - (y * 0.5).sum(-1, true) * 0.001;
    return y;
  };
}

struct Form {
  const char* name;
  Callable (*make)(int ops);
};
constexpr Form kForms[] = {
    {"chain", chain}, {"all alive", all_alive}, {"wide", wide}, {"mixed", mixed}, {"rows", rows}};

void expect_eager_bits(const Form& form, int ops, const Tensor& x, CompileMode mode) {
  Callable f = form.make(ops);
  auto fast = compile(f, {.mode = mode});
  const Tensor expected = f(x);
  for (int call = 0; call < (mode == CompileMode::frozen ? 4 : 2); ++call)
    EXPECT_TRUE(same_bits(fast(x), expected)) << form.name << ", " << ops << " ops";
  EXPECT_EQ(fast.stats().compilations, 1) << form.name;
  EXPECT_EQ(fast.stats().fallbacks, 0) << form.name;
}

TEST(LongFunction, OfTenThousandOps) {
  for (const Form& form : kForms) expect_eager_bits(form, 10'000, randn({3, 40}), CompileMode::checked);
}

TEST(LongFunction, OfAHundredThousandOps) {
  for (const Form& form : {kForms[0], kForms[4]})
    expect_eager_bits(form, 100'000, randn({3, 40}), CompileMode::checked);
}

TEST(LongFunction, OnASmallStack) {
  const Tensor x = randn({5, 33});
  for (const Form& form : kForms)
    on_stack(256 << 10, [&] {
      for (CompileMode mode : {CompileMode::checked, CompileMode::frozen}) expect_eager_bits(form, 3'000, x, mode);
    });
}

// Values of 64 bits take two registers each.
TEST(LongFunction, OfWideTypesOnASmallStack) {
  for (DType dtype : {kFloat64, kInt64, kInt32})
    for (int64_t columns : {7, 64, 200}) {
      const Tensor x = (randn({3, columns}) * 100).to(dtype);
      auto f = [](const Tensor& t) {
        std::vector<Tensor> values{t};
        for (int i = 0; i < 600; ++i) values.push_back(i % 3 ? values.back() * (i + 2) : values.back() + t * i);
        Tensor y = t;
        for (size_t i = values.size(); i-- > 0;) y = y - values[i];
        return y;
      };
      on_stack(256 << 10, [&] {
        auto fast = compile(f);
        EXPECT_TRUE(same_bits(fast(x), f(x)));
        EXPECT_EQ(fast.stats().fallbacks, 0) << name_of(dtype) << " " << columns;
      });
    }
}

TEST(LongFunction, OnThePool) {
  const Tensor x = randn({64, 4096});
  for (const Form& form : kForms) expect_eager_bits(form, 600, x, CompileMode::checked);
}

TEST(LongFunction, OnEveryInstructionSet) {
  const test::RestoredSettings restored;
  for (Isa isa : {Isa::avx2, Isa::avx512}) {
    if (runtime::detected_target().isa < isa) continue;
    runtime::set_host_target(Target{.isa = isa});
    for (const Form& form : kForms)
      on_stack(256 << 10, [&] { expect_eager_bits(form, 1'000, randn({4, 128}), CompileMode::checked); });
  }
}

}  // namespace
}  // namespace ingot
