// A recommendation model (Naumov et al., "Deep Learning Recommendation Model for Personalization and Recommendation
// Systems", 2019): numbers and categories as vectors, the products of every two of them, a network over all.
#pragma once
#include "mlp.h"

namespace models {

/// The sizes published for the Criteo Kaggle data set (13 numbers, 26 categories), with tables of 10,000 rows.
struct DLRMConfig {
  std::vector<int64_t> bottom = {13, 512, 256, 64};  // of the numbers, of each layer above them
  std::vector<int64_t> top = {512, 256, 1};          // of each layer above the products
  std::vector<int64_t> tables = std::vector<int64_t>(26, 10000);
  std::string bag = "sum";  // of the rows of a category; or "mean", "max"
};

/// Numbers f32 [N, bottom.front()], and of each category a bag of rows, i64 [N, tables, rows a bag], to a logit [N, 1].
struct DLRMImpl : nn::Module {
  nn::Sequential bottom, top;
  std::vector<nn::EmbeddingBag> tables;
  Tensor below_diagonal;  // of the matrix of products, flattened: no part of checkpoints
  explicit DLRMImpl(const DLRMConfig& c = {}) : bottom(mlp(c.bottom)) {
    const int64_t width = c.bottom.back(), vectors = static_cast<int64_t>(c.tables.size()) + 1;
    bottom->push_back(nn::ReLU());
    for (int64_t rows : c.tables) tables.emplace_back(rows, width, nn::EmbeddingBagOptions{.mode = c.bag});
    std::vector<int64_t> sizes = {width + vectors * (vectors - 1) / 2}, pairs;
    sizes.insert(sizes.end(), c.top.begin(), c.top.end());
    top = mlp(sizes);
    for (int64_t i = 0; i < vectors; ++i)
      for (int64_t j = 0; j < i; ++j) pairs.push_back(i * vectors + j);
    below_diagonal = tensor(pairs);
  }
  Tensor forward(const Tensor& numbers, const Tensor& categories) {
    std::vector<Tensor> vectors = {bottom(numbers)};
    for (size_t i = 0; i < tables.size(); ++i)
      vectors.push_back(tables[i](categories.select(1, static_cast<int64_t>(i))));
    Tensor all = stack(vectors, 1);  // [N, vectors, width]
    Tensor products = matmul(all, all.transpose(1, 2)).flatten(1).index_select(1, below_diagonal);
    return top(cat({vectors[0], products}, 1));
  }
};
INGOT_MODULE(DLRM, bottom, tables, top);

}  // namespace models
