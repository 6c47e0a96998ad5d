// Methods of a tensor are the functions of their names.
#include <gtest/gtest.h>

#include "eager/ops/linalg.h"
#include "eager/ops/products.h"
#include "eager/ops/replacements.h"
#include "eager/ops/selection.h"
#include "eager/ops/shapes.h"
#include "eager/ops/statistics.h"
#include "eager/support.h"

namespace ingot {
namespace {

using test::counting;
using test::message_of;

TEST(Methods, AreTheFunctionsOfTheirNames) {
  const Tensor x = randn({4, 4}), y = randn({4, 4}), v = randn({3, 4}), w = randn({3, 4});
  const Tensor whole = randint(0, 9, {20}, kInt64), places = tensor({int64_t{1}, int64_t{5}}), two = tensor({7.f, 8.f});
  const Tensor spd = matmul(x, x.t()) + eye(4);
  const std::pair<Tensor, Tensor> pairs[] = {{x.median(), median(x)},
                                             {x.nanmedian(), nanmedian(x)},
                                             {std::get<1>(x.median(1)), std::get<1>(median(x, 1))},
                                             {std::get<0>(x.nanmedian(0, true)), std::get<0>(nanmedian(x, 0, true))},
                                             {x.quantile(0.3, 1, true, "lower"), quantile(x, 0.3, 1, true, "lower")},
                                             {x.nanquantile(0.7), nanquantile(x, 0.7)},
                                             {whole.bincount({}, 12), bincount(whole, {}, 12)},
                                             {x.histc(7, -1, 2), histc(x, 7, -1, 2)},
                                             {x.kron(v), kron(x, v)},
                                             {v.cross(w), cross(v, w)},
                                             {x.matrix_power(3), matrix_power(x, 3)},
                                             {x.dist(y, 1), dist(x, y, 1)},
                                             {x.renorm(2, 0, 0.5), renorm(x, 2, 0, 0.5)},
                                             {x.ravel(), ravel(x)},
                                             {two.diagflat(1), diagflat(two, 1)},
                                             {(x > 0).argwhere(), argwhere(x > 0)},
                                             {v.swapaxes(0, 1), v.t()},
                                             {v.swapdims(0, 1), v.t()},
                                             {v.moveaxis({0}, {1}), v.t()},
                                             {x.select_scatter(y[0], 1, 2), select_scatter(x, y[0], 1, 2)},
                                             {x.slice_scatter(v, 0, 1), slice_scatter(x, v, 0, 1)},
                                             {x.diagonal_scatter(y[1]), diagonal_scatter(x, y[1])},
                                             {x.clone().put_(places, two, true), put(x, places, two, true)},
                                             {x.index_reduce(0, places.slice(0, 0, 1), y.slice(0, 0, 1), "amax"),
                                              index_reduce(x, 0, places.slice(0, 0, 1), y.slice(0, 0, 1), "amax")},
                                             {x.det(), det(x)},
                                             {spd.logdet(), logdet(spd)},
                                             {std::get<1>(x.slogdet()), std::get<1>(slogdet(x))},
                                             {x.inverse(), inverse(x)},
                                             {v.pinverse(), pinverse(v)},
                                             {x.matrix_exp(), matrix_exp(x)}};
  for (size_t i = 0; i < std::size(pairs); ++i) EXPECT_TRUE(equal(pairs[i].first, pairs[i].second)) << "pair " << i;
}

TEST(Methods, WriteInPlaceAndNameTheirLine) {
  const Tensor x = counting({2, 3}), same = x;
  x.put_(tensor({int64_t{-1}}), tensor({9.f}));
  EXPECT_EQ(same[1][2].item<float>(), 9.f);
  EXPECT_NE(message_of([&] { x.inverse(); }).find("methods_test.cpp"), std::string::npos);
}

}  // namespace
}  // namespace ingot
