// A frozen module notices when one of its tensors, or a module in it, is another one, whatever way it was assigned.
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

template <class Model>
void judge(std::vector<std::pair<const char*, std::function<void(Model&)>>> changes) {
  Model model;
  auto fast = compile(model, {.mode = CompileMode::frozen});
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
  judge<Flat>(changes<Flat>());
  auto with_list = changes<House>();
  with_list.push_back({"in a list of its own", [](House& m) { m->loose.front() = randn({4}); }});
  with_list.push_back({"at the end of it", [](House& m) { m->loose.push_back(randn({4})); }});
  with_list.push_back({"at its start", [](House& m) { m->loose.pop_front(); }});
  judge<House>(std::move(with_list));
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

TEST_F(FrozenModules, ManyThreadsBetweenChanges) {
  Cell model;
  auto fast = compile(model, {.mode = CompileMode::frozen});
  for (int round = 0; round < 10; ++round) {
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

}  // namespace
}  // namespace ingot
