// Tensors from outside that are read and written are written in place where nobody reads them afterwards, and only
// there.
#include <atomic>
#include <thread>

#include "runtime/memory/allocator.h"
#include "support.h"

namespace ingot {
namespace {

using test::same_bits;

/// Both see the same numbers in memory of their own; results and what was written are compared after each call.
template <class F>
void expect_bits(const char* what, F f, const IntList& sizes = {5, 24}) {
  SCOPED_TRACE(what);
  for (CompileMode mode : {CompileMode::checked, CompileMode::frozen})
    for (bool turned : {false, true}) {
      std::vector<Tensor> mine, theirs;
      for (int i = 0; i < 4; ++i) {
        Tensor t = randn(sizes);
        if (turned) t = t.t().contiguous().t();
        mine.push_back(t.clone()), theirs.push_back(t.clone());
        if (turned) mine.back() = mine.back().t().contiguous().t(), theirs.back() = theirs.back().t().contiguous().t();
      }
      auto fast = compile(f, {.mode = mode});
      for (int call = 0; call < 5; ++call) {
        const std::vector<Tensor> got = fast(mine), expected = f(theirs);
        ASSERT_EQ(got.size(), expected.size());
        for (size_t i = 0; i < got.size(); ++i)
          EXPECT_TRUE(same_bits(got[i], expected[i])) << "result " << i << ", call " << call;
        for (size_t i = 0; i < mine.size(); ++i)
          EXPECT_TRUE(same_bits(mine[i], theirs[i])) << "tensor " << i << ", call " << call;
      }
      EXPECT_EQ(fast.stats().fallbacks, 0);
      if (mode == CompileMode::frozen) EXPECT_EQ(fast.stats().frozen_calls, 3) << fast.explain().frozen;
    }
}

/// Made once: a tensor that is made outside the ops in each call keeps calls from being frozen.
const Tensor& backwards() {
  static const Tensor positions = tensor({4, 3, 2, 1, 0}).to(kInt64);
  return positions;
}

using Tensors = std::vector<Tensor>;
#define EXPECT_BITS(...) expect_bits(#__VA_ARGS__, [](const Tensors& t) { __VA_ARGS__; })

TEST(Donation, Updates) {
  EXPECT_BITS(t[0].add_(t[1]); return Tensors{};);
  EXPECT_BITS(t[0].mul_(0.9).add_(t[1], 0.1); t[2].sub_(t[0] * 0.01); return Tensors{};);
  EXPECT_BITS(t[0].mul_(0.9).add_(t[1], 0.1); t[2].mul_(0.99).add_(t[1].square(), 0.01);
              t[3].addcdiv_(t[0], t[2].abs().sqrt() + 1e-8, -0.001); return Tensors{};);
  EXPECT_BITS(t[0].add_(t[1]); return Tensors{t[0] * 2};);
  EXPECT_BITS(Tensor before = t[0] * 2; t[0].add_(t[1]); return Tensors{before};);
  EXPECT_BITS(Tensor before = t[0].clone(); t[0].add_(t[1]); return Tensors{before, t[0].sum()};);
}

// Who reads what was there, in another order of elements or after the write, must see it.
TEST(Donation, WhatIsReadElsewhereIsNotOverwritten) {
  EXPECT_BITS(Tensor a = t[0].clone(); t[0].copy_(t[1]); t[1].copy_(a); return Tensors{};);
  EXPECT_BITS(t[0].add_(t[0].flip({0})); return Tensors{};);
  EXPECT_BITS(t[0].add_(t[0].roll(1, 1)); return Tensors{};);
  EXPECT_BITS(t[0].sub_(t[0].mean(1, true)); return Tensors{};);
  EXPECT_BITS(t[0].sub_(t[0].mean(0, true)); return Tensors{};);
  EXPECT_BITS(t[0].copy_(t[0].softmax(1)); return Tensors{};);
  EXPECT_BITS(t[0].copy_(t[0].cumsum(1)); return Tensors{};);
  EXPECT_BITS(Tensor s = t[0].sum(); t[0].mul_(2); return Tensors{s, t[0].sum(), (t[0] - s).sum(0)};);
  EXPECT_BITS(Tensor a = t[0], b = t[1]; Tensor x = a * 2 + b, y = b * 3 - a; a.copy_(x); b.copy_(y);
              return Tensors{x};);
  EXPECT_BITS(Tensor old = t[0] + 1; t[0].mul_(t[1]); Tensor p = old.matmul(t[0].t()); t[1].add_(old);
              return Tensors{p};);
  EXPECT_BITS(Tensor p = t[0].matmul(t[1].t()); t[0].add_(p.sum()); t[1].mul_(p.mean()); return Tensors{p};);
  EXPECT_BITS(Tensor p = t[0].t().matmul(t[0]); t[0].sub_(t[0].matmul(p), 0.01); return Tensors{};);
  EXPECT_BITS(t[0].add_(t[0].slice(1, 0, 1)); return Tensors{};);
  EXPECT_BITS(t[0].add_(t[0][0]); return Tensors{};);
  EXPECT_BITS(t[0].copy_(t[0].index_select(0, backwards())); return Tensors{};);
}

TEST(Donation, WritesAtPositions) {
  EXPECT_BITS(t[0].index_copy_(0, backwards().slice(0, 0, 2), t[1].slice(0, 0, 2)); return Tensors{};);
  EXPECT_BITS(t[0].index_add_(0, backwards(), t[1] * 2); return Tensors{t[0].sum(0)};);
  EXPECT_BITS(t[0].index_copy_(0, backwards(), t[0]); return Tensors{};);
  EXPECT_BITS(t[0].index_copy_(0, backwards(), t[0] * 2); return Tensors{};);
  EXPECT_BITS(t[0].scatter_(0, backwards().unsqueeze(1).expand({5, 24}), t[0].flip({1})); return Tensors{};);
  EXPECT_BITS(Tensor before = t[0] * 2; t[0].index_fill_(0, backwards().slice(0, 1, 3), 7); return Tensors{before};);
  EXPECT_BITS(t[0].index_fill_(0, backwards().slice(0, 1, 3), 7); return Tensors{t[0] * 2};);
  EXPECT_BITS(t[0].scatter_reduce_(0, backwards().unsqueeze(1).expand({5, 24}), t[2], "amax"); return Tensors{};);
  EXPECT_BITS(t[0].copy_(t[0].index_add(0, backwards(), t[0])); t[0].cumsum_(1); return Tensors{};);
}

TEST(Donation, Parts) {
  EXPECT_BITS(t[0].slice(0, 1, 3).add_(t[1].slice(0, 0, 2)); return Tensors{};);
  EXPECT_BITS(t[0].slice(0, 1, 3).copy_(t[0].slice(0, 0, 2)); return Tensors{};);
  EXPECT_BITS(t[0][2].mul_(t[0][1]); t[0][1].add_(1); return Tensors{t[0].sum(1)};);
  EXPECT_BITS(Tensor before = t[0].sum(0); t[0].select(1, 3).fill_(7); return Tensors{before, t[0] * 1};);
  EXPECT_BITS(t[0].slice(1, 0, 24, 2).mul_(3); t[0].slice(1, 1, 24, 2).sub_(1); return Tensors{};);
}

TEST(Donation, OneMemoryUnderSeveralHandles) {
  Tensor mine = randn({6, 4}), theirs = mine.clone();
  auto f = [](const Tensor& a, const Tensor& b) {
    a.add_(b * 2);
    b.mul_(a);
    return a + b;
  };
  auto fast = compile(f);
  for (int call = 0; call < 4; ++call) {
    EXPECT_TRUE(same_bits(fast(mine, mine), f(theirs, theirs)));
    EXPECT_TRUE(
        same_bits(fast(mine.slice(0, 0, 3), mine.slice(0, 3, 6)), f(theirs.slice(0, 0, 3), theirs.slice(0, 3, 6))));
    EXPECT_TRUE(
        same_bits(fast(mine.slice(0, 0, 4), mine.slice(0, 2, 6)), f(theirs.slice(0, 0, 4), theirs.slice(0, 2, 6))));
    EXPECT_TRUE(same_bits(mine, theirs)) << call;
  }
}

// A saved tensor is known by how often its memory was written: so each write counts, in the storage that it was done
// through, under whichever handle, and with two storages over one memory (from_blob).
TEST(Donation, EachWriteCountsWhereItWasDone) {
  auto f = [](const Tensor& a, const Tensor& b) {
    const Tensor before = a * 2;
    b.add_(1);
    b.add_(a);
    a.mul_(0.5);
    b.add_(before);
    return before + b;
  };
  auto checked = compile(f);
  auto frozen = compile(f, {.mode = CompileMode::frozen});
  struct Memory {
    std::vector<float> numbers{1, 2, 3, 4};
    Tensor whole = ones({4}), blob = from_blob(numbers.data(), {4}), same = from_blob(numbers.data(), {4});
  } mine, theirs, third;
  for (int call = 0; call < 5; ++call)
    for (int pair = 0; pair < 6; ++pair) {
      auto handles = [&](Memory& m) -> std::pair<Tensor, Tensor> {
        switch (pair) {
          case 0:
            return {m.whole, m.whole};
          case 1:
            return {m.whole, m.whole.view({4})};
          case 2:
            return {m.whole.view({4}), m.whole};
          case 3:
            return {m.blob, m.same};
          case 4:
            return {m.same, m.blob};
          default:
            return {m.whole, m.blob};
        }
      };
      const auto [a, b] = handles(mine);
      const auto [c, d] = handles(theirs);
      const auto [e, g] = handles(third);
      const Tensor expected = f(c, d);
      EXPECT_TRUE(same_bits(checked(a, b), expected)) << call << ' ' << pair;
      EXPECT_TRUE(same_bits(frozen(e, g), expected)) << call << ' ' << pair;
      for (Tensor Memory::*which : {&Memory::whole, &Memory::blob, &Memory::same}) {
        EXPECT_TRUE(same_bits(mine.*which, theirs.*which));
        EXPECT_TRUE(same_bits(third.*which, theirs.*which));
        EXPECT_EQ((mine.*which).version(), (theirs.*which).version()) << call << ' ' << pair;
      }
    }
  EXPECT_GT(frozen.stats().frozen_calls, 0);
}

// Frozen, the callable does not run again: what it wrote is written all the same, where it was written.
TEST(Donation, AFrozenFunctionWritesWhatItsCallableWrote) {
  int runs = 0;
  Tensor mine = zeros({3}), theirs = zeros({3}), running = mine;
  auto f = [&](const Tensor& x, const Tensor& into) {
    ++runs;
    running.mul_(0.9).add_(x, 0.1);
    into.copy_(running);
    return running + into;
  };
  auto fast = compile(f, {.mode = CompileMode::frozen});
  for (int call = 0; call < 6; ++call) {
    Tensor x = randn({3}), a = ones({3}), b = ones({3});
    const uint64_t version = mine.version();
    running = mine;
    const Tensor got = fast(x, a);
    EXPECT_GT(mine.version(), version) << "who kept something of it must notice";
    running = theirs;
    EXPECT_TRUE(same_bits(got, f(x, b)));
    EXPECT_TRUE(same_bits(a, b));
    EXPECT_TRUE(same_bits(mine, theirs));
  }
  EXPECT_EQ(runs, 6 + 2);
  EXPECT_EQ(fast.stats().frozen_calls, 4);
}

TEST(Donation, FrozenCallsWriteAtEveryPlaceSizeAndThread) {
  auto f = [](const Tensor& into, const Tensor& x, double factor) {
    into.mul_(factor).add_(x);
    return into.sum();
  };
  auto fast = compile(f, {.mode = CompileMode::frozen});
  std::atomic<int> wrong{0}, judged{0};
  std::vector<std::thread> threads;
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      Tensor mine = full({40, 6}, 1.0 + t), theirs = mine.clone();
      for (int call = 0; call < 600; ++call) {
        // Rows and columns of changing places; none, one and several of them.
        const int64_t n = call % 4, from = call % 7, across = call / 4 % 2;
        auto part = [&](const Tensor& whole) { return whole.narrow(across, across ? from % 3 : from, n); };
        const Tensor x = part(full({40, 6}, 0.25 * (call % 5)));
        const double factor = call % 3 ? 0.5 : 1;
        const Tensor got = fast(part(mine), x, factor), expected = f(part(theirs), x, factor);
        wrong += !same_bits(got, expected) || !same_bits(mine, theirs);
        ++judged;
      }
    });
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(judged, 2400);
  EXPECT_GT(fast.stats().frozen_calls, 100) << fast.explain().frozen;
}

// What a frozen call writes may be what it reads under another handle, in some calls and not in others.
TEST(Donation, FrozenCallsAreToldByWhatIsOneMemory) {
  Tensor mine = randn({8, 4}), theirs = mine.clone(), captured = mine;
  auto f = [&](const Tensor& a, const Tensor& b) {
    a.add_(b * 2);
    b.mul_(captured.slice(0, 0, 3));
    return a - b;
  };
  auto fast = compile(f, {.mode = CompileMode::frozen});
  auto rows = [](const Tensor& t, int64_t from) { return t.slice(0, from, from + 3); };
  // Apart, the same, overlapping, and one that is what the callable captured.
  const std::pair<int64_t, int64_t> places[] = {{3, 6}, {3, 3}, {3, 4}, {0, 3}, {3, 0}, {5, 3}, {0, 0}};
  for (int round = 0; round < 4; ++round)
    for (auto [i, j] : places) {
      if (j > 5) j = 5;
      for (int call = 0; call < 3; ++call) {
        captured = mine;
        const Tensor got = fast(rows(mine, i), rows(mine, j));
        captured = theirs;
        EXPECT_TRUE(same_bits(got, f(rows(theirs, i), rows(theirs, j)))) << i << " and " << j;
        ASSERT_TRUE(same_bits(mine, theirs)) << i << " and " << j << ", round " << round;
        mine.mul_(0.1), theirs.mul_(0.1);
      }
    }
  Tensor alone = randn({3, 4}), other = randn({3, 4}), alone2 = alone.clone(), other2 = other.clone();
  auto pure = [](const Tensor& a, const Tensor& b) { return a.add_(b).sum() + b.sum(); };
  auto quick = compile(pure, {.mode = CompileMode::frozen});
  for (int call = 0; call < 5; ++call) EXPECT_TRUE(same_bits(quick(alone, other), pure(alone2, other2)));
  EXPECT_EQ(quick.stats().frozen_calls, 3);
  EXPECT_TRUE(same_bits(quick(alone, alone), pure(alone2, alone2)));
  EXPECT_TRUE(same_bits(quick(alone, other), pure(alone2, other2)));
  EXPECT_TRUE(same_bits(alone, alone2));
}

TEST(Donation, AFrozenFunctionThatWritesHoldsForSizesThatItHasNotSeen) {
  Tensor mine = zeros({1}), theirs = zeros({1}), count = mine;
  int runs = 0;
  auto f = [&](const Tensor& x) {
    ++runs;
    count.add_(1);
    x.slice(0, 1).mul_(count);
    return x * count;
  };
  auto fast = compile(f, {.mode = CompileMode::frozen});
  for (int64_t n = 1; n < 40; ++n) {
    const Tensor x = randn({n + 1, 3}), y = x.clone();
    count = mine;
    const Tensor got = fast(x);
    count = theirs;
    EXPECT_TRUE(same_bits(got, f(y))) << n;
    EXPECT_TRUE(same_bits(x, y)) << n;
    ASSERT_TRUE(same_bits(mine, theirs)) << "written once a call, also while sizes are learnt";
  }
  EXPECT_NE(fast.explain().frozen.find("sizes free"), std::string::npos) << fast.explain().frozen;
  EXPECT_LE(runs, 39 + 4) << "39 of them eager";
}

// A script that is tried writes what its callable wrote and nothing else, not even for a moment.
TEST(Donation, AScriptThatForetellsWronglyLeavesNothingBehind) {
  Tensor pool[2] = {zeros({4}), zeros({4})}, cache = zeros({64, 2});
  auto f = [&](const Tensor& x) {
    const int64_t n = x.size(0);
    pool[n % 2].add_(x.sum());  // decided by a size that is a plain number
    cache.narrow(0, x.size(0) * 2, x.size(0)).copy_(x);
    return x + 1;
  };
  auto fast = compile(f, {.mode = CompileMode::frozen});
  Tensor expected[2] = {zeros({4}), zeros({4})}, expected_cache = zeros({64, 2});
  for (int call = 0; call < 24; ++call) {
    const int64_t n = 1 + call % 7;
    const Tensor x = full({n, 2}, call);
    std::atomic<bool> stop{false};
    std::atomic<int> strange{0};
    Tensor& other = pool[(n + 1) % 2];
    const float before = other[0].item<float>();
    std::thread watcher([&] {
      const volatile float* at = static_cast<const float*>(other.data_ptr());
      while (!stop) strange += *at != before;
    });
    fast(x);
    stop = true;
    watcher.join();
    EXPECT_EQ(strange, 0);
    expected[n % 2].add_(x.sum());
    expected_cache.narrow(0, 2 * n, n).copy_(x);
    EXPECT_TRUE(same_bits(pool[0], expected[0]) && same_bits(pool[1], expected[1])) << call;
    EXPECT_TRUE(same_bits(cache, expected_cache)) << call;
  }
}

// Checked after the program has begun to compute: by then nothing may be written.
TEST(Donation, NothingIsWrittenWhereAValueIsRefused) {
  Tensor table = randn({8, 4}), state = randn({3, 4});
  auto f = [&](const Tensor& x) {
    state.mul_(0.5).add_(1);
    Tensor rows = table.index_select(0, (x * 4).to(kInt64));
    state.add_(rows);
    return state * 2;
  };
  auto fast = compile(f);
  for (int call = 0; call < 6; ++call) {
    const Tensor x = call % 2 ? tensor({0.f, 1.f, 5.f}) : tensor({0.f, 1.f, 0.5f});
    const Tensor before = state.clone();
    std::string expected, got;
    try {
      static_cast<void>(f(x));
    } catch (const Error& e) {
      expected = e.what();
    }
    const Tensor after = state.clone();
    state.copy_(before);
    try {
      static_cast<void>(fast(x));
    } catch (const Error& e) {
      got = e.what();
    }
    EXPECT_EQ(got.empty(), expected.empty());
    EXPECT_EQ(got.empty(), call % 2 == 0);
    EXPECT_TRUE(same_bits(state, after)) << call;
  }
}

TEST(Donation, AnUpdateAllocatesNothing) {
  std::vector<Tensor> weights, gradients, first, second;
  for (int i = 0; i < 8; ++i)
    for (auto* list : {&weights, &gradients, &first, &second}) list->push_back(rand({40, 1000}));
  auto step = compile([&] {
    for (size_t i = 0; i < weights.size(); ++i) {
      first[i].mul_(0.9).add_(gradients[i], 0.1);
      second[i].mul_(0.999).addcmul_(gradients[i], gradients[i], 0.001);
      weights[i].addcdiv_(first[i], second[i].sqrt() + 1e-8, -1e-3);
    }
  });
  for (int i = 0; i < 3; ++i) step();
  const int64_t before = runtime::allocator_statistics().allocations;
  for (int i = 0; i < 10; ++i) step();
  EXPECT_LE(runtime::allocator_statistics().allocations - before, 10) << "large blocks a call";
  EXPECT_EQ(step.stats().fallbacks, 0);
}

// The bytes of a decode step do not grow with the cache.
TEST(Donation, APartOfACacheIsWrittenAlone) {
  Tensor cache = zeros({64, 1 << 14});
  auto put = compile([&](const Tensor& x, int64_t row) {
    cache.narrow(0, row, 1).copy_(x);
    return cache.narrow(0, row, 1) * 2;
  });
  for (int64_t row = 0; row < 6; ++row) {
    Tensor x = randn({1, 1 << 14});
    EXPECT_TRUE(same_bits(put(x, row), x * 2));
    EXPECT_TRUE(same_bits(cache[row], x[0]));
  }
  EXPECT_EQ(cache.slice(0, 6).abs().sum().item<float>(), 0);
}

TEST(Donation, PositionsOfACacheAreWrittenAlone) {
  Tensor cache = zeros({64, 1 << 14});
  auto put = compile([&](const Tensor& x, const Tensor& rows) {
    cache.index_copy_(0, rows, x);
    return x.sum();
  });
  const Tensor x = randn({2, 1 << 14});
  for (int64_t row = 0; row < 12; row += 2) {
    const Tensor rows = tensor({row, row + 1}).to(kInt64);
    reset_peak_memory_stats();
    const MemoryStats before = memory_stats();
    put(x, rows);
    // A copy of the cache would be four times that.
    if (row >= 4)
      EXPECT_LT(memory_stats().peak_beyond_scratch_bytes - (before.allocated_bytes - before.scratch_bytes), 1 << 20);
  }
  EXPECT_TRUE(same_bits(cache.slice(0, 0, 12), x.repeat({6, 1})));
  EXPECT_EQ(cache.slice(0, 12).abs().sum().item<float>(), 0);
  EXPECT_EQ(put.stats().fallbacks, 0);
}

TEST(Donation, SeveralWritesToPartsOfOneTensor) {
  EXPECT_BITS(t[0][1] = t[1][2]; t[0][3] = t[1][0]; return Tensors{t[0] * 2});
  EXPECT_BITS(t[0][1] += t[1][2]; return Tensors{t[1] * 2});
  EXPECT_BITS(t[0][1] += t[1][2]; return Tensors{t[1][2].sum()});
  EXPECT_BITS(t[0].narrow(0, 1, 2).mul_(3).add_(t[1].narrow(0, 0, 2)); return Tensors{t[1].exp()});
  EXPECT_BITS(t[0].narrow(0, 1, 2).lerp_(t[1].narrow(0, 0, 2), 0.5);
              t[0].narrow(0, 2, 2).lerp_(t[0].narrow(0, 1, 2), 0.5); return Tensors{});
  EXPECT_BITS(t[0].narrow(0, 1, 2).mul_(t[0].narrow(0, 2, 2)); return Tensors{});
  EXPECT_BITS(t[0].narrow(0, 0, 3).copy_(t[0].narrow(0, 2, 3).clone()); t[0][4] = t[0][0]; return Tensors{});
  EXPECT_BITS(t[0].index_add_(0, backwards(), t[1]); t[0].index_add_(0, backwards(), t[2], 0.5);
              return Tensors{t[2] + 1});
  EXPECT_BITS(const Tensor a = t[0].sum(0); t[0][1] = t[1][2]; const Tensor b = t[0].sum(0); t[0][2] = a;
              return Tensors{a, b});
  EXPECT_BITS(const Tensor before = t[0] + 0; t[0][1] = t[1][2]; const Tensor between = t[0] + 0; t[0][2] = before[1];
              return Tensors{before, between});
  EXPECT_BITS(const Tensor a = t[0] * 2; const Tensor b = a.cumsum(0); return (Tensors{b, b.matmul(a.t())}));
  EXPECT_BITS(t[0].mul_(2); t[0][1] = t[1][1]; t[0].select(1, 3).add_(1); return Tensors{t[0] + 1});
  EXPECT_BITS(t[0][1] = t[1][2]; t[1][0] = t[0][1]; t[0][0] = t[1][4]; t[1].add_(t[0]); return Tensors{});
  EXPECT_BITS(t[0].narrow(1, 1, 5).fill_(7); t[0].narrow(1, 3, 5).add_(t[1].narrow(1, 0, 5));
              return Tensors{matmul(t[0], t[1].t())});
  EXPECT_BITS(t[0].index_add_(0, backwards(), t[1]); t[0][2] = t[1][0]; t[0].index_copy_(0, backwards(), t[0] * 2);
              return Tensors{});
}

// However large the tensor, a call has no copy of it.
TEST(Donation, SeveralPartsOfACacheAreWrittenAlone) {
  Tensor cache = zeros({64, 1 << 14}), right = cache.clone();
  const Tensor rows = tensor({3, 9}).to(kInt64);
  auto update = [&rows](Tensor& to, const Tensor& x) {
    to[0] = x[0];
    to[1] = x[1];
    to.narrow(0, 4, 2).lerp_(x, 0.25);
    to.index_add_(0, rows, x);
    to.index_add_(0, rows, x, 0.5);
    return x * 2;
  };
  auto put = compile([&](const Tensor& x) { return update(cache, x); });
  for (int call = 0; call < 8; ++call) {
    const Tensor x = randn({2, 1 << 14});
    trim_memory();
    const int64_t before = runtime::allocator_statistics().cached_bytes;
    put(x);
    if (call > 3) EXPECT_LT(runtime::allocator_statistics().cached_bytes, before + (1 << 20));
    update(right, x);
    EXPECT_TRUE(same_bits(cache, right)) << call;
  }
  EXPECT_EQ(put.stats().fallbacks, 0);
}

}  // namespace
}  // namespace ingot
