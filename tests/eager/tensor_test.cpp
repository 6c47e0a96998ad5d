// Handles, views, factories and printing: what needs no kernel.
#include "eager/tensor.h"

#include <gtest/gtest.h>

#include <cmath>
#include <concepts>
#include <limits>
#include <sstream>

#include "eager/ops/factories.h"
#include "eager/ops/functions.h"
#include "eager/ops/indexing.h"
#include "eager/ops/operators.h"
#include "eager/ops/random.h"
#include "support.h"

namespace ingot {
namespace {
using namespace test;

TEST(Tensor, WritesThroughViewsOfManyDims) {
  const Tensor x = zeros(std::vector<int64_t>(17, 2)), part = x.slice(16, 0, 2, 2).slice(0, 1, 2);
  part.add_(1);
  EXPECT_EQ(x.sum().item<float>(), static_cast<float>(part.numel()));
  EXPECT_EQ(part.sum().item<float>(), static_cast<float>(part.numel()));
  part.fill_(3).mul_(2.5);
  EXPECT_EQ(x.amax().item<float>(), 7.5f);
  const Tensor whole = zeros(std::vector<int64_t>(17, 2), kInt64), some = whole.slice(16, 1, 2);
  some.copy_(full(some.sizes(), 2.75));
  EXPECT_EQ(whole.sum().item<int64_t>(), 2 * some.numel());
}

TEST(Tensor, NestedListsGiveShapeAndDtype) {
  Tensor a = tensor({{1, 2, 3}, {4, 5, 6}});
  EXPECT_EQ(a.dtype(), kInt64);
  EXPECT_EQ(a.sizes(), (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(a.data_ptr<int64_t>()[5], 6);
  EXPECT_EQ(tensor({1.5, 2.5}).dtype(), kFloat32);
  EXPECT_EQ(tensor({1, 2.5}).dtype(), kFloat32);
  EXPECT_EQ(tensor({true, false}).dtype(), kBool);
  EXPECT_EQ(tensor(3).dim(), 0);
  EXPECT_EQ(tensor({3}).dim(), 1);
  EXPECT_EQ(tensor(std::vector<double>{1, 2}).dtype(), kFloat64);
  // Vectors, as they are and in other dtypes.
  const std::vector<double> numbers{-1.5, 300, std::numeric_limits<double>::quiet_NaN()};
  EXPECT_EQ(tensor(numbers, kFloat32).str(), tensor({-1.5f, 300.f, std::numeric_limits<float>::quiet_NaN()}).str());
  EXPECT_EQ(tensor(numbers, kUInt8).str(), tensor({0, 255, 0}, kUInt8).str());
  EXPECT_EQ(tensor(std::vector<int32_t>{300, -1}, kUInt8).str(), tensor({44, 255}, kUInt8).str());
  EXPECT_EQ(tensor(std::vector<bool>{true, false, true}).str(), tensor({true, false, true}).str());
  EXPECT_EQ(tensor(std::vector<bool>{true, false}, kFloat16).str(), tensor({1.f, 0.f}, kFloat16).str());
  EXPECT_EQ(tensor(std::vector<uint8_t>{3, 200}).dtype(), kUInt8);
  EXPECT_EQ(tensor(std::vector<float>{}).sizes(), (std::vector<int64_t>{0}));
  EXPECT_EQ(tensor(std::vector<float>{}, kFloat64).sizes(), (std::vector<int64_t>{0}));
  const std::vector<float> row{1, 2};
  EXPECT_EQ(tensor({row, {3.f, 4.f}}).str(), tensor({{1.f, 2.f}, {3.f, 4.f}}).str());
  EXPECT_EQ(tensor({row, std::vector<double>{3, 4}}).str(), tensor({{1., 2.}, {3., 4.}}, kFloat64).str());
  EXPECT_THROW(tensor({row, std::vector<float>{3}}), Error);
  EXPECT_EQ(tensor({1, 2}, kInt8).dtype(), kInt8);
  EXPECT_THROW(tensor({{1, 2}, {3}}), Error);
}

TEST(Tensor, CopiesAndViewsShareStorage) {
  Tensor a = counting({2, 3}), b = a, c = a.transpose(0, 1);
  a.mutable_data_ptr<float>()[1] = 9;
  EXPECT_EQ(b.data_ptr<float>()[1], 9);
  EXPECT_EQ(c[1][0].item<float>(), 9);
  EXPECT_TRUE(a.shares_storage(c));
  EXPECT_TRUE(a.is_same(b));
  EXPECT_FALSE(a.is_same(c));
}

TEST(Tensor, AStridedViewStaysInsideItsStorage) {
  Tensor x = arange(5).to(kFloat32);
  EXPECT_EQ(x.narrow(0, 0, 1).as_strided({2, 2}, {3, 1}).sum().item<float>(), 0 + 1 + 3 + 4);
  EXPECT_THROW(x.as_strided({2, 5}, {2, 2}, 3), Error);
  EXPECT_THROW(x.as_strided({6}, {1}), Error);
}

TEST(Tensor, MutableAccessCountsAsAWrite) {
  Tensor a = counting({4}), view = a.slice(0, 1, 3);
  uint64_t before = a.version();
  a.data_ptr<float>();
  EXPECT_EQ(a.version(), before);
  view.mutable_data_ptr<float>();
  EXPECT_EQ(a.version(), before + 1);
}

TEST(Tensor, ViewsFollowTheLayout) {
  Tensor a = counting({2, 3, 4});
  EXPECT_EQ(a.permute({2, 0, 1}).strides(), (std::vector<int64_t>{1, 12, 4}));
  EXPECT_EQ(a.select(1, -1).strides(), (std::vector<int64_t>{12, 1}));
  EXPECT_EQ(a.select(1, -1).storage_offset(), 8);
  EXPECT_EQ(a.slice(2, 1, -1, 2).sizes(), (std::vector<int64_t>{2, 3, 1}));
  EXPECT_EQ(a.slice(2, -100, 100).sizes(), (std::vector<int64_t>{2, 3, 4}));
  EXPECT_EQ(a.slice(2, 3, 1).sizes(), (std::vector<int64_t>{2, 3, 0}));
  EXPECT_EQ(a.unsqueeze(-1).sizes(), (std::vector<int64_t>{2, 3, 4, 1}));
  EXPECT_EQ(a.unsqueeze(0).squeeze(0).sizes(), a.sizes());
  EXPECT_EQ(counting({1, 3, 1}).squeeze().sizes(), (std::vector<int64_t>{3}));
  EXPECT_EQ(counting({3}).expand({2, -1}).strides(), (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(a.view({-1, 4}).sizes(), (std::vector<int64_t>{6, 4}));
  EXPECT_EQ(a.flatten(1).sizes(), (std::vector<int64_t>{2, 12}));
  EXPECT_EQ(a.unflatten(2, {2, -1}).sizes(), (std::vector<int64_t>{2, 3, 2, 2}));
  EXPECT_EQ(a.movedim(0, -1).sizes(), (std::vector<int64_t>{3, 4, 2}));
  EXPECT_EQ(a.mT().sizes(), (std::vector<int64_t>{2, 4, 3}));
  EXPECT_EQ(a.narrow(1, 1, 2).storage_offset(), 4);
  EXPECT_TRUE(a.reshape({6, 4}).shares_storage(a));
}

TEST(Tensor, PiecesCoverTheTensor) {
  Tensor a = counting({7, 2});
  std::vector<Tensor> pieces = a.split(3);
  ASSERT_EQ(pieces.size(), 3u);
  EXPECT_EQ(pieces[2].sizes(), (std::vector<int64_t>{1, 2}));
  EXPECT_EQ(pieces[1][0][0].item<float>(), 6);
  EXPECT_EQ(a.chunk(4).size(), 4u);
  EXPECT_EQ(a.unbind(1)[1][3].item<float>(), 7);
  EXPECT_EQ(a.split(std::vector<int64_t>{5, 2})[1].sizes(), (std::vector<int64_t>{2, 2}));
  EXPECT_THROW(a.split(std::vector<int64_t>{5, 3}), Error);
}

TEST(Tensor, BasicIndicesAreViews) {
  Tensor a = counting({3, 4, 5});
  Tensor b = a.index({Slice(0, 2), None, 1, "..."});
  EXPECT_EQ(b.sizes(), (std::vector<int64_t>{2, 1, 5}));
  EXPECT_EQ(b[1][0][2].item<float>(), 27);
  EXPECT_TRUE(b.shares_storage(a));
  EXPECT_EQ(a.index({Ellipsis, -1}).sizes(), (std::vector<int64_t>{3, 4}));
  EXPECT_EQ(a.index({Slice(None, None, 2)}).sizes(), (std::vector<int64_t>{2, 4, 5}));
  EXPECT_THROW(a.index({0, 0, 0, 0}), Error);
}

// What is assigned to a temporary would otherwise be lost without a word.
TEST(Tensor, AssignmentToATemporaryWrites) {
  Tensor a = zeros({2, 3});
  a[0] = ones({3});
  a.index({Slice(), 0}) = tensor({5.f, 6.f});
  a[1][2] = 7;
  EXPECT_TRUE(equal(a, tensor({{5.f, 1.f, 1.f}, {6.f, 0.f, 7.f}})));
  a[0] = a[1] = 2.5;
  EXPECT_TRUE(equal(a, full({2, 3}, 2.5)));
  Tensor row = a[0];
  row = zeros({3});  // another tensor
  EXPECT_EQ(a.sum().item<float>(), 15);
  EXPECT_NE(message_of([&] { a[0] = ones({2}); }).find("copy: source: got shape [2]"), std::string::npos);
}
TEST(Tensor, AssignmentToAGradientWritesOrIsRefused) {
  Tensor p = ones({2}).requires_grad_();
  EXPECT_NE(message_of([&] { p.grad() = ones({2}); }).find("operator=: self: got an undefined temporary"),
            std::string::npos);
  p.sum().backward();
  p.grad() = full({2}, 3.f);
  EXPECT_TRUE(equal(p.grad(), full({2}, 3.f)));
}
TEST(Tensor, AssignmentToAVariableStaysThatOfHandles) {
  Tensor a = ones({2}), b = zeros({3});
  const Tensor first = a;
  std::tie(a, b) = std::tuple(b, a);
  EXPECT_TRUE(b.is_same(first));
  std::swap(a, b);
  EXPECT_TRUE(a.is_same(first));
  std::optional<Tensor> maybe;
  maybe = a;
  EXPECT_TRUE(maybe->is_same(first));
  std::vector<Tensor> list{b, a};
  list.erase(list.begin());
  EXPECT_TRUE(list[0].is_same(first));
  list[0] = b;
  a = {};
  EXPECT_FALSE(a.defined());
  EXPECT_TRUE(list[0].is_same(b));
  EXPECT_EQ(first.sum().item<float>(), 2);
  static_assert(std::is_nothrow_move_assignable_v<Tensor> && std::is_swappable_v<Tensor> && std::movable<Tensor>);
}

TEST(Tensor, NoSizesMakeAScalar) {
  for (const Tensor& t : {zeros({}), full({}, 2), rand({}), randn({}), randint(5, {}), randint(2, 5, {}), empty({})})
    EXPECT_EQ(t.dim(), 0);
  EXPECT_EQ(full({}, 2).item<int64_t>(), 2);
  EXPECT_EQ(ones({1, 1}).view({}).dim(), 0);
}

TEST(Tensor, FromBlobSharesAndGivesBack) {
  float data[6] = {0, 1, 2, 3, 4, 5};
  int released = 0;
  {
    Tensor a = from_blob(data, {2, 3}, [&](void* p) { released += p == data; });
    Tensor view = a[1];
    a = Tensor();
    data[3] = 7;
    EXPECT_EQ(view[0].item<float>(), 7);
    EXPECT_EQ(released, 0);
  }
  EXPECT_EQ(released, 1);
  EXPECT_EQ(from_blob(data, {2, 2}, {1, 2})[0][1].item<float>(), 2);
  EXPECT_THROW(from_blob(nullptr, {2}), Error);
}

TEST(Tensor, ItemNeedsOneElement) {
  EXPECT_EQ(tensor({2.5}).item<int>(), 2);
  EXPECT_TRUE(static_cast<bool>(tensor(1)));
  EXPECT_THROW(counting({2}).item<float>(), Error);
}

TEST(Tensor, ErrorsNameOpArgumentAndLine) {
  Tensor a = counting({2, 3});
  int line = __LINE__ + 1;
  std::string text = message_of([&] { a.select(0, 2); });
  EXPECT_NE(text.find("select: index: got 2, expected an index from -2 to 1"), std::string::npos) << text;
  EXPECT_NE(text.find("tensor_test.cpp:" + std::to_string(line)), std::string::npos) << text;
  text = message_of([&] { a.unsqueeze(3); });
  EXPECT_NE(text.find("unsqueeze: dim: got 3, expected a dim from -3 to 2"), std::string::npos) << text;
  line = __LINE__ + 1;
  text = message_of([&] { transpose(a, 0, 5); });
  EXPECT_NE(text.find("tensor_test.cpp:" + std::to_string(line)), std::string::npos) << text;
  text = message_of([&] { a.data_ptr<double>(); });
  EXPECT_NE(text.find("got a pointer to f64, expected one to f32"), std::string::npos) << text;
  text = message_of([&] { Tensor().sizes(); });
  EXPECT_NE(text.find("sizes: self: got an undefined tensor"), std::string::npos) << text;
  text = message_of([&] { Tensor() + 1; });
  EXPECT_NE(text.find("add: self: got nothing, expected a defined tensor or a number"), std::string::npos) << text;
  text = message_of([&] { ones({2, 2}).mm(Tensor()); });
  EXPECT_NE(text.find("mm: mat2: got nothing, expected a defined tensor"), std::string::npos) << text;
  text = message_of([&] { a.view({4, -1}); });
  EXPECT_NE(text.find("view: size"), std::string::npos) << text;
}

TEST(Tensor, PrintsAsNumPy) {
  EXPECT_EQ(counting({2, 3}).str(), "[[0. 1. 2.]\n [3. 4. 5.]]");
  EXPECT_EQ(tensor({1.5, 2.25, -3.0}).str(), "[ 1.5   2.25 -3.  ]");
  EXPECT_EQ(tensor({1, -20}).str(), "[  1 -20]");
  EXPECT_EQ(tensor({true, false}).str(), "[ True False]");
  EXPECT_EQ(tensor(3).str(), "3");
  EXPECT_EQ(tensor({1e10, 1.0}).str(), "[1.e+10 1.e+00]");
  EXPECT_EQ(counting({2, 1, 2}).str(), "[[[0. 1.]]\n\n [[2. 3.]]]");
}

TEST(Tensor, AStreamGetsDtypeAndSizesToo) {
  auto streamed = [](const auto& value) {
    std::ostringstream out;
    out << value;
    return out.str();
  };
  EXPECT_EQ(streamed(counting({2000})), "[   0.    1.    2. ... 1997. 1998. 1999.] f32[2000]");
  EXPECT_EQ(streamed(counting({2, 2}).to(kInt64)), "[[0 1]\n [2 3]]\ni64[2, 2]");
  EXPECT_EQ(streamed(tensor(true)), "True bool[]");
  EXPECT_EQ(streamed(empty({0, 3})), "[] of size (0, 3) f32[0, 3]");
  EXPECT_EQ(streamed(Tensor()), "undefined");
  EXPECT_EQ(streamed(kBFloat16), "bf16");
}

TEST(Tensor, ItemsThatATypeDoesNotHoldAreRefused) {
  EXPECT_EQ(tensor({-2.75f}).item<int>(), -2);
  EXPECT_EQ(tensor({255}).item<uint8_t>(), 255);
  EXPECT_EQ(tensor({-1}).item<uint8_t>(), 255);
  EXPECT_EQ(tensor({-128.5}, kFloat64).item<int8_t>(), -128);
  EXPECT_TRUE(std::isinf(tensor({INFINITY}).item<float>()));
  EXPECT_TRUE(std::isnan(tensor({NAN}).item<double>()));
  EXPECT_TRUE(tensor({NAN}).item<bool>());
  EXPECT_EQ(tensor({std::numeric_limits<int64_t>::min()}).item<int64_t>(), std::numeric_limits<int64_t>::min());
  EXPECT_EQ(tensor({-9223372036854775808.0}, kFloat64).item<int64_t>(), std::numeric_limits<int64_t>::min());
  EXPECT_THROW(tensor({3e9}, kFloat64).item<int>(), Error);
  EXPECT_THROW(tensor({1e30}, kFloat64).item<int>(), Error);
  EXPECT_THROW(tensor({9223372036854775808.0}, kFloat64).item<int64_t>(), Error);
  EXPECT_THROW(tensor({NAN}).item<int>(), Error);
  EXPECT_THROW(tensor({300}).item<int8_t>(), Error);
  EXPECT_THROW(tensor({300}).item<uint8_t>(), Error);
  EXPECT_THROW(tensor({-129.5}, kFloat64).item<int8_t>(), Error);
  EXPECT_THROW(tensor({1e39}, kFloat64).item<float>(), Error);
}

TEST(Tensor, NumbersAssignedToATemporaryMustFit) {
  Tensor bytes = zeros({3}, kUInt8), whole = zeros({3}, kInt64);
  EXPECT_THROW(bytes[0] = 300, Error);
  EXPECT_THROW(bytes.index({Slice(0, 2)}) = 300, Error);
  EXPECT_THROW(whole[0] = NAN, Error);
  EXPECT_EQ(bytes.str(), zeros({3}, kUInt8).str());
  bytes[0] = 255;
  bytes.index({Slice(1, 3)}) = 7;
  EXPECT_EQ(bytes.str(), tensor({255, 7, 7}).to(kUInt8).str());
}

TEST(Tensor, NotIsLogical) { EXPECT_EQ((!tensor({0.f, 2.f})).str(), tensor({1, 0}).to(kBool).str()); }

TEST(Tensor, AccessorsReachElements) {
  Tensor x = arange(24).to(kFloat32).reshape({2, 3, 4});
  const Tensor view = x.permute({2, 0, 1}).slice(0, 1, 4, 2);  // [2, 2, 3], strides 2, 12, 4
  const uint64_t before = x.version();
  const auto read = view.accessor<const float, 3>();
  EXPECT_EQ(read.size(2), 3);
  EXPECT_EQ(read.sizes(), view.sizes());
  EXPECT_EQ(read.stride(0), 2);
  for (int64_t i = 0; i < 2; ++i)
    for (int64_t j = 0; j < 2; ++j)
      for (int64_t k = 0; k < 3; ++k) EXPECT_EQ(read[i][j][k], view.index({i, j, k}).item<float>());
  EXPECT_EQ(x.version(), before);
  auto write = view.accessor<float, 3>();
  EXPECT_GT(x.version(), before) << "what is made of the tensor is out of date";
  write[1][0][2] = -5;
  EXPECT_EQ(x.index({0, 2, 3}).item<float>(), -5);
  auto row = write[1][0];
  row[0] += 100;
  EXPECT_EQ(x.index({0, 0, 3}).item<float>(), 103);
  EXPECT_THROW((x.accessor<float, 2>()), Error);
  EXPECT_THROW((x.accessor<double, 3>()), Error);
  EXPECT_THROW((Tensor().accessor<float, 1>()), Error);
}

TEST(Tensor, NewTensorsHaveItsDtype) {
  const Tensor x = ones({2}, kFloat64);
  EXPECT_EQ(x.new_zeros({3}).str(), zeros({3}, kFloat64).str());
  EXPECT_EQ(x.new_ones({3}, kInt32).dtype(), kInt32);
  EXPECT_EQ(x.new_full({2, 2}, 7).str(), full({2, 2}, 7, kFloat64).str());
  EXPECT_EQ(x.new_empty({4}).dtype(), kFloat64);
  EXPECT_EQ(zeros({2}, x.options()).dtype(), kFloat64);
  EXPECT_TRUE(x.equal(ones({2}, kFloat64)));
  EXPECT_FALSE(x.equal(ones({3}, kFloat64)));
  EXPECT_TRUE(x.allclose(x + 1e-9));
  EXPECT_FALSE(x.allclose(x + 1e-2));
}

TEST(Tensor, RoundsIntegersToTensAndHundreds) {
  const Tensor x = tensor({88, 36, 95, 85, 5, -15, -25, -96, 0});
  EXPECT_TRUE(equal(x.round(-1), tensor({90, 40, 100, 80, 0, -20, -20, -100, 0})));
  EXPECT_TRUE(equal(x.round(-2), tensor({100, 0, 100, 100, 0, 0, 0, -100, 0})));
  EXPECT_TRUE(equal(x.round(2), x));
  EXPECT_TRUE(equal(tensor({INT64_MAX, INT64_MIN}).round(-19), tensor({0, 0})));
  EXPECT_TRUE(equal(tensor({130, 120}, kUInt8).round(-2), tensor({100, 100}, kUInt8)));
}

TEST(Tensor, DataIsTheTensorOffTheTape) {
  const Tensor x = ones({2}).requires_grad_(), data = x.data();
  EXPECT_FALSE(data.requires_grad());
  data.add_(1);
  EXPECT_TRUE(equal(x, tensor({2.f, 2.f})));
  EXPECT_TRUE(data.shares_storage(x));
}

}  // namespace
}  // namespace ingot
