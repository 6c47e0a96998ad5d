// `ingot models`, `ingot models check` and `ingot bench MODEL` as a user runs them.
#include <gtest/gtest.h>

#include <filesystem>

#include "cli/zoo.h"
#include "run_command.h"

namespace ingot {
namespace {

using test::command;
using test::Outcome;

const std::string kZoo = INGOT_SOURCE_DIR "/tests/data/zoo/";

TEST(ModelsCommand, ListsWhatBenchTakes) {
  const Outcome list = command("models --json --data " INGOT_SOURCE_DIR "/examples/data");
  ASSERT_EQ(list.code, 0) << list.error;
  const auto models = list.json()["models"];
  EXPECT_GE(models.size(), 17U);
  const std::string help = command("bench --help").out, table = command("models").out;
  for (const auto& model : models) {
    for (const char* field : {"name", "model", "input", "parameters"}) EXPECT_TRUE(model.contains(field)) << model;
    EXPECT_GT(model["parameters"].get<int64_t>(), 1000);
    EXPECT_NE(help.find(model["name"].get<std::string>()), std::string::npos) << model;
    EXPECT_NE(table.find(model["model"].get<std::string>()), std::string::npos) << model;
  }
}

TEST(ModelsCommand, BenchRunsAModelWithRandomWeightsOrAFiles) {
  for (const std::string& arguments : std::vector<std::string>{
           "mlp --batch 3", "mlp_tiny --mode frozen --threads 1", "mlp_tiny --mode train --batch 4", "unet",
           "dlrm --batch 2", "lstm_lm --length 5", "llama --length 7 --batch 2 --weights " + kZoo + "llama.safetensors",
           "llama_decode --weights " + kZoo + "llama.safetensors",
           "llama_decode --weight-format int8 --weights " + kZoo + "llama.safetensors",
           "llama_decode --weight-format bf16 --mode frozen --weights " + kZoo + "llama.safetensors",
           "gpt2 --weight-format f16 --weights " + kZoo + "gpt2.safetensors",
           "vit --weights " + kZoo + "vit.safetensors"}) {
    const Outcome run = command("bench " + arguments + " --seconds 0.05 --json");
    ASSERT_EQ(run.code, 0) << arguments << ": " << run.error;
    EXPECT_TRUE(run.json()["bitwise_equal"]) << arguments;
    EXPECT_EQ(run.json()["fallbacks"], 0) << arguments;
    EXPECT_EQ(run.json()["name"], arguments.substr(0, arguments.find(' ')));
  }
}

// A state dict as it is saved, with an input beside it.
TEST(ModelsCommand, BenchReadsInputsBesideAStateDict) {
  const std::string file = testing::TempDir() + "/ingot_state_dict.safetensors";
  const cli::ModelFile zoo(kZoo + "mlp.safetensors");
  StateDict tensors = zoo.weights;
  tensors["input/0"] = zoo.inputs[0];
  save(tensors, file);
  save({{"output", zoo.tensors.at("eval_output")}}, file + ".output");
  const Outcome run = command("bench mlp --seconds 0.05 --json --weights " + file + " --compare " + file + ".output");
  ASSERT_EQ(run.code, 0) << run.error;
  EXPECT_EQ(run.json()["batch"], zoo.inputs[0].sizes()[0]);
  EXPECT_LT(run.json()["max_abs_error_to_peer"], 1e-5);
}

// Of a file that holds them; one of the whole model does not.
TEST(ModelsCommand, BenchReadsTheNextTokensCachesFromItsFile) {
  const std::string zoo = kZoo + "llama.safetensors", file = testing::TempDir() + "/ingot_next_token.safetensors";
  const cli::ZooRow& row = *cli::find_zoo_row("llama_decode");
  const cli::ModelFile whole(zoo);
  const cli::ZooModel model = cli::zoo_model(row, whole);
  StateDict tensors;
  for (const auto& [name, tensor] : whole.weights) tensors["weight/" + name] = tensor;
  const cli::Inputs inputs = model.example(3, 5);
  for (size_t i = 0; i < inputs.size(); ++i) tensors["input/" + std::to_string(i)] = inputs[i];
  model.module->eval();
  {
    const NoGradGuard no_grad;
    save({{"output", model.forward(inputs)}}, file + ".output");
  }
  save(tensors, file, {{"about", whole.about}});
  const Outcome run =
      command("bench llama_decode --seconds 0.05 --json --weights " + file + " --compare " + file + ".output");
  ASSERT_EQ(run.code, 0) << run.error;
  EXPECT_EQ(run.json()["batch"], 3);
  EXPECT_LT(run.json()["max_abs_error_to_peer"], 1e-5);
  EXPECT_EQ(command("bench llama_decode --seconds 0.05 --json --weights " + zoo).json()["batch"], 1);
}

TEST(ModelsCommand, BenchSaysWhatIsWrong) {
  auto refused = [](const std::string& arguments, const std::string& part) {
    const Outcome run = command("bench " + arguments);
    EXPECT_EQ(run.code, 2) << arguments;
    EXPECT_NE(run.error.find(part), std::string::npos) << run.error;
  };
  refused("gpt2 --weights " + kZoo + "bert.safetensors", "transformer.wte.weight");
  refused("resnet18 --weights " + kZoo + "resnet50.safetensors --batch 0", "batch");
  refused("resnet18 --weights " INGOT_SOURCE_DIR "/README.md", "README.md");
  refused("resnet18 --weights /no/such", "/no/such");
  refused("bert --mode train --length 8", "train");
  refused("llama_decode --mode train", "cache");
  refused("mlp --weight-format int4", "weight-format");
  refused("mlp --mode train --weight-format int8", "weight-format");
  refused("mlp --mode train --weight-format bf16", "weight-format");
  refused("bytegpt --weight-format int8", "weight-format");
  refused("bytegpt --batch 3000000", "batch: got 3000000, expected at most the 274 examples");
  refused("digits_cnn --batch 1798", "batch: got 1798, expected at most the 1797 examples");
  refused("bytegpt --length 64", "weights and length");
  refused("resnet18 --length 64", "length: got 64, expected none");
  refused("dlrm --length 2", "length: got 2, expected none");
  refused("digits_mlp --weights " + kZoo + "mlp.safetensors", "weights and length");
  refused("mlp --compare " + kZoo + "mlp.safetensors", "without a tensor 'output'");
  refused("no_such", "resnet50");
}

TEST(ModelsCommand, CheckGivesCountsAndFailures) {
  const std::string folder = testing::TempDir() + "/zoo_of_command";
  std::filesystem::remove_all(folder);
  std::filesystem::create_directories(folder);
  std::filesystem::copy(kZoo + "mlp.safetensors", folder);
  Outcome check = command("models check " + folder + " --json");
  ASSERT_EQ(check.code, 0) << check.out << check.error;
  EXPECT_EQ(check.json()["models"], 1);
  EXPECT_GT(check.json()["checks"].get<int64_t>(), 50);
  EXPECT_TRUE(check.json()["failures"].empty());

  std::filesystem::copy(kZoo + "mlp.safetensors", folder + "/stranger.safetensors");
  check = command("models check " + folder + " --json");
  EXPECT_EQ(check.code, 1);
  const auto failures = check.json()["failures"];
  ASSERT_EQ(failures.size(), 1U);
  EXPECT_EQ(failures[0]["model"], "stranger");
  EXPECT_EQ(failures[0]["mode"], "file");
  EXPECT_TRUE(failures[0].contains("name") && failures[0].contains("error"));
  check = command("models check " + folder);
  EXPECT_EQ(check.code, 1);
  EXPECT_NE(check.out.find("2 models"), std::string::npos) << check.out;
  EXPECT_NE(check.out.find("FAILED stranger"), std::string::npos) << check.out;
  std::filesystem::remove_all(folder);

  EXPECT_EQ(command("models check " + folder).code, 2);
  EXPECT_EQ(command("models check").code, 2);
}

}  // namespace
}  // namespace ingot
