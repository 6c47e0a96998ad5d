// Writes and reads that do not go through recorded ops: by pointers, by other threads, over memory shared by address.
#include <thread>

#include "support.h"

namespace ingot {
namespace {

using test::same_bits;

/// Runs f eagerly and compiled, several times, each on its own copy of the state.
template <class F>
void check(F f, const std::vector<Tensor>& state, int calls = 4) {
  std::vector<Tensor> mine, theirs;
  for (const Tensor& t : state) mine.push_back(t.clone()), theirs.push_back(t.clone());
  auto fast = compile([&](const Tensor& x) { return f(x, mine); });
  for (int i = 0; i < calls; ++i) {
    Tensor x = randn({4});
    ASSERT_TRUE(same_bits(fast(x), f(x, theirs))) << "call " << i;
    for (size_t s = 0; s < state.size(); ++s) ASSERT_TRUE(same_bits(mine[s], theirs[s])) << "call " << i;
  }
}

TEST(Pointers, WritesBetweenOpsOverACapturedTensor) {
  check(
      [](const Tensor& x, const std::vector<Tensor>& s) {
        Tensor before = x * s[0];
        float* p = s[0].mutable_data_ptr<float>();
        p[0] += 1;
        Tensor between = x * s[0];
        p[0] += 1;
        p[1] = p[0];
        Tensor after = x * s[0];
        p[2] = 7;
        return before + between * 2 + after * 3;
      },
      {randn({4})});
}

TEST(Pointers, WritesThroughAViewOfAnotherDType) {
  check(
      [](const Tensor& x, const std::vector<Tensor>& s) {
        const Tensor before = x * s[0], bits = s[0].view(kInt32);
        bits.bitwise_xor_(1 << 22);
        const Tensor between = s[0] * 2 + x;
        s[0].add_(1);
        const Tensor doubled = x + 1;
        doubled.view(kInt32).bitwise_and_(-256);
        return before + between + doubled * bits.to(kFloat32);
      },
      {randn({4})});
}

TEST(Pointers, AViewOfAnotherDTypeIsMadeAtEachFrozenCall) {
  auto fast = compile([](const Tensor& x) { return x.view(kInt32).bitwise_and(0x7fffffff).view(kFloat32) + 1; },
                      {.mode = CompileMode::frozen});
  for (int i = 0; i < 4; ++i) {
    const Tensor x = randn({4});
    ASSERT_TRUE(same_bits(fast(x), x.abs() + 1));
  }
}

TEST(Pointers, WritesIntoAResultOfTheCall) {
  check(
      [](const Tensor& x, const std::vector<Tensor>&) {
        Tensor y = x + 1;
        float* p = y.mutable_data_ptr<float>();
        Tensor doubled = y * 2;
        p[3] = 5;
        return doubled + y;
      },
      {});
}

TEST(Pointers, WritesThroughAViewOfTheMemory) {
  check(
      [](const Tensor& x, const std::vector<Tensor>& s) {
        float* p = s[0].narrow(0, 4, 2).mutable_data_ptr<float>();
        Tensor y = x * s[0].narrow(0, 0, 4) + s[0].narrow(0, 3, 4);
        p[0] = 3, p[-4] = 9;
        return y + s[0].narrow(0, 4, 4);
      },
      {randn({8})});
}

TEST(Pointers, ReadsSeeWhatInPlaceOpsDid) {
  check(
      [](const Tensor& x, const std::vector<Tensor>& s) {
        const float* p = s[0].data_ptr<float>();
        const float first = p[0];
        s[0].add_(x);
        const float second = p[0];
        s[0].narrow(0, 0, 2).mul_(2);
        return x * (first + 2 * second + 4 * p[0]);
      },
      {randn({4})});
}

TEST(Pointers, InPlaceOpsBesideWritesByPointer) {
  check(
      [](const Tensor& x, const std::vector<Tensor>& s) {
        s[0].add_(x);
        float* p = s[0].mutable_data_ptr<float>();
        for (int i = 0; i < 3; ++i) {
          s[0].mul_(1.5);
          p[i] = p[i + 1];
          s[0].sub_(x);
        }
        return s[0].exp() + x;
      },
      {randn({4})});
}

TEST(Pointers, OfTensorsThatAreReadBeforeAreFlushedFirst) {
  check(
      [](const Tensor& x, const std::vector<Tensor>& s) {
        Tensor y = x.matmul(s[0]);
        *s[0].mutable_data_ptr<float>() = 1;
        return y;
      },
      {randn({4, 4})});
}

TEST(Pointers, PointersFromBeforeTheCallCostNothing) {
  Tensor w = zeros({4});
  float* p = w.mutable_data_ptr<float>();
  auto fast = compile([&](const Tensor& x) { return x * w + 1; });
  for (int i = 0; i < 5; ++i) {
    p[i % 4] = static_cast<float>(i);
    Tensor x = randn({4});
    EXPECT_TRUE(same_bits(fast(x), x * w + 1));
  }
  EXPECT_EQ(fast.stats().graph_breaks, 0);
  EXPECT_EQ(fast.stats().compilations, 1);
}

// What only reads may go on being recorded; who writes to what is read through the pointer may not.
TEST(Pointers, PointersThatAreReadHoldUpWritersOnly) {
  Tensor w = randn({4});
  auto reads = compile([&](const Tensor& x) {
    const float first = *w.data_ptr<float>();
    return (w * x + w) * first;
  });
  for (int i = 0; i < 4; ++i) {
    Tensor x = randn({4});
    EXPECT_TRUE(same_bits(reads(x), (w * x + w) * *w.data_ptr<float>()));
  }
  EXPECT_EQ(reads.stats().graph_breaks, 0);
  EXPECT_EQ(reads.stats().compilations, 1);
}

TEST(Pointers, PointersIntoMemoryOfBlobsMeetByAddress) {
  std::vector<float> mine(8), theirs(8);
  auto f = [](const Tensor& x, float* memory) {
    Tensor a = from_blob(memory, {4}), b = from_blob(memory + 2, {4});
    Tensor y = x * a;
    a.add_(x);
    y = y + b;
    b.mul_(2);
    y = y + a;
    float* p = a.mutable_data_ptr<float>();
    y = y + b;
    p[3] = 11;
    return y * b;
  };
  float* memory = nullptr;
  auto fast = compile([&](const Tensor& x) { return f(x, memory); });
  for (int i = 0; i < 4; ++i) {
    Tensor x = randn({4});
    memory = mine.data();
    Tensor got = fast(x);
    ASSERT_TRUE(same_bits(got, f(x, theirs.data()))) << i;
    ASSERT_EQ(mine, theirs) << i;
  }
}

TEST(Pointers, BlobsOverOneBufferAreOneMemory) {
  for (int offset : {0, 1, 3, 4}) {
    std::vector<float> mine(8, 1.0f), theirs(8, 1.0f);
    auto run = [&](std::vector<float>& memory, auto&& f, const Tensor& x) {
      return f(x, from_blob(memory.data(), {4}), from_blob(memory.data() + offset, {4}));
    };
    auto f = [](const Tensor& x, const Tensor& a, const Tensor& b) {
      a.add_(x);
      Tensor y = b * 2;
      b.sub_(1);
      return y + a;
    };
    auto fast = compile(f);
    for (int i = 0; i < 4; ++i) {
      Tensor x = randn({4});
      ASSERT_TRUE(same_bits(run(mine, fast, x), run(theirs, f, x))) << offset;
      ASSERT_EQ(mine, theirs) << offset;
    }
  }
}

TEST(Pointers, EagerWritesBetweenOverlappingBlobs) {
  for (int distance = -3; distance <= 3; ++distance) {
    std::vector<float> memory(16), apart(16);
    for (size_t i = 0; i < 16; ++i) memory[i] = apart[i] = static_cast<float>(i * i);
    const std::vector<float> source(apart.begin() + 4 + distance, apart.begin() + 12 + distance);
    Tensor to = from_blob(memory.data() + 4, {8}), from = from_blob(memory.data() + 4 + distance, {8});
    to.copy_(from);
    for (size_t i = 0; i < 8; ++i) EXPECT_EQ(memory[4 + i], source[i]) << distance;
    std::vector<float> sums(memory.begin() + 4, memory.begin() + 12);
    for (size_t i = 0; i < 8; ++i) sums[i] += memory[static_cast<size_t>(4 + distance + static_cast<int>(i))];
    to.add_(from);
    for (size_t i = 0; i < 8; ++i) EXPECT_EQ(memory[4 + i], sums[i]) << distance;
  }
}

TEST(Pointers, DisjointPartsOfOneBufferRunAsOneProgram) {
  auto f = [](const Tensor& a, const Tensor& b) {
    a.add_(b);
    b.mul_(2);
    return a + b;
  };
  auto fast = compile(f);
  Tensor mine = randn({2, 5}), theirs = mine.clone();
  for (int i = 0; i < 4; ++i) {
    EXPECT_TRUE(same_bits(fast(mine[i % 2], mine[1 - i % 2]), f(theirs[i % 2], theirs[1 - i % 2])));
    EXPECT_TRUE(same_bits(mine, theirs));
  }
  EXPECT_EQ(fast.stats().fallbacks, 0);
}

TEST(Pointers, SharesStorageOfPendingTensors) {
  auto f = [](const Tensor& x) {
    Tensor y = x * 2, v = y.view({2, 2}), w = x.view({2, 2}), other = x * 3;
    return std::tuple(y.shares_storage(v), x.shares_storage(w), y.shares_storage(other), v.shares_storage(w),
                      other.shares_storage(other.t()));
  };
  Tensor x = randn({4});
  auto fast = compile([&](const Tensor& a) { return f(a); });
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(fast(x), std::tuple(true, true, false, false, true));
    EXPECT_EQ(f(x), std::tuple(true, true, false, false, true));
  }
}

TEST(Pointers, AWriteOfAnotherThreadIsAnErrorNeverAResult) {
  Tensor w = randn({4});
  int way = 0;
  auto fast = compile([&](const Tensor& x) {
    Tensor y = x * w;
    if (way == 1) std::thread([&] { w.add_(1); }).join();
    if (way == 2) std::thread([&] { w.mutable_data_ptr<float>()[0] = 3; }).join();
    if (way == 3) std::thread([&] { w.narrow(0, 1, 2).mul_(2); }).join();
    return y + 1;
  });
  for (int i = 0; i < 12; ++i) {
    way = i % 4;
    Tensor x = randn({4}), expected = x * w + 1;
    if (way == 0) {
      EXPECT_TRUE(same_bits(fast(x), expected));
    } else {
      try {
        fast(x);
        FAIL() << way;
      } catch (const Error& e) {
        EXPECT_NE(std::string(e.what()).find("another thread"), std::string::npos) << e.what();
      }
    }
  }
}

TEST(Pointers, AWriteOfAnotherThreadBeforeTheReadIsSeen) {
  Tensor w = randn({4});
  auto fast = compile([&](const Tensor& x) {
    Tensor y = x * 2;
    std::thread([&] { w.add_(1); }).join();
    return y + w;
  });
  for (int i = 0; i < 4; ++i) {
    Tensor x = randn({4}), expected = x * 2 + (w + 1);
    EXPECT_TRUE(same_bits(fast(x), expected));
  }
}

TEST(Pointers, ThreadsThatWritePartsOfTheirOwnDoNotDisturbEachOther) {
  Tensor results = zeros({4, 64}), x = randn({64});
  auto fast = compile([](const Tensor& a, const Tensor& out) { out.copy_(out * 0.5 + a); });
  std::vector<Tensor> expected;
  std::atomic<int> errors{0};
  std::vector<std::thread> threads;
  for (int64_t t = 0; t < 4; ++t)
    threads.emplace_back([&, t] {
      try {
        for (int i = 0; i < 500; ++i) fast(x + static_cast<double>(t), results[t]);
      } catch (const Error&) {
        ++errors;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(errors, 0);
  for (int64_t t = 0; t < 4; ++t) {
    Tensor row = zeros({64});
    for (int i = 0; i < 500; ++i) row = row * 0.5 + (x + static_cast<double>(t));
    EXPECT_TRUE(same_bits(results[t].clone(), row));
  }
}

}  // namespace
}  // namespace ingot
