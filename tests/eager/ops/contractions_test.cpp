// einsum against a loop over every label, tensordot and inner against einsum, and what they refuse.
#include "eager/ops/contractions.h"

#include <gtest/gtest.h>

#include <map>

#include "base/error.h"
#include "eager/ops/factories.h"

namespace ingot {
namespace {

/// Explicit equations of plain letters, summed label by label in double.
Tensor looped(const std::string& equation, const std::vector<Tensor>& operands) {
  std::string left = equation.substr(0, equation.find("->")), right = equation.substr(equation.find("->") + 2);
  std::vector<std::string> terms{""};
  for (char c : left) {
    if (c == ',')
      terms.emplace_back();
    else
      terms.back() += c;
  }
  std::map<char, int64_t> sizes;
  std::string labels = right;
  for (size_t i = 0; i < terms.size(); ++i)
    for (size_t d = 0; d < terms[i].size(); ++d) {
      int64_t& size = sizes[terms[i][d]];
      size = std::max<int64_t>(size, operands[i].size(static_cast<int64_t>(d)));
      if (labels.find(terms[i][d]) == std::string::npos) labels += terms[i][d];
    }
  std::vector<int64_t> shape;
  int64_t results = 1, all = 1;
  for (char c : right) shape.push_back(sizes[c]), results *= sizes[c];
  for (char c : labels) all *= sizes[c];
  std::vector<double> sums(results);
  for (int64_t step = 0; step < all; ++step) {
    std::map<char, int64_t> at;
    int64_t rest = step;
    for (size_t l = labels.size(); l-- > 0;) {
      at[labels[l]] = rest % sizes[labels[l]];
      rest /= sizes[labels[l]];
    }
    double product = 1;
    for (size_t i = 0; i < terms.size(); ++i) {
      Tensor element = operands[i];
      for (char c : terms[i]) element = element[element.size(0) == 1 ? 0 : at[c]];
      product *= element.item<double>();
    }
    int64_t target = 0;
    for (char c : right) target = target * sizes[c] + at[c];
    sums[target] += product;
  }
  return tensor(sums, kFloat64).view(shape);
}

TEST(Einsum, EqualsALoopOverEveryLabel) {
  struct Case {
    const char* equation;
    std::vector<std::vector<int64_t>> shapes;
  };
  const Case cases[] = {
      {"i->i", {{3}}},
      {"i->", {{3}}},
      {"ij->ji", {{2, 3}}},
      {"ii->i", {{4, 4}}},
      {"ii->", {{4, 4}}},
      {"iij->ji", {{3, 3, 2}}},
      {"ijji->ij", {{2, 3, 3, 2}}},
      {"iii->i", {{3, 3, 3}}},
      {"i,j->ij", {{3}, {4}}},
      {"i,i->i", {{3}, {3}}},
      {"i,i->", {{5}, {5}}},
      {"ij,jk->ik", {{2, 3}, {3, 4}}},
      {"ij,jk->ki", {{2, 3}, {3, 4}}},
      {"bij,bjk->bik", {{2, 3, 4}, {2, 4, 5}}},
      {"bij,bjk->ikb", {{2, 3, 4}, {2, 4, 5}}},
      {"bij,bjk->ik", {{2, 3, 4}, {2, 4, 5}}},
      {"ijk,ilk->lj", {{2, 3, 4}, {2, 5, 4}}},
      {"ij,kl->ik", {{2, 3}, {4, 5}}},
      {"ij,jk->ik", {{2, 1}, {3, 4}}},
      {"bi,bi->b", {{1, 3}, {2, 3}}},
      {"ij,ij,ij->i", {{2, 3}, {2, 3}, {2, 3}}},
      {"ij,jk,kl->il", {{2, 3}, {3, 4}, {4, 2}}},
      {"bqd,bkd,bkv->bqv", {{2, 3, 4}, {2, 5, 4}, {2, 5, 3}}},
      {"ij,k,jl->kil", {{2, 3}, {2}, {3, 2}}},
      {"Ai,iB->AB", {{2, 3}, {3, 2}}},
      {",i->i", {{}, {3}}},
      {"ij,jk->ik", {{0, 3}, {3, 4}}},
      {"ij,jk->ik", {{2, 0}, {0, 4}}},
  };
  for (const Case& c : cases) {
    SCOPED_TRACE(c.equation);
    std::vector<Tensor> operands;
    for (const auto& shape : c.shapes) operands.push_back(randn(shape, kFloat64));
    Tensor got = einsum(c.equation, operands), expected = looped(c.equation, operands);
    EXPECT_EQ(got.sizes(), expected.sizes());
    EXPECT_TRUE(allclose(got, expected, 1e-12, 1e-12)) << got << "\n" << expected;
  }
}

TEST(Einsum, EllipsisBroadcasts) {
  Tensor a = randn({2, 1, 3, 4}, kFloat64), b = randn({5, 4, 3}, kFloat64);
  EXPECT_TRUE(allclose(einsum("...ij,...jk->...ik", {a, b}), matmul(a, b), 1e-12, 1e-12));
  EXPECT_TRUE(allclose(einsum("...ij,...jk", {a, b}), matmul(a, b), 1e-12, 1e-12));
  EXPECT_TRUE(allclose(einsum("i...->...", {a}), a.sum(0), 1e-12, 1e-12));
  // A result without the dots sums over what they stand for.
  EXPECT_TRUE(allclose(einsum("...i->i", {a}), a.sum({0, 1, 2}), 1e-12, 1e-12));
}

TEST(Einsum, WithoutAResultLettersThatOccurOnceFollowInOrder) {
  Tensor x = randn({2, 3});
  EXPECT_TRUE(equal(einsum("ba", {x}), x.t()));
  EXPECT_TRUE(equal(einsum(" b a -> b ", {x}), x.sum(1)));
  EXPECT_TRUE(equal(einsum("ii", {ones({3, 3})}), tensor(3.f)));
}

TEST(Einsum, IntegersStayExactAndSumsWiden) {
  Tensor x = tensor({{100, 100}, {100, 100}}).to(kInt8);
  EXPECT_EQ(einsum("ij->", {x}).item<int64_t>(), 400);
  EXPECT_EQ(einsum("ij->", {x}).dtype(), kInt64);
  EXPECT_EQ(einsum("ij,jk->ik", {x, x}).dtype(), kInt8);
}

TEST(Einsum, RefusesWhatItCannotRead) {
  Tensor x = ones({2, 3}), y = ones({3, 4});
  for (const char* equation : {"ij", "ij,jk,kl->il", "i,jk->ik", "ijk,jk->ik", "ij,jk->iz", "ij,jk->ii", "i1,jk->ik",
                               "ij,jk->ik->i", "....ij,jk->ik", "ij,jk->i.k", "ii,jk->ik", "ij,ik->jk"})
    EXPECT_THROW(einsum(equation, {x, y}), Error) << equation;
  EXPECT_THROW(einsum("ij,jk->ik", {x, y.to(kFloat64)}), Error);
  EXPECT_THROW(einsum("ij,jk->ik", {x, Tensor()}), Error);
  try {
    einsum("ij,kj->ik", {x, y});
    FAIL();
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("operands[1]: got size 4, expected 3"), std::string::npos) << e.what();
    EXPECT_NE(std::string(e.what()).find("contractions_test.cpp"), std::string::npos) << e.what();
  }
}

TEST(Tensordot, IsASumOverPairsOfDims) {
  Tensor a = randn({2, 3, 4}, kFloat64), b = randn({4, 3, 5}, kFloat64);
  EXPECT_TRUE(allclose(tensordot(a, b, {1, 2}, {1, 0}), einsum("ijk,kjl->il", {a, b}), 1e-12, 1e-12));
  EXPECT_TRUE(allclose(tensordot(a, b, -1, 0), einsum("ijk,klm->ijlm", {a, b}), 1e-12, 1e-12));
  EXPECT_TRUE(allclose(tensordot(a, b, 0), einsum("ijk,lmn->ijklmn", {a, b}), 1e-12, 1e-12));
  EXPECT_TRUE(allclose(tensordot(ones({2, 1}, kFloat64), a, 1, 1), einsum("ix,jkl->ijl", {ones({2, 1}, kFloat64), a}),
                       1e-12, 1e-12));
  EXPECT_THROW(tensordot(a, b, 2), Error);
  EXPECT_THROW(tensordot(a, b, {1, 1}, {1, 0}), Error);
  EXPECT_THROW(tensordot(a, b, {1, 2}, 1), Error);
  EXPECT_THROW(tensordot(a, b, 4), Error);
  EXPECT_THROW(tensordot(a, tensor(1.0, kFloat64), 0, 0), Error);
}

TEST(Inner, IsOverTheLastDims) {
  Tensor a = randn({2, 3}, kFloat64), b = randn({4, 5, 3}, kFloat64);
  EXPECT_TRUE(allclose(inner(a, b), einsum("ij,klj->ikl", {a, b}), 1e-12, 1e-12));
  EXPECT_TRUE(equal(inner(a, tensor(2.0, kFloat64)), a * 2));
  EXPECT_THROW(inner(a, ones({2}, kFloat64)), Error);
}

}  // namespace
}  // namespace ingot
