// A frozen module, and a function that calls modules, notices when one of their tensors, or a module in them, is
// another one, whatever way it was assigned.
#include <list>
#include <thread>

#include "support.h"

namespace ingot {
namespace {

using test::same_bits;
using FrozenModules = test::Inference;

struct CellImpl : nn::Module {
  nn::Linear fc{4, 4};
  Tensor scale = ones({4});
  nn::Buffer shift = zeros({4});
  Tensor forward(const Tensor& x) const {
    Tensor y = fc(x) * scale + shift;
    return is_training() ? y * 2 : y;
  }
};
INGOT_MODULE(Cell, fc, scale, shift);

struct HouseImpl : nn::Module {
  Cell first;
  std::vector<Cell> rest = std::vector<Cell>(2);
  std::optional<Cell> maybe;
  std::list<Tensor> loose{ones({4})};  // elements anywhere
  nn::Sequential last{nn::Linear(4, 4), nn::ReLU()};
  Tensor forward(const Tensor& x) const {
    Tensor y = first(x);
    for (const Cell& cell : rest) y = cell(y);
    if (maybe) y = (*maybe)(y);
    for (const Tensor& t : loose) y = y * t;
    return last(y);
  }
};
INGOT_MODULE(House, first, rest, maybe, loose, last);

/// The same without the list.
struct FlatImpl : nn::Module {
  Cell first;
  std::vector<Cell> rest = std::vector<Cell>(2);
  std::optional<Cell> maybe;
  nn::Sequential last{nn::Linear(4, 4), nn::ReLU()};
  Tensor forward(const Tensor& x) const {
    Tensor y = first(x);
    for (const Cell& cell : rest) y = cell(y);
    if (maybe) y = (*maybe)(y);
    return last(y);
  }
};
INGOT_MODULE(Flat, first, rest, maybe, last);

/// `function_of(model)` calls the model.
template <class Model, class FunctionOf>
void judge(std::vector<std::pair<const char*, std::function<void(Model&)>>> changes, FunctionOf function_of) {
  Model model;
  auto fast = compile(function_of(model), {.mode = CompileMode::frozen});
  Tensor x = randn({3, 4});
  auto settle = [&](const char* what) {
    for (int call = 0; call < 5; ++call) ASSERT_TRUE(same_bits(fast(x), model(x))) << what << ", call " << call;
    const int64_t frozen = fast.stats().frozen_calls;
    ASSERT_TRUE(same_bits(fast(x), model(x))) << what;
    EXPECT_EQ(fast.stats().frozen_calls, frozen + 1) << what << ": it is frozen again, " << fast.explain().frozen;
  };
  settle("as made");
  for (auto& [what, change] : changes) {
    change(model);
    settle(what);
  }
}

template <class Model>
std::vector<std::pair<const char*, std::function<void(Model&)>>> changes() {
  return {
      {"a parameter", [](Model& m) { m->first->fc->bias = randn({4}); }},
      {"a parameter, moved in", [](Model& m) { m->first->scale = std::move(randn({4}).mul_(2)); }},
      {"a buffer", [](Model& m) { m->rest[1]->shift = nn::Buffer(randn({4})); }},
      {"another module", [](Model& m) { m->first->fc = nn::Linear(4, 4); }},
      {"another cell", [](Model& m) { m->rest[0] = Cell(); }},
      {"a swap", [](Model& m) { std::swap(m->rest[0]->scale, m->rest[1]->scale), m->rest[0]->scale = randn({4}); }},
      {"a longer list", [](Model& m) { m->rest.push_back(Cell()); }},
      {"many more",
       [](Model& m) {
         for (int i = 0; i < 20; ++i) m->rest.push_back(Cell());
       }},
      {"a shorter list", [](Model& m) { m->rest.resize(1); }},
      {"no list", [](Model& m) { m->rest = {}; }},
      {"an optional one", [](Model& m) { m->maybe = Cell(); }},
      {"in the optional one", [](Model& m) { (*m->maybe)->scale = randn({4}); }},
      {"no optional one", [](Model& m) { m->maybe.reset(); }},
      {"at the end of the sequence", [](Model& m) { m->last->push_back(nn::AnyModule(nn::Linear(4, 4))); }},
      {"in the sequence", [](Model& m) { m->last->modules[0].second = nn::AnyModule(nn::Linear(4, 4)); }},
      {"evaluation", [](Model& m) { m->eval(); }},
      {"training of a part", [](Model& m) { m->first->train(); }},
      {"values only", [](Model& m) { m->first->scale.copy_(randn({4})); }},
      {"a state", [](Model& m) { m->load_state_dict(Model(m)->state_dict()); }},
      {"the handle itself",
       [](Model& m) {
         Model other;
         m->first = other->first;
       }},
  };
}

TEST_F(FrozenModules, NoticeWhateverWayAFieldIsAssigned) {
  auto itself = [](auto& model) { return model; };
  judge<Flat>(changes<Flat>(), itself);
  auto with_list = changes<House>();
  with_list.push_back({"in a list of its own", [](House& m) { m->loose.front() = randn({4}); }});
  with_list.push_back({"at the end of it", [](House& m) { m->loose.push_back(randn({4})); }});
  with_list.push_back({"at its start", [](House& m) { m->loose.pop_front(); }});
  judge<House>(with_list, itself);
  judge<House>(with_list, [](House& model) { return [model](const Tensor& x) { return model(x); }; });
}

TEST_F(FrozenModules, AreSeenByFunctionsThatCallThem) {
  judge<Flat>(changes<Flat>(), [](Flat& model) { return [model](const Tensor& x) { return model(x); }; });
  judge<Flat>(changes<Flat>(), [](Flat& model) { return [&model](const Tensor& x) { return model(x); }; });
  judge<Flat>(changes<Flat>(),
              [](Flat& model) { return [any = nn::AnyModule(model)](const Tensor& x) { return any(x); }; });
  // Checked compiled functions are inlined.
  judge<Flat>(changes<Flat>(), [](Flat& model) {
    return
        [inner = std::make_shared<decltype(compile(model))>(compile(model))](const Tensor& x) { return (*inner)(x); };
  });
}

// Which of them runs follows from the size.
TEST_F(FrozenModules, SeveralOfOneFunction) {
  Cell small, large;
  auto f = [&](const Tensor& x) { return x.size(0).value() < 4 ? small(x) : large(small(x)); };
  auto fast = compile(f, {.mode = CompileMode::frozen});
  Tensor few = randn({3, 4}), many = randn({5, 4});
  auto agree = [&](const char* what) {
    for (int call = 0; call < 6; ++call) {
      ASSERT_TRUE(same_bits(fast(few), f(few))) << what << ", call " << call;
      ASSERT_TRUE(same_bits(fast(many), f(many))) << what << ", call " << call;
    }
    const int64_t frozen = fast.stats().frozen_calls;
    (void)fast(few), (void)fast(many);
    EXPECT_EQ(fast.stats().frozen_calls, frozen + 2) << what << ": " << fast.explain().frozen;
  };
  agree("as made");
  small->fc->weight = randn({4, 4});
  agree("a weight of both");
  large->scale = randn({4});
  agree("a parameter of one");
  large->eval();
  agree("evaluation of one");
  large->to(kFloat64);
  small->to(kFloat64);
  few = few.to(kFloat64), many = many.to(kFloat64);
  agree("another dtype");
}

// Two calls that agree are enough, as without a module.
TEST_F(FrozenModules, OfAFunctionAreKnownAfterItsFirstCall) {
  Cell model;
  auto fast = compile([&](const Tensor& x) { return model(x).exp(); }, {.mode = CompileMode::frozen});
  Tensor x = randn({3, 4});
  (void)fast(x), (void)fast(x), (void)fast(x);
  EXPECT_EQ(fast.stats().frozen_calls, 1) << fast.explain().frozen;
  // And a change between these two is no reason to refuse the function.
  auto other = compile([&](const Tensor& x) { return model(x).sin(); }, {.mode = CompileMode::frozen});
  (void)other(x);
  model->scale = randn({4});
  for (int call = 0; call < 4; ++call) ASSERT_TRUE(same_bits(other(x), model(x).sin())) << call;
  EXPECT_GT(other.stats().frozen_calls, 0) << other.explain().frozen;
}

// A module that nobody holds any more is not what the function calls.
TEST_F(FrozenModules, ExchangedWhereAFunctionCapturesTheHandle) {
  Cell model;
  auto f = [&](const Tensor& x) { return model(x); };
  auto fast = compile(f, {.mode = CompileMode::frozen});
  Tensor x = randn({3, 4});
  for (int round = 0; round < 4; ++round) {
    for (int call = 0; call < 4; ++call) ASSERT_TRUE(same_bits(fast(x), f(x))) << round << " " << call;
    EXPECT_GT(fast.stats().frozen_calls, round) << fast.explain().frozen;
    model = Cell();
  }
  model = Cell(nullptr);
  EXPECT_THROW((void)fast(x), Error);
}

// A module of each call's own has other tensors each time.
TEST_F(FrozenModules, MadeWhileTheFunctionRuns) {
  auto f = [](const Tensor& x) {
    Cell model;
    model->eval();
    return model->scale.sum() + x;
  };
  auto with_module = [](const Tensor& x) {
    Cell model;
    model->fc->weight = ones({4, 4});
    return model(x);
  };
  auto fast = compile(f, {.mode = CompileMode::frozen});
  auto called = compile(with_module, {.mode = CompileMode::frozen});
  Tensor x = randn({3, 4});
  for (int call = 0; call < 6; ++call) {
    EXPECT_TRUE(same_bits(fast(x), f(x)));
    manual_seed(static_cast<uint64_t>(call));
    Tensor y = called(x);
    manual_seed(static_cast<uint64_t>(call));
    EXPECT_TRUE(same_bits(y, with_module(x))) << call;
  }
}

// The same address for another tensor would pass for the one that went.
TEST_F(FrozenModules, TellTensorsThatTakeTheAddressOfOthers) {
  Cell model;
  auto fast = compile(model, {.mode = CompileMode::frozen});
  Tensor x = randn({3, 4});
  for (int round = 0; round < 200; ++round) {
    model->scale = Tensor();
    model->scale = randn({4});
    if (round % 3 == 0) {
      model->fc = nn::Linear(nullptr);
      model->fc = nn::Linear(4, 4);
    }
    for (int call = 0; call < 4; ++call) ASSERT_TRUE(same_bits(fast(x), model(x))) << round << " " << call;
  }
}

// Another dtype, and sizes that never come again.
TEST_F(FrozenModules, OfAnotherDtypeAndAtManySizes) {
  Cell model;
  auto fast = compile(model, {.mode = CompileMode::frozen});
  for (int64_t n = 1; n < 40; ++n) {
    if (n % 10 == 0) model->to(n % 20 ? kFloat64 : kFloat32);
    if (n % 7 == 0) model->fc->weight = randn({4, 4}).to(model->fc->weight.dtype());
    Tensor x = randn({n, 4}).to(model->scale.dtype());
    ASSERT_TRUE(same_bits(fast(x), model(x))) << n;
    if (n % 5 == 0) {
      ASSERT_TRUE(same_bits(fast(x), model(x))) << n;
    }
  }
}

// What the handle holds now is the function: the model that it was made with may go.
TEST_F(FrozenModules, OfAHandleThatIsGivenAnotherModel) {
  auto fast = compile(Cell(), {.mode = CompileMode::frozen});
  Tensor x = randn({3, 4});
  for (int round = 0; round < 3; ++round) {
    for (int call = 0; call < 4; ++call) ASSERT_TRUE(same_bits(fast(x), fast.function()(x)));
    fast.function() = Cell();
  }
}

TEST_F(FrozenModules, WhatWasReplacedIsLetGoOf) {
  Cell model;
  auto fast = compile(model, {.mode = CompileMode::frozen});
  Tensor x = randn({3, 4});
  for (int call = 0; call < 4; ++call) (void)fast(x);
  bool gone = false;
  std::vector<float> memory(4, 1.0f);
  model->scale = from_blob(memory.data(), {4}, [&](void*) { gone = true; });
  for (int call = 0; call < 4; ++call) (void)fast(x);
  model->scale = ones({4});
  for (int call = 0; call < 4; ++call) (void)fast(x);
  clear_caches();
  EXPECT_TRUE(gone);
}

// A function that is not called any more does not keep the modules that its callable let go of.
TEST_F(FrozenModules, ThatAFunctionCalledMayGo) {
  Cell model;
  const std::weak_ptr<nn::Module> watched = model.module();
  auto fast = compile([&](const Tensor& x) { return model(x); }, {.mode = CompileMode::frozen});
  Tensor x = randn({3, 4});
  for (int call = 0; call < 4; ++call) (void)fast(x);
  model = Cell();
  EXPECT_TRUE(watched.expired());
}

template <class FunctionOf>
void judge_on_threads(FunctionOf function_of) {
  Cell model;
  auto fast = compile(function_of(model), {.mode = CompileMode::frozen});
  for (int round = 0; round < 10; ++round) {
    round % 2 ? model->eval() : model->train();
    model->scale = randn({4});
    Tensor x = randn({3, 4}), expected = model(x);
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t)
      threads.emplace_back([&] {
        const NoGradGuard no_grad_here;
        for (int call = 0; call < 50; ++call) ASSERT_TRUE(same_bits(fast(x), expected));
      });
    for (std::thread& thread : threads) thread.join();
  }
}

TEST_F(FrozenModules, ManyThreadsBetweenChanges) {
  judge_on_threads([](Cell& model) { return model; });
  judge_on_threads([](Cell& model) { return [&model](const Tensor& x) { return model(x); }; });
}

}  // namespace
}  // namespace ingot
