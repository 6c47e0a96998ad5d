// The demo's models against what they give in double (examples/data/expected.json).
#include "cli/models.h"

#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

namespace ingot::cli {
namespace {

const std::string kFolder = INGOT_SOURCE_DIR "/examples/data";

struct Figures {
  double cross_entropy = 0;
  int64_t correct = 0, correct_of_test = 0;
};

// Over all digits at once, in the batches of 64 that `forward` gets.
Figures figures(const DemoModel& model, const std::function<Tensor(const Tensor&)>& forward) {
  auto data = load(kFolder + "/digits.safetensors");
  Tensor labels = data.at("labels"), is_test = data.at("is_test");
  Tensor images = model.input(labels.size(0));
  Figures f;
  for (int64_t at = 0; at < labels.size(0); at += 64) {
    int64_t count = std::min<int64_t>(64, labels.size(0) - at);
    Tensor logits = forward(images.narrow(0, at, count)), expected = labels.narrow(0, at, count);
    Tensor right = logits.argmax(1).eq(expected);
    f.cross_entropy += F::cross_entropy(logits, expected).item<double>() * static_cast<double>(count);
    f.correct += right.sum().item<int64_t>();
    f.correct_of_test += right.logical_and(is_test.narrow(0, at, count)).sum().item<int64_t>();
  }
  f.cross_entropy /= static_cast<double>(labels.size(0));
  return f;
}

class DigitModels : public testing::TestWithParam<const char*> {};

TEST_P(DigitModels, GiveTheExpectedFiguresEagerAndCompiled) {
  std::ifstream file(kFolder + "/expected.json");
  auto expected = nlohmann::json::parse(file)[GetParam()];
  DemoModel model = demo_model(GetParam(), kFolder);
  auto fast = compile(model.forward);
  for (const Figures& f : {figures(model, model.forward), figures(model, [&](const Tensor& x) { return fast(x); })}) {
    EXPECT_EQ(f.correct, expected["correct_of_1797"]);
    EXPECT_EQ(f.correct_of_test, expected["correct_of_360_test"]);
    double reference = expected["mean_cross_entropy_f64"];
    EXPECT_NEAR(f.cross_entropy, reference, 1e-6 * reference);
  }
  EXPECT_EQ(fast.stats().compilations, 2);  // 64, then any batch
  EXPECT_EQ(fast.stats().fallbacks, 0);
}
INSTANTIATE_TEST_SUITE_P(Demo, DigitModels, testing::Values("digits_mlp", "digits_cnn"));

}  // namespace
}  // namespace ingot::cli
