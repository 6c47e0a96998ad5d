// The command as a user runs it: what it prints, its JSON, its exit codes.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>

namespace {

struct Outcome {
  int code;
  std::string out;
};

Outcome ingot_with(const std::string& environment, const std::string& arguments) {
  std::string command = environment + " " + INGOT_COMMAND + " " + arguments + " 2>&1";
  FILE* pipe = popen(command.c_str(), "r");
  std::string out;
  char buffer[4096];
  while (size_t n = fread(buffer, 1, sizeof buffer, pipe)) out.append(buffer, n);
  return {WEXITSTATUS(pclose(pipe)), out};
}

Outcome ingot(const std::string& arguments) { return ingot_with("", arguments); }

const std::string kData = " --data " INGOT_SOURCE_DIR "/examples/data";

// The tests' command stands in a build folder.
TEST(Command, FindsItsDataWhateverTheWorkingDirectory) {
  for (const char* folder : {"/", "/tmp", INGOT_SOURCE_DIR, INGOT_SOURCE_DIR "/tests"})
    for (const char* command : {"bench digits_mlp --seconds 0.05 --batch 1", "explain digits_cnn"}) {
      const Outcome run = ingot_with(std::string("cd ") + folder + " &&", command);
      EXPECT_EQ(run.code, 0) << folder << ": " << run.out;
    }
}

TEST(Command, DemoGivesTheExpectedResultsEagerAndCompiled) {
  Outcome demo = ingot_with("cd / &&", "demo --json");
  ASSERT_EQ(demo.code, 0) << demo.out;
  auto report = nlohmann::json::parse(demo.out);
  ASSERT_EQ(report["models"].size(), 3u);
  for (const auto& model : report["models"]) {
    SCOPED_TRACE(model["name"].get<std::string>());
    double expected = model["expected"];
    double tolerance = model["name"] == "bytegpt" ? 1e-5 * expected : 0;
    EXPECT_NEAR(model["eager"].get<double>(), expected, tolerance);
    EXPECT_NEAR(model["compiled"].get<double>(), expected, tolerance);
    EXPECT_TRUE(model["bitwise_equal"]);
    EXPECT_EQ(model["fallbacks"], 0);
    EXPECT_EQ(model["recompile_limit_hits"], 0);
    EXPECT_EQ(model["graph_breaks"], 0);
    EXPECT_LE(model["compilations"], 3);
    EXPECT_GT(model["kernels"], 0);
    EXPECT_EQ(model["runs"].size(), 2u);
  }
  EXPECT_TRUE(report["training"]["bitwise_equal"]);
  EXPECT_GT(report["training"]["speedup"], 0);
  EXPECT_EQ(report["generated"],
            "a free, software you receive the\nsource code other you remane files for the software in notice");
}

TEST(Command, BenchReportsWhatProgramsRelyOn) {
  Outcome bench = ingot("bench digits_mlp --seconds 0.2 --batch 4 --json" + kData);
  ASSERT_EQ(bench.code, 0) << bench.out;
  auto report = nlohmann::json::parse(bench.out);
  for (const char* field :
       {"name", "mode", "threads", "eager_us", "compiled_us", "speedup", "compile_ms", "cold_compile_ms",
        "first_compiled_us", "compilations", "fallbacks", "max_abs_error", "bitwise_equal", "roof_share"})
    EXPECT_TRUE(report.contains(field)) << field;
  EXPECT_EQ(report["max_abs_error"], 0);
  EXPECT_GT(report["cold_compile_ms"], 0);
}

TEST(Command, BenchOfAKernelSaysHowFarItIsFromTheRoof) {
  Outcome bench = ingot("bench layer_norm --seconds 0.1 --json");
  ASSERT_EQ(bench.code, 0) << bench.out;
  auto report = nlohmann::json::parse(bench.out);
  ASSERT_EQ(report["cases"].size(), 1u);
  EXPECT_EQ(report["sizes"], (std::vector<int64_t>{16384, 1024}));
  EXPECT_TRUE(report["bitwise_equal"]);
  EXPECT_LT(report["max_abs_error"], 1e-5);
  EXPECT_GT(report["compiled_us"], 0);
  EXPECT_GT(report["roof_us"], 0);
  EXPECT_EQ(report["fallbacks"], 0);
}

TEST(Command, BenchOfSmallCallsTimesThemToTheirKernel) {
  Outcome bench = ingot("bench dispatch --seconds 0.1 --json");
  ASSERT_EQ(bench.code, 0) << bench.out;
  auto report = nlohmann::json::parse(bench.out);
  EXPECT_TRUE(report["bitwise_equal"]);
  EXPECT_GT(report["frozen_call_ns"], 0);
  EXPECT_GT(report["frozen_call_to_its_kernel_ns"], 0);
}

TEST(Command, ExplainAndCacheShowKernels) {
  Outcome explain = ingot("explain digits_mlp --json" + kData);
  ASSERT_EQ(explain.code, 0) << explain.out;
  auto report = nlohmann::json::parse(explain.out);
  ASSERT_FALSE(report["programs"].empty());
  EXPECT_NE(report["programs"][0]["trace"].get<std::string>().find("gelu"), std::string::npos);
  EXPECT_FALSE(report["programs"][0]["kernels"].empty());
  Outcome cache = ingot("cache digits_mlp --json" + kData);
  ASSERT_EQ(cache.code, 0) << cache.out;
  EXPECT_FALSE(nlohmann::json::parse(cache.out)["entries"].empty());
}

TEST(Command, ExplainIsAReportToRead) {
  Outcome page = ingot("explain digits_mlp" + kData);
  ASSERT_EQ(page.code, 0) << page.out;
  EXPECT_LT(std::count(page.out.begin(), page.out.end(), '\n'), 100) << "details are shown on request";
  for (const char* part : {"digits_mlp: ", "was 1, is 64", "Steps", "Fusion", "Guards", "%"})
    EXPECT_NE(page.out.find(part), std::string::npos) << part;
  EXPECT_EQ(page.out.find("ret"), std::string::npos) << page.out;
  Outcome assembly = ingot("explain digits_mlp --asm gelu" + kData);
  EXPECT_NE(assembly.out.find("kernel matmul_add_gelu"), std::string::npos) << assembly.out;
  EXPECT_EQ(assembly.out.find("\nkernel matmul_add "), std::string::npos);
  Outcome nothing = ingot("explain digits_mlp --program 99" + kData);
  EXPECT_EQ(nothing.code, 2);
  EXPECT_NE(nothing.out.find("program: got 99, expected a number from 0 to 1"), std::string::npos) << nothing.out;
  for (const char* unfit :
       {"--program 0 --json", "--asm --html page.html", "--all --json", "--json --html page.html"}) {
    const Outcome refused = ingot(std::string("explain digits_mlp ") + unfit + kData);
    EXPECT_EQ(refused.code, 2) << unfit;
    EXPECT_NE(refused.out.find("excludes"), std::string::npos) << refused.out;
  }
  Outcome all = ingot("explain digits_mlp --all" + kData);
  EXPECT_NE(all.out.find("ingot.ir 1"), std::string::npos);

  std::string file = ::testing::TempDir() + "ingot_explain_" + std::to_string(getpid()) + ".html";
  EXPECT_EQ(ingot("explain digits_mlp --html " + file + kData).code, 0);
  std::ifstream written(file);
  std::string html((std::istreambuf_iterator<char>(written)), {});
  EXPECT_NE(html.find("</html>"), std::string::npos);
  std::remove(file.c_str());
  Outcome training = ingot("explain bytegpt --mode train --batch 2" + kData);
  ASSERT_EQ(training.code, 0) << training.out;
  EXPECT_NE(training.out.find("bytegpt_step: "), std::string::npos);
  EXPECT_NE(training.out.find("of the forward pass are saved for it, in "), std::string::npos) << training.out;
  EXPECT_NE(training.out.find("computed again"), std::string::npos);
  bool named = false;
  std::istringstream lines(training.out);
  for (std::string line; std::getline(lines, line);)
    named |= line.find("backward of linear") != std::string::npos && line.find("h.3.mlp_up") != std::string::npos;
  EXPECT_TRUE(named) << training.out;
  EXPECT_EQ(ingot("explain digits_mlp --mode train" + kData).code, 2);
  Outcome nowhere = ingot("explain digits_mlp --html /nonexistent/page.html" + kData);
  EXPECT_EQ(nowhere.code, 2);
  EXPECT_NE(nowhere.out.find("/nonexistent/page.html"), std::string::npos) << nowhere.out;
}

std::vector<nlohmann::json> lines_of(const std::string& text) {
  std::istringstream lines(text);
  std::vector<nlohmann::json> all;
  for (std::string line; std::getline(lines, line);) all.push_back(nlohmann::json::parse(line));
  return all;
}

std::string file_for(const std::string& name) {
  return ::testing::TempDir() + "ingot_" + std::to_string(getpid()) + "_" + name;
}

std::string bytes_of(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST(Command, TrainGivesALineAStepAndComparesBits) {
  for (const std::string name : {"bytegpt", "digits-cnn"}) {
    Outcome run = ingot("train " + name + " --mode compare --steps 4 --batch 2 --json" + kData);
    ASSERT_EQ(run.code, 0) << run.out;
    const auto lines = lines_of(run.out);
    ASSERT_EQ(lines.size(), 5u);
    for (size_t i = 0; i < 4; ++i) {
      EXPECT_EQ(lines[i]["step"], i + 1);
      EXPECT_EQ(lines[i]["loss_eager"], lines[i]["loss_compiled"]);
      EXPECT_TRUE(lines[i]["bitwise_equal"]);
      EXPECT_GT(lines[i][name == "bytegpt" ? "tokens_per_s" : "images_per_s"], 0);
      EXPECT_EQ(lines[i].contains("gradient_norm"), name == "bytegpt");
    }
    const auto& last = lines.back();
    EXPECT_TRUE(last["bitwise_equal"]);
    for (const char* figure : {"speedup", "eager_ms_per_step", "compiled_ms_per_step", "peak_bytes_eager",
                               "peak_bytes_compiled", name == "bytegpt" ? "bits_per_byte" : "correct_of_360_test"})
      EXPECT_GT(last[figure], 0) << figure;
    EXPECT_EQ(last["graph_breaks"], 0);
    EXPECT_EQ(last["fallbacks"], 0);
  }
}

TEST(Command, TrainLearns) {
  Outcome run = ingot("train digits-cnn --steps 120 --json" + kData);
  ASSERT_EQ(run.code, 0) << run.out;
  EXPECT_GE(lines_of(run.out).back()["correct_of_360_test"], 345);
  Outcome page = ingot("train bytegpt --steps 12 --batch 2 --mode compare" + kData);
  EXPECT_EQ(page.code, 0);
  for (const char* part : {"bits a byte", "same bits", "at most", "*", "step    12"})
    EXPECT_NE(page.out.find(part), std::string::npos) << part << "\n" << page.out;
}

// Whatever trains, and wherever it was interrupted, the file at the end is the same.
TEST(Command, TrainResumesToTheSameBits) {
  for (const std::string name : {"bytegpt", "digits-cnn"}) {
    const std::string whole = file_for(name + "_whole"), part = file_for(name + "_part");
    const std::string autocast = name == "bytegpt" ? " --autocast" : "";
    const std::string recipe = "train " + name + autocast + " --batch 2 --steps 7 --warmup 2 --seed 5 --json" + kData;
    EXPECT_EQ(ingot(recipe + " --checkpoint " + whole).code, 0);
    EXPECT_EQ(ingot(recipe + " --mode eager --until 3 --checkpoint " + part).code, 0);
    EXPECT_NE(bytes_of(whole), bytes_of(part));
    // The recipe is in the checkpoint.
    Outcome rest = ingot("train " + name + " --json --resume " + part + " --checkpoint " + part + kData);
    EXPECT_EQ(rest.code, 0) << rest.out;
    EXPECT_EQ(lines_of(rest.out).front()["step"], 4);
    EXPECT_EQ(bytes_of(whole), bytes_of(part)) << name;
    std::remove(whole.c_str()), std::remove(part.c_str());
  }
}

// What a checkpoint has learnt so far is what it goes on with, unless another text is named.
TEST(Command, TrainResumesWithItsText) {
  const std::string text = file_for("text"), checkpoint = file_for("text_checkpoint");
  std::ofstream(text) << std::string(300, 'a') << std::string(300, 'b');
  const std::string go_on = "train bytegpt --json --resume " + checkpoint + kData;
  ASSERT_EQ(ingot("train bytegpt --steps 2 --until 1 --batch 2 --text " + text + " --checkpoint " + checkpoint).code,
            0);
  const Outcome refused = ingot(go_on);
  EXPECT_EQ(refused.code, 2);
  EXPECT_NE(refused.out.find("expected --text with the one that " + checkpoint + " has learnt"), std::string::npos)
      << refused.out;
  EXPECT_EQ(ingot(go_on + " --text " + text).code, 0);
  EXPECT_EQ(ingot(go_on + " --text " INGOT_SOURCE_DIR "/README.md").code, 0);
  std::remove(text.c_str()), std::remove(checkpoint.c_str());
}

TEST(Command, WhatTheSystemRefusesIsSaid) {
  const Outcome machine = ingot_with("INGOT_ISA=avx3", "bench digits_mlp" + kData);
  EXPECT_EQ(machine.code, 2);
  EXPECT_NE(machine.out.find("unknown instruction set 'avx3'"), std::string::npos) << machine.out;
  const Outcome run = ingot("demo --data " + std::string(5000, 'x'));
  EXPECT_EQ(run.code, 2);
  EXPECT_NE(run.out.find("File name too long"), std::string::npos) << run.out.substr(0, 200);
}

TEST(Command, TrainSaysWhatIsWrong) {
  auto expect = [](const std::string& arguments, const std::string& said) {
    Outcome run = ingot("train " + arguments + kData);
    EXPECT_EQ(run.code, 2) << run.out;
    EXPECT_NE(run.out.find(said), std::string::npos) << run.out;
    EXPECT_EQ(run.out.find("step "), std::string::npos) << "nothing was trained before: " << run.out;
  };
  const std::string file = file_for("short"), checkpoint = file_for("checkpoint");
  std::ofstream(file) << "too short";
  expect("bytegpt --text /nonexistent/text", "/nonexistent/text");
  expect("bytegpt --text /tmp", "text: /tmp: got a folder, expected a regular file");
  expect("bytegpt --text " + file, "of 9 bytes, expected at least 129");
  expect("digits-cnn --text " + file, "text");
  expect("bytegpt --mode fast", "compare");
  expect("resnet", "digits_cnn");
  expect("bytegpt --steps 0", "steps: got 0, expected a whole number from 1");
  expect("bytegpt --batch 1.5", "batch: got 1.5, expected a whole number");
  expect("bytegpt --lr -1", "lr: got -1, expected a finite number above 0");
  expect("bytegpt --lr nan", "lr: got nan");
  expect("bytegpt --clip nan", "clip: got nan, expected a finite number from 0 on");
  expect("bytegpt --threads 0", "--threads: got 0, expected a number above 0");
  expect("bytegpt --checkpoint /nonexistent/file", "/nonexistent/file");
  expect("bytegpt --checkpoint /tmp", "checkpoint: /tmp: got a folder");
  expect("bytegpt --resume /nonexistent/file", "/nonexistent/file");
  expect("digits-cnn --resume " + file, file);
  EXPECT_EQ(ingot("train digits-cnn --steps 2 --batch 2 --checkpoint " + checkpoint + kData).code, 0);
  expect("bytegpt --resume " + checkpoint, "no tensor for wte.weight");
  expect("digits-cnn --resume " + checkpoint, "expected more than the 2");
  const std::string whole = bytes_of(checkpoint);
  std::ofstream(file, std::ios::binary) << whole.substr(0, whole.size() / 2);
  expect("digits-cnn --resume " + file, "outside of the");
  std::remove(file.c_str()), std::remove(checkpoint.c_str());
}

TEST(Command, BenchOfATrainingStep) {
  for (const char* name : {"bytegpt", "digits_cnn"}) {
    Outcome bench = ingot(std::string("bench ") + name + " --mode train --batch 2 --seconds 0.1 --json" + kData);
    ASSERT_EQ(bench.code, 0) << bench.out;
    auto report = nlohmann::json::parse(bench.out);
    EXPECT_EQ(report["mode"], "train");
    EXPECT_TRUE(report["bitwise_equal"]);
    for (const char* figure :
         {"eager_us", "compiled_us", "compile_ms", "roof_share", "step_bytes_eager", "step_bytes_compiled"})
      EXPECT_GT(report[figure], 0) << figure;
    for (const std::string who : {"eager", "compiled"})
      EXPECT_LT(report["step_bytes_" + who], report["peak_bytes_" + who])
          << "parameters and states are there between steps";
    EXPECT_FALSE(report.contains("steps"));
  }
  EXPECT_EQ(ingot("bench digits_mlp --mode train").code, 2);
  EXPECT_EQ(ingot("bench matmul --autocast").code, 2);
  Outcome bf16 = ingot("bench bytegpt --mode train --autocast --batch 2 --seconds 0.1 --json" + kData);
  ASSERT_EQ(bf16.code, 0) << bf16.out;
  EXPECT_TRUE(nlohmann::json::parse(bf16.out)["autocast"]);
  EXPECT_TRUE(nlohmann::json::parse(bf16.out)["bitwise_equal"]);
}

TEST(Command, BenchGivesTheStepsOfItsProgram) {
  const std::string cnn = "bench digits_cnn --batch 2 --seconds 0.1 --steps";
  for (const std::string mode : {"", " --mode train"}) {
    Outcome bench = ingot(cnn + mode + " --json" + kData);
    ASSERT_EQ(bench.code, 0) << bench.out;
    bool convolution = false;
    const auto report = nlohmann::json::parse(bench.out);
    for (const auto& step : report["steps"]) {
      EXPECT_GT(step["mean_us"], 0) << step;
      EXPECT_GE(step["roof_us"], 0) << step;
      convolution = convolution || step["kind"] == "conv2d";
    }
    EXPECT_TRUE(convolution) << bench.out;
  }
  // Steps of one name, by what they take above their floors.
  const auto report = nlohmann::json::parse(ingot(cnn + " --json" + kData).out);
  ASSERT_FALSE(report["losses"].empty());
  EXPECT_LE(report["losses"].size(), 3u);
  std::map<std::string, double> above;
  for (const auto& step : report["steps"])
    above[step["name"].get<std::string>() + "/" + step["kind"].get<std::string>()] +=
        step["mean_us"].get<double>() - step["roof_us"].get<double>();
  double before = INFINITY;
  for (const auto& loss : report["losses"]) {
    const auto named = above.extract(loss["name"].get<std::string>() + "/" + loss["kind"].get<std::string>());
    ASSERT_FALSE(named.empty()) << loss;
    EXPECT_NEAR(loss["lost_us"].get<double>(), named.mapped(), 1e-6 * std::abs(named.mapped()));
    EXPECT_LE(loss["lost_us"].get<double>(), before);
    before = loss["lost_us"];
  }
  for (const auto& [name, us] : above) EXPECT_LE(us, before + 1e-9) << name;
  EXPECT_NE(ingot(cnn + kData).out.find("largest losses"), std::string::npos);
  Outcome page = ingot(cnn + " --mode train" + kData);
  for (const char* part : {"MiB of them a step's own", "of conv2d ", "of all "})
    EXPECT_NE(page.out.find(part), std::string::npos) << part << "\n" << page.out;
}

TEST(Command, BenchOfReplayGivesWhatARecordedOpCosts) {
  Outcome bench = ingot("bench replay --seconds 0.3 --json");
  ASSERT_EQ(bench.code, 0) << bench.out;
  const auto report = nlohmann::json::parse(bench.out);
  EXPECT_TRUE(report["bitwise_equal"]);
  ASSERT_EQ(report["rows"].size(), 4u);
  for (const auto& row : report["rows"])
    for (const std::string recorded : {"op_ns", "tape_ns", "derivative_ns"}) {
      // Slopes of short runs: on a busy machine their values say nothing.
      EXPECT_TRUE(row[recorded].is_number()) << row;
      EXPECT_TRUE(row["eager_" + recorded].is_number()) << row;
    }
  EXPECT_EQ(report["ns_per_op"], report["rows"][0]["op_ns"]);
}

TEST(Command, BenchOfCompilingGrowsWithTheFunction) {
  Outcome bench = ingot("bench compile --length 1000 --json");
  ASSERT_EQ(bench.code, 0) << bench.out;
  const auto report = nlohmann::json::parse(bench.out);
  EXPECT_TRUE(report["bitwise_equal"]);
  ASSERT_EQ(report["rows"].size(), 14u) << "seven forms of 250 and 1,000 ops";
  for (const auto& row : report["rows"]) {
    for (const char* field : {"first_ms", "first_us_an_op", "other_size_ms", "replay_us_an_op"})
      EXPECT_GT(row[field], 0) << row;
    EXPECT_TRUE(row["kept_kb_an_op"].is_number()) << row;
    EXPECT_LE(row["ops"], 1000);
    EXPECT_EQ(row["compilations"], 2) << "one for each size of its argument: " << row;
  }
}

TEST(Command, BenchOfUpdatesAllocatesNothing) {
  Outcome bench = ingot("bench update --length 2000 --seconds 0.05 --json");
  ASSERT_EQ(bench.code, 0) << bench.out;
  const auto report = nlohmann::json::parse(bench.out);
  EXPECT_TRUE(report["bitwise_equal"]);
  EXPECT_GT(report["in_place_add_gbps"], 0);
  ASSERT_EQ(report["rows"].size(), 4u);
  for (const auto& row : report["rows"]) {
    EXPECT_EQ(row["parameters"], 2000 * row["tensors"].get<int64_t>());
    EXPECT_GT(row["compiled_gbps"], 0);
    EXPECT_LT(row["allocated_beyond_state_bytes"], 8 << 20) << row;
  }
  EXPECT_EQ(report["caches"].size(), 3u);
  for (const auto& cache : report["caches"]) EXPECT_EQ(cache["row_bytes"], 16384);
}

TEST(Command, BenchOfBindingTimesNewLengths) {
  Outcome bench = ingot("bench bind --threads 1 --length 16 --json");
  ASSERT_EQ(bench.code, 0) << bench.out;
  const auto report = nlohmann::json::parse(bench.out);
  EXPECT_EQ(report["threads"], 1);
  ASSERT_EQ(report["decodings"].size(), 2u);
  for (const auto& decoding : report["decodings"]) {
    EXPECT_TRUE(decoding["bitwise_equal"]);
    EXPECT_GT(decoding["bound_steps"], 0);
    EXPECT_LE(decoding["bound_steps"], decoding["steps"]);
    EXPECT_GT(decoding["bind_ns_a_step"], 0);
    EXPECT_EQ(decoding["compilations"], 2);
  }
}

// Registers that only AVX-512 has: zmm, masks, and numbers past 15.
const std::regex kAvx512Only("zmm|[xy]mm(1[6-9]|2[0-9]|3[01])|\\bk[0-7]\\b");

TEST(Command, KernelsForAvx2HaveNoAvx512Instruction) {
  for (const char* model : {"digits_mlp", "digits_cnn", "bytegpt"}) {
    Outcome explain = ingot_with("INGOT_ISA=avx2", std::string("explain ") + model + " --json" + kData);
    ASSERT_EQ(explain.code, 0) << explain.out;
    const auto report = nlohmann::json::parse(explain.out);
    int instructions = 0;
    for (const auto& program : report["programs"])
      for (const auto& kernel : program["kernels"]) {
        std::istringstream listing(kernel["assembly"].get<std::string>());
        for (std::string line; std::getline(listing, line); ++instructions)
          EXPECT_FALSE(std::regex_search(line, kAvx512Only)) << kernel["name"] << ": " << line;
      }
    EXPECT_GT(instructions, 1000);
  }
}

TEST(Command, OpsListsTheTable) {
  Outcome ops = ingot("ops --json");
  ASSERT_EQ(ops.code, 0);
  EXPECT_GT(nlohmann::json::parse(ops.out).size(), 100u);
}

TEST(Command, WrongUsageListsWhatExists) {
  Outcome unknown = ingot("bench no_such_model");
  EXPECT_NE(unknown.out.find("bytegpt"), std::string::npos) << unknown.out;
  EXPECT_EQ(unknown.code, 2);
  EXPECT_EQ(ingot("--no-such-option").code, 2);
  EXPECT_EQ(ingot("").code, 2);
  Outcome topic = ingot("--version; INGOT_LOGS=nonsense " + std::string(INGOT_COMMAND) + " cache digits_mlp" + kData);
  EXPECT_NE(topic.out.find("recompiles"), std::string::npos) << topic.out;
  Outcome folder = ingot("demo --data /nonexistent");
  EXPECT_EQ(folder.code, 2);
  EXPECT_NE(folder.out.find("/nonexistent"), std::string::npos);
}

TEST(Command, HelpHasAnExample) {
  for (const char* command : {"demo", "train", "bench", "explain", "cache", "ops", "conformance"}) {
    Outcome help = ingot(std::string(command) + " --help");
    EXPECT_EQ(help.code, 0);
    EXPECT_NE(help.out.find("Example"), std::string::npos) << help.out;
  }
}

TEST(Command, ExplainShowsCudaTextForATarget) {
  Outcome explain = ingot("explain digits_mlp --target sm_80 --json" + kData);
  ASSERT_EQ(explain.code, 0) << explain.out;
  auto report = nlohmann::json::parse(explain.out);
  EXPECT_EQ(report["target"], "sm_80");
  ASSERT_FALSE(report["programs"].empty());
  for (const auto& program : report["programs"]) {
    EXPECT_EQ(program["device_library_steps"].size(), 3u);
    ASSERT_FALSE(program["kernels"].empty());
    for (const auto& kernel : program["kernels"]) {
      std::string entry = kernel["entry"], source = kernel["source"];
      EXPECT_NE(source.find(" " + entry + "("), std::string::npos);
      EXPECT_EQ(kernel.contains("registers"), !report["nvrtc"].is_null());
      if (kernel.contains("registers")) {
        EXPECT_GT(kernel["registers"], 0);
        EXPECT_EQ(kernel["spill_store_bytes"], 0);
      }
    }
  }
  Outcome text = ingot("explain digits_mlp --cuda" + kData);
  EXPECT_EQ(text.code, 0);
  EXPECT_NE(text.out.find("extern \"C\" __global__"), std::string::npos);
  Outcome unknown = ingot("explain digits_mlp --target sm_10" + kData);
  EXPECT_EQ(unknown.code, 2);
  EXPECT_NE(unknown.out.find("sm_90"), std::string::npos) << unknown.out;
}

}  // namespace
