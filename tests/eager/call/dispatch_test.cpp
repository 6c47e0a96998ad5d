// The interception point: what an interceptor sees, and when a value is asked of it.
#include "eager/call/dispatch.h"

#include <gtest/gtest.h>

#include <thread>

#include "base/module_path.h"
#include "eager/call/infer.h"
#include "eager/data.h"
#include "eager/ops/factories.h"
#include "eager/ops/functions.h"

namespace ingot {
namespace {

/// Leaves every result pending, and executes what it has seen at a flush.
class Deferring : public eager::Interceptor {
 public:
  struct Seen {
    OpId op;
    bool inplace;
    size_t operands, attrs;
    int line;
    std::string module;
  };
  std::vector<Seen> calls;
  std::vector<std::string> reasons;

  Deferring() : Interceptor(eager::Stage::record), previous_(eager::set_interceptor(stage(), this)) {}
  ~Deferring() override { eager::set_interceptor(stage(), previous_); }

  using Interceptor::call;
  void call(const eager::OpCall& call, std::span<Tensor> outputs) override {
    calls.push_back(
        {call.op, call.inplace, call.operands.size(), call.attrs.size(), call.location.line, module_path()});
    eager::OutputMeta meta;
    eager::infer_outputs(call, {&meta, 1});
    outputs[0] = eager::make_tensor(meta.dtype, meta.sizes, meta.strides, meta.offset, nullptr);
    pending_.push_back(outputs[0]);
  }
  void flush(const char* reason, Location) override {
    reasons.push_back(reason);
    const eager::WithoutInterceptors now;
    for (Tensor& t : pending_) {
      t.impl()->storage = runtime::Storage::allocate(t.storage_offset() * t.itemsize() + t.nbytes()).detach();
      t.fill_(7);
    }
    pending_.clear();
  }

 private:
  eager::Interceptor* previous_;
  std::vector<Tensor> pending_;
};

TEST(Interceptor, SeesEveryCallWithItsLine) {
  Tensor a = tensor({1.f, 2.f});
  Deferring interceptor;
  int line = __LINE__ + 1;
  Tensor b = (a + 1).view({2, 1}).add(a, 3);
  ASSERT_EQ(interceptor.calls.size(), 3u);
  EXPECT_EQ(interceptor.calls[0].op, OpId::add);
  EXPECT_EQ(interceptor.calls[1].op, OpId::view);
  for (const auto& call : interceptor.calls) EXPECT_EQ(call.line, line);
  EXPECT_EQ(interceptor.calls[2].operands, 3u);
  EXPECT_EQ(b.sizes(), (std::vector<int64_t>{2, 2}));
  EXPECT_TRUE(interceptor.reasons.empty());
}

TEST(Interceptor, IsAskedWhenAValueIsNeeded) {
  Tensor a = tensor({1.f, 2.f});
  Deferring interceptor;
  Tensor b = a * 2;
  EXPECT_EQ(b.dtype(), kFloat32);
  EXPECT_TRUE(interceptor.reasons.empty());
  EXPECT_EQ(b[1].numel(), 1);
  EXPECT_EQ(b.data_ptr<float>()[0], 7);
  EXPECT_EQ(interceptor.reasons, (std::vector<std::string>{"data_ptr"}));
  Tensor c = a.sum();
  EXPECT_EQ(c.item<float>(), 7);
  EXPECT_EQ(interceptor.reasons.back(), "item");
  EXPECT_EQ((a + b).str(), "[7. 7.]");
  EXPECT_EQ(interceptor.reasons.back(), "print");
}

TEST(Interceptor, APendingTensorIsRefusedOnAnotherThread) {
  Tensor a = tensor({1.f, 2.f});
  Deferring interceptor;
  Tensor b = a * 2;
  std::string read, used;
  std::thread([&] {
    try {
      b[0].item<float>();
    } catch (const Error& e) {
      read = e.what();
    }
    try {
      b + 1;
    } catch (const Error& e) {
      used = e.what();
    }
  }).join();
  EXPECT_NE(read.find("still being recorded"), std::string::npos) << read;
  EXPECT_NE(used.find("add: self: got a tensor whose value is still being recorded"), std::string::npos) << used;
}

/// Notes who saw what, and hands it on.
class Noting : public eager::Interceptor {
 public:
  Noting(eager::Stage stage, std::string name, std::vector<std::string>* seen)
      : Interceptor(stage), name_(std::move(name)), seen_(seen), previous_(eager::set_interceptor(stage, this)) {}
  ~Noting() override { eager::set_interceptor(stage(), previous_); }
  void call(const eager::OpCall& call, std::span<Tensor> outputs) override {
    seen_->push_back(name_);
    proceed(call, outputs);
    seen_->push_back(name_ + " done");
  }
  using Interceptor::call;
  void flush(const char* reason, Location) override { seen_->push_back(name_ + " " + reason); }
  void hand_out(const detail::TensorImpl&, bool writable) override {
    seen_->push_back(name_ + (writable ? " writes" : " reads"));
  }

 private:
  std::string name_;
  std::vector<std::string>* seen_;
  eager::Interceptor* previous_;
};

TEST(Chain, StagesAreMetInTheirOrderWhoeverCameFirst) {
  using Names = std::vector<std::string>;
  Names seen;
  Tensor a = tensor({1.f, 2.f});
  EXPECT_FALSE(eager::intercepted());
  {
    Noting record(eager::Stage::record, "record", &seen), autocast(eager::Stage::autocast, "autocast", &seen);
    Noting autograd(eager::Stage::autograd, "autograd", &seen);
    EXPECT_TRUE(eager::intercepted());
    Tensor b = a + 1;
    EXPECT_EQ(seen, (Names{"autocast", "autograd", "record", "record done", "autograd done", "autocast done"}));
    seen.clear();
    EXPECT_EQ(b.data_ptr<float>()[1], 3);
    EXPECT_EQ(seen, (Names{"autocast data_ptr", "autograd data_ptr", "record data_ptr", "autocast reads",
                           "autograd reads", "record reads"}));
    seen.clear();
    {  // one stands in another's place, and gives it back
      Noting inner(eager::Stage::autograd, "inner", &seen);
      b.neg();
      EXPECT_EQ(seen, (Names{"autocast", "inner", "record", "record done", "inner done", "autocast done"}));
    }
    seen.clear();
    const std::string name = "own";
    const std::function<std::vector<Tensor>()> body = [&] {
      return Names{} == seen ? std::vector<Tensor>{} : std::vector{b};
    };
    EXPECT_EQ(eager::dispatch(eager::OpaqueCall{name, Location::none(), body}).size(), 1u);
    EXPECT_EQ(seen, (Names{"autocast own", "autograd own", "record own"}));
    seen.clear();
    {
      const eager::WithoutInterceptors none;
      EXPECT_FALSE(eager::intercepted());
      b.exp();
      Noting inner(eager::Stage::autograd, "inner", &seen);
      b.exp();
    }
    EXPECT_EQ(seen, (Names{"inner", "inner done"}));
    EXPECT_EQ(eager::interceptor(eager::Stage::autograd), &autograd);
    seen.clear();
    std::thread([&] { a.exp(); }).join();  // each thread has a chain of its own
    EXPECT_EQ(seen, Names{});
    EXPECT_THROW(a + tensor({1.f, 2.f, 3.f}), Error);
    EXPECT_EQ(seen, (Names{"autocast", "autograd", "record"}));
    seen.clear();
    a.neg();
    EXPECT_EQ(seen.size(), 6u);
  }
  EXPECT_FALSE(eager::intercepted());
}

TEST(Threads, EagerOpsOfManyThreadsDoNotDisturbEachOther) {
  std::vector<std::thread> threads;
  std::atomic<int> wrong{0};
  for (int t = 0; t < 4; ++t)
    threads.emplace_back([t, &wrong] {
      for (int i = 1; i < 200; ++i) {
        Tensor x = full({i % 40 + 1, 8}, t + 1, kFloat32);
        Tensor sum = (x * 2 + x).sum();
        if (sum.item<float>() != static_cast<float>(24 * (t + 1) * (i % 40 + 1))) ++wrong;
      }
    });
  for (std::thread& t : threads) t.join();
  EXPECT_EQ(wrong, 0);
}

}  // namespace
}  // namespace ingot
