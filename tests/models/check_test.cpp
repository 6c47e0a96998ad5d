// `ingot models check`: what it finds right, what it finds wrong, and files that are not what they say.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "cli/models_check.h"
#include "cli/zoo.h"

namespace ingot::cli {
namespace {

namespace fs = std::filesystem;
const std::string kZoo = INGOT_SOURCE_DIR "/tests/data/zoo/";

/// A folder of its own for each test.
class Check : public testing::Test {
 protected:
  void SetUp() override {
    folder_ = testing::TempDir() + "/zoo_" + testing::UnitTest::GetInstance()->current_test_info()->name();
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  void TearDown() override { fs::remove_all(folder_); }

  std::string path(const std::string& name) const { return folder_ + "/" + name + ".safetensors"; }
  /// The zoo's file `of`, changed, under another name.
  void put(const std::string& name, const std::string& of,
           const std::function<void(StateDict&, std::string&)>& change) {
    StateDict tensors = load(kZoo + of + ".safetensors");
    auto metadata = load_metadata(kZoo + of + ".safetensors");
    change(tensors, metadata["about"]);
    save(tensors, path(name), metadata);
  }
  ModelChecks run() {
    return check_models(folder_, [](const std::string&) {});
  }
  /// One file that cannot be judged, for a reason with this in it.
  void expect_unfit(const std::string& part) {
    const ModelChecks checks = run();
    ASSERT_EQ(checks.failures.size(), 1U) << part;
    EXPECT_EQ(checks.models.size(), 1U);
    EXPECT_EQ(checks.failures[0].mode, "file");
    EXPECT_NE(checks.failures[0].error.find(part), std::string::npos) << checks.failures[0].error;
  }
  std::string folder_;
};

TEST_F(Check, FindsTheZooRightInEveryMode) {
  for (const char* name : {"mlp", "lstm_lm", "dlrm", "unet", "bert", "gpt2", "llama", "vit", "convnext_tiny"})
    fs::copy(kZoo + name + ".safetensors", path(name));
  save({{"start/0", ones({2})}}, path("optimizers"), {{"configurations", "[]"}});
  const ModelChecks checks = run();
  for (const ModelFailure& f : checks.failures)
    ADD_FAILURE() << f.model << " " << f.mode << " " << f.name << ": " << f.error;
  EXPECT_EQ(checks.models.size(), 9U);
  EXPECT_EQ(checks.skipped, std::vector<std::string>{"optimizers"});
  EXPECT_GT(checks.checks, 5000);
}

TEST_F(Check, TakesAFileOfAnotherNameThatBeginsWithTheModels) {
  fs::copy(kZoo + "mlp.safetensors", path("mlp_b"));
  const ModelChecks checks = run();
  EXPECT_TRUE(checks.failures.empty());
  EXPECT_GT(checks.checks, 10);
}

// Files of the same models under the names that others publish them with, gradients too.
TEST_F(Check, TakesPublishedNames) {
  auto renamed = [](StateDict& tensors, const std::function<std::string(const std::string&)>& name) {
    StateDict others;
    for (const auto& [old, t] : tensors) {
      const size_t from = old.starts_with("weight/") ? 7 : old.starts_with("grad/") ? 5 : old.size();
      others[old.substr(0, from) + (from < old.size() ? name(old.substr(from)) : "")] = t;
    }
    tensors = others;
  };
  put("gpt2", "gpt2",
      [](StateDict& t, std::string&) { t["weight/lm_head.weight"] = t.at("weight/transformer.wte.weight"); });
  put("gpt2_bare", "gpt2", [&](StateDict& t, std::string&) {
    renamed(t, [](const std::string& n) { return n.substr(std::string("transformer.").size()); });
  });
  put("bert", "bert",
      [&](StateDict& t, std::string&) { renamed(t, [](const std::string& n) { return "bert." + n; }); });
  put("bert_bare", "bert", [](StateDict& t, std::string&) {
    for (const char* part : {"weight", "bias"}) t.erase(std::string("weight/pooler.dense.") + part);
  });
  const ModelChecks checks = run();
  for (const ModelFailure& f : checks.failures)
    ADD_FAILURE() << f.model << " " << f.mode << " " << f.name << ": " << f.error;
  EXPECT_EQ(checks.models.size(), 4U);
}

// A Llama whose table of tokens gives the logits, too: a file has it once, and its gradient, the sum of both.
TEST_F(Check, TakesATiedTableOnce) {
  put("llama", "llama", [](StateDict& t, std::string& about) {
    const std::string head = "lm_head.weight", table = "model.embed_tokens.weight";
    const AutoGradMode grad(true);
    ModelFile file;
    file.tensors = t, file.about = about;
    file.weights = file.named("weight/");
    file.weights[head] = file.weights.at(table);
    const ZooModel model = zoo_model(*find_zoo_row("llama"), file);
    model.module->to(kFloat64);
    model.module->eval();
    t["eval_output"] = model.forward({t.at("input/0"), t.at("input/1")}).detach();
    model.module->train();
    const Tensor output = model.forward({t.at("input/0"), t.at("input/1")});
    const Tensor loss = zoo_loss(about)(output, {t.at("input/0"), t.at("input/1")});
    loss.backward();
    t["train_output"] = output.detach(), t["loss"] = loss.detach().reshape({1});
    for (const auto& [name, p] : model.module->named_parameters()) t["grad/" + name] = p.grad().to(kFloat32);
    t["grad/" + table] = t.at("grad/" + table) + t.at("grad/" + head);
    t.erase("grad/" + head), t.erase("weight/" + head);
  });
  const ModelChecks checks = run();
  for (const ModelFailure& f : checks.failures)
    ADD_FAILURE() << f.model << " " << f.mode << " " << f.name << ": " << f.error;
  EXPECT_GT(checks.checks, 100);
}

TEST_F(Check, SaysWhatDiffers) {
  auto expect = [&](const std::string& name, const std::string& error,
                    const std::function<void(StateDict&, std::string&)>& change) {
    put("mlp", "mlp", change);
    const ModelChecks checks = run();
    ASSERT_FALSE(checks.failures.empty()) << name;
    for (const ModelFailure& f : checks.failures) {
      EXPECT_EQ(f.model, "mlp");
      EXPECT_EQ(f.name, name);
      EXPECT_NE(f.error.find(error), std::string::npos) << f.error;
      EXPECT_NE(f.mode, "file");
    }
  };
  auto scaled = [](const std::string& tensor, double by) {
    return [=](StateDict& t, std::string&) { t[tensor] = t[tensor] * by; };
  };
  expect("eval_output", "off by", scaled("eval_output", 1.001));
  expect("train_output", "off by", scaled("train_output", 1.001));
  expect("loss", "off by", scaled("loss", 1.0001));
  expect("grad/2.weight", "off by", scaled("grad/2.weight", 1.01));
  expect("eval_output", "off by nan", scaled("eval_output", std::numeric_limits<double>::quiet_NaN()));
  expect("grad/0.bias", "the file has no such gradient", [](StateDict& t, std::string&) { t.erase("grad/0.bias"); });
  expect("grad/of_nothing", "got nothing", [](StateDict& t, std::string&) { t["grad/of_nothing"] = ones({3}); });
  expect("buffer_after/no_such", "got nothing",
         [](StateDict& t, std::string&) { t["buffer_after/no_such"] = ones({1}); });
  expect("eval_output", "another shape", [](StateDict& t, std::string&) { t["eval_output"] = ones({5, 9}); });
}

TEST_F(Check, NamesWhatIsWrongWithAFile) {
  using Change = std::function<void(StateDict&, std::string&)>;
  struct Wrong {
    const char *model, *part;
    Change change;
  };
  const std::vector<Wrong> all = {
      {"mlp", "no tensor 'eval_output'", [](StateDict& t, std::string&) { t.erase("eval_output"); }},
      {"mlp", "no tensor 'input/0'", [](StateDict& t, std::string&) { t.erase("input/0"); }},
      {"mlp", "not one number", [](StateDict& t, std::string&) { t["loss"] = ones({2}); }},
      {"mlp", "got no loss", [](StateDict&, std::string& about) { about = "a model"; }},
      {"mlp", "loss: got 'hinge'", [](StateDict&, std::string& about) { about = "a model; loss: hinge"; }},
      {"mlp", "2.bias", [](StateDict& t, std::string&) { t.erase("weight/2.bias"); }},
      {"mlp", "2.weight",
       [](StateDict& t, std::string&) {
         t["weight/2.weight"] = ones({7, 5});
       }},
      {"mlp", "size in dim 1", [](StateDict& t, std::string&) { t["weight/0.weight"] = ones({7}); }},
      {"resnet18", "'conv1.weight'", [](StateDict& t, std::string&) { t.erase("weight/conv1.weight"); }},
      {"vit", "heads", [](StateDict&, std::string& a) { a.replace(a.find("2 heads"), 1, "0"); }},
      {"vit", "not zero",
       [](StateDict& t, std::string&) {
         t["weight/conv_proj.weight"] = ones({32, 3, 0, 0});
       }},
      {"llama", "3 heads", [](StateDict&, std::string& a) { a.replace(a.find("4 heads"), 1, "3"); }},
      {"unet", "GroupNorm", [](StateDict&, std::string& a) { a.replace(a.find("GroupNorm(4)"), 12, "GroupNorm(0)"); }},
      {"unet", "GroupNorm", [](StateDict&, std::string& a) { a.replace(a.find("GroupNorm(4)"), 12, "GroupNorm(7)"); }},
      {"mobilenet_v2", "inverted_residual_setting",
       [](StateDict&, std::string& a) { a.replace(a.find("[[1,4"), 3, "[[-1"); }},
      {"mobilenet_v2", "JSON", [](StateDict&, std::string& a) { a.replace(a.find("[[1,4"), 3, "[[{"); }},
      {"dlrm", "tables", [](StateDict& t, std::string&) { t.erase("weight/tables.0.weight"); }},
      {"lstm_lm", "lstm", [](StateDict& t, std::string&) { t.erase("weight/lstm.weight_ih_l0"); }},
  };
  for (const Wrong& wrong : all) {
    SCOPED_TRACE(std::string(wrong.model) + ": " + wrong.part);
    SetUp();
    put(wrong.model, wrong.model, wrong.change);
    expect_unfit(wrong.part);
  }
}

TEST_F(Check, AnErrorOfAModeIsAFailureOfIt) {
  put("gpt2", "gpt2", [](StateDict& t, std::string&) { t["input/0"] = t["input/0"] + 1000; });
  const ModelChecks checks = run();
  ASSERT_GE(checks.failures.size(), 5U);
  for (const ModelFailure& f : checks.failures) EXPECT_EQ(f.name, "run") << f.mode << ": " << f.error;
}

TEST_F(Check, UnknownTruncatedAndMissingFiles) {
  fs::copy(kZoo + "mlp.safetensors", path("perceptron"));
  expect_unfit("unknown model 'perceptron'");
  SetUp();
  fs::copy(kZoo + "mlp.safetensors", path("mlp"));
  fs::resize_file(path("mlp"), fs::file_size(path("mlp")) - 8);
  expect_unfit("mlp.safetensors");
  fs::resize_file(path("mlp"), 5);
  expect_unfit("mlp.safetensors");
  fs::resize_file(path("mlp"), 0);
  expect_unfit("mlp.safetensors");
  SetUp();
  std::ofstream(folder_ + "/index.json") << R"({"mlp": {"about": "a model"}})";
  expect_unfit("mlp.safetensors");
  std::ofstream(folder_ + "/index.json") << "[1";
  expect_unfit("index.json");
  fs::remove(folder_ + "/index.json");
  fs::create_directory(folder_ + "/index.json");
  expect_unfit("index.json: got a folder");
  EXPECT_THROW(check_models(folder_ + "/none", [](const std::string&) {}), Error);
}

}  // namespace
}  // namespace ingot::cli
