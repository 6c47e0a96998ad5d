// PyTorch's operator cases, from the packed copy, in every mode.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "base/error.h"
#include "conformance/conformance.h"
#include "runtime/files/safetensors.h"
#include "runtime/memory/checked_memory.h"

namespace ingot::conformance {
namespace {

namespace fs = std::filesystem;

/// Packed cases in a folder of this process, which goes with it: all of core, or of extended what
/// tools/conformance_cases.py chose.
class Cases {
 public:
  explicit Cases(const std::string& set = "core")
      : folder_(fs::temp_directory_path() / ("ingot_conformance_" + std::to_string(getpid()))), set_(set) {
    fs::create_directories(folder_);
    const std::string packed = INGOT_SOURCE_DIR "/tests/data/conformance_" + set + ".tar.xz";
    unpacked_ = std::system(("tar -xJf " + packed + " -C " + folder_.string()).c_str()) == 0;
  }
  ~Cases() { fs::remove_all(folder_); }
  bool unpacked() const { return unpacked_; }
  std::string path() const { return (folder_ / set_).string(); }

 private:
  fs::path folder_;
  std::string set_;
  bool unpacked_ = false;
};

/// Every `shards`-th op of a set.
struct Shard {
  std::string set;
  int shard, shards;
};
void PrintTo(const Shard& s, std::ostream* out) { *out << s.set << " " << s.shard << " of " << s.shards; }
std::vector<Shard> shards_of(const std::string& set, int shards) {
  std::vector<Shard> all;
  for (int i = 0; i < shards; ++i) all.push_back({set, i, shards});
  return all;
}

class ConformanceShard : public testing::TestWithParam<Shard> {};

TEST_P(ConformanceShard, EveryCaseInEveryMode) {
  Cases cases(GetParam().set);
  ASSERT_TRUE(cases.unpacked());
  Options options;
  options.path = cases.path();
  options.shard = GetParam().shard;
  options.shards = GetParam().shards;
  options.quiet = true;
  if (runtime::checks_memory())
    options.modes = {"eager", "compiled-avx512", "compiled-avx2", "compiled-strided", "compiled-gradients"};
  Report report = run(options);
  EXPECT_GT(report.passed, 0);
  EXPECT_GT(report.grad_cases, 50);
  EXPECT_EQ(report.grad_passed, report.grad_cases);
  EXPECT_EQ(report.not_run, 0);
  EXPECT_EQ(report.executed[4], 0) << "results of a fallback";
  if (options.modes.empty())
    EXPECT_GT(report.sizes_varied, report.passed / 2) << "dims that one compiled function met in three sizes";
  for (const Failure& f : report.failures) ADD_FAILURE() << f.op << " " << f.name << " (" << f.mode << "): " << f.why;
}
INSTANTIATE_TEST_SUITE_P(Core, ConformanceShard, testing::ValuesIn(shards_of("core", 12)));
INSTANTIATE_TEST_SUITE_P(Extended, ConformanceShard, testing::ValuesIn(shards_of("extended", 3)));

TEST(Conformance, WhatIsMissingOfTheExtendedOps) {
  Cases cases("extended");
  ASSERT_TRUE(cases.unpacked());
  EXPECT_EQ(case_ops(cases.path()).missing,
            (std::vector<std::string>{"native_batch_norm", "native_group_norm", "native_layer_norm",
                                      "nn.functional.multi_head_attention_forward"}));
}

TEST(Conformance, MissingOpsAreListedAndCanBeRequired) {
  Cases cases;
  ASSERT_TRUE(cases.unpacked());
  std::string required = cases.path() + "/required.txt";
  std::ofstream(required) << "add\nno_such_op\n";
  Options options;
  options.path = cases.path() + "/add.safetensors";
  options.require_ops = required;
  options.modes = {"interpreted"};
  options.quiet = true;
  Report report = run(options);
  EXPECT_EQ(report.failed, 0);
  EXPECT_EQ(report.passed, 47);
  EXPECT_EQ(report.required_missing, std::vector<std::string>{"no_such_op"});
  EXPECT_FALSE(report.good());
}

// What judged nothing has shown nothing.
TEST(Conformance, NoCaseRunIsNoSuccess) {
  Cases cases;
  ASSERT_TRUE(cases.unpacked());
  auto code = [&](const std::string& arguments) {
    const int status =
        std::system((INGOT_COMMAND " conformance " + cases.path() + arguments + " >/dev/null 2>&1").c_str());
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  };
  EXPECT_EQ(code("/abs.safetensors --mode eager"), 0);
  EXPECT_EQ(code("/abs.safetensors --mode eager --filter ab"), 0);
  EXPECT_EQ(code("/abs.safetensors --mode eager --filter no_such_op"), 2);
  EXPECT_EQ(code(" --mode eager --filter no_such_op"), 2);
  EXPECT_EQ(code("/isnan.safetensors --mode eager"), 0);
  EXPECT_EQ(code("/isnan.safetensors --mode eager-inplace"), 1);  // it has no in-place form
  fs::create_directory(cases.path() + "/empty");
  EXPECT_EQ(code("/empty"), 2);

  Options options;
  options.path = cases.path() + "/isnan.safetensors";
  options.quiet = true;
  options.modes = {"eager-inplace"};
  const Report report = run(options);
  EXPECT_EQ(report.passed, 0);
  EXPECT_GT(report.not_run, 0);
  EXPECT_FALSE(report.good());
  options.shards = 2, options.shard = 1;  // of one file, the second half is empty
  EXPECT_FALSE(run(options).good());
  for (auto [shard, shards] : {std::pair(0, 0), std::pair(-1, 2), std::pair(2, 2)}) {
    options.shard = shard, options.shards = shards;
    EXPECT_THROW(run(options), Error) << shard << " of " << shards;
  }
}

TEST(Conformance, WrongValuesAreFound) {
  Cases cases;
  ASSERT_TRUE(cases.unpacked());
  // Every stored tensor becomes the same bytes: sums no longer fit.
  std::string path = cases.path() + "/add.safetensors";
  std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
  uint64_t header = 0;
  file.read(reinterpret_cast<char*>(&header), sizeof header);
  auto size = static_cast<int64_t>(fs::file_size(path));
  std::string bytes(size - static_cast<int64_t>(header + sizeof header), '\x11');
  file.seekp(static_cast<int64_t>(header + sizeof header));
  file.write(bytes.data(), static_cast<int64_t>(bytes.size()));
  file.close();
  Options options;
  options.path = path;
  options.modes = {"interpreted"};
  options.quiet = true;
  EXPECT_GT(run(options).failed, 20);
}

// Whoever changes the table writes the document again.
TEST(Conformance, OperatorsAreDocumentedWithWhatIsMissing) {
  Cases cases;
  ASSERT_TRUE(cases.unpacked());
  const std::string written = cases.path() + ".md";
  ASSERT_EQ(std::system((INGOT_COMMAND " ops --markdown --cases " + cases.path() + " > " + written).c_str()), 0);
  auto text = [](const std::string& path) {
    std::ifstream file(path);
    return std::string(std::istreambuf_iterator<char>(file), {});
  };
  EXPECT_EQ(text(written), text(INGOT_SOURCE_DIR "/docs/operators.md"));
}

TEST(Conformance, RefusesWhatIsNotThere) {
  Options options;
  options.path = "/no/such/folder";
  EXPECT_THROW(run(options), Error);
  options.path = INGOT_SOURCE_DIR "/tests/data/conformance_core.tar.xz";
  options.quiet = true;
  EXPECT_THROW(run(options), Error);
  options.modes = {"sideways"};
  EXPECT_THROW(run(options), Error);
}

/// A file of one case of op `abs` (but for what is given) with the tensors "x" = [-1, 2] and "z" = [1, 2].
class HostileCase : public testing::Test {
 protected:
  HostileCase()
      : path_((fs::temp_directory_path() / ("ingot_case_" + std::to_string(getpid()) + ".safetensors")).string()) {}
  ~HostileCase() override { fs::remove(path_); }
  void write(const std::string& cases, const std::string& format = "conformance-1") {
    const float x[] = {-1, 2}, z[] = {1, 2};
    runtime::write_safetensors(path_,
                               std::vector<runtime::TensorBytes>{{"x", DType::f32, {2}, x}, {"z", DType::f32, {2}, z}},
                               {{"format", format}, {"op", "abs"}, {"cases", cases}});
  }
  Report run() {
    Options options;
    options.path = path_;
    options.quiet = true;
    return conformance::run(options);
  }
  void expect_refused(const std::string& why) {
    try {
      run();
      FAIL() << "expected: " << why;
    } catch (const Error& e) {
      EXPECT_NE(std::string(e.what()).find(path_), std::string::npos) << e.what();
      EXPECT_NE(std::string(e.what()).find(why), std::string::npos) << e.what();
    }
  }
  std::string path_;
};

TEST_F(HostileCase, IsRefusedWithFileAndReason) {
  write("[]", "conformance-2");
  expect_refused("conformance-1");
  write("[");
  expect_refused("parse error");
  for (const char* none : {"{}", "[]", "1"}) {
    write(none);
    expect_refused("no list of cases");
  }
  write(R"([{"name": "a", "kwargs": {}, "outputs": [{"tensor": "x"}]}])");
  expect_refused("args");
  write(R"([{"name": "a", "args": [{"tensor": "y"}], "kwargs": {}, "outputs": [{"tensor": "x"}]}])");
  expect_refused("no tensor y");
  write(R"([{"name": "a", "args": [{"slice": [1]}], "kwargs": {}, "outputs": [{"tensor": "x"}]}])");
  expect_refused("range");
  write(R"([{"name": "a", "args": [{"tensor": "x"}], "kwargs": {}, "outputs": []}])");
  expect_refused("without outputs");
  write(R"([{"name": "a", "args": [{"tensor": "x"}], "kwargs": {}, "outputs": [{"value": [1]}]}])");
  expect_refused("no tensor, number or bool");
  // Deep in every place, closed or not: an Error, and no stack at its end.
  for (const char* unit : {"[", "{\"a\":", "[{\"tensor\":", "{\"value\":["}) {
    std::string deep;
    for (int i = 0; i < 300'000; ++i) deep += unit;
    const std::string whole = std::string(300'000, '[') + std::string(300'000, ']');
    for (const std::string& text : {deep, whole}) {
      write(text);
      expect_refused("deeper");
      write(R"([{"name": "a", "args": [)" + text + R"(], "kwargs": {}, "outputs": [{"tensor": "x"}]}])");
      expect_refused("deeper");
      write(R"([{"name": )" + text + R"(, "args": [], "kwargs": {}, "outputs": [{"tensor": "x"}]}])");
      expect_refused("deeper");
      write(R"([{"name": "a", "args": [], "kwargs": {"a": )" + text + R"(}, "outputs": [{"tensor": )" + text + "}]}])");
      expect_refused("deeper");
      write(R"([{"name": "a", "args": [], "kwargs": {}, "outputs": [{"tensor": )" + text + "}]}])");
      expect_refused("deeper");
    }
  }
  fs::resize_file(path_, fs::file_size(path_) - 1);
  expect_refused("");
}

TEST_F(HostileCase, FailsWhereItsArgumentsAreWrong) {
  for (const char* args : {"", "1, 2, 3", R"({"slice": [null, null, null]})", R"({"tensor": "x"}, {"tensor": "x"})"}) {
    write(R"([{"name": "a", "args": [)" + std::string(args) + R"(], "kwargs": {}, "outputs": [{"tensor": "x"}]}])");
    const Report report = run();
    EXPECT_EQ(report.passed, 0) << args;
    EXPECT_EQ(report.failed, 1) << args;
  }
}

TEST_F(HostileCase, FailsWhereGradientsAreWrong) {
  auto report_of = [&](const std::string& gradient) {
    write(R"([{"name": "a", "dtype": "f32", "args": [{"tensor": "x"}], "kwargs": {}, "exact": true,
               "outputs": [{"tensor": "z", "dtype": "f32"}],
               "grad": {"cotangents": [{"output": 0, "tensor": "z"}], "rtol": 1e-6, "atol": 0,
                        "values": [{"of": "x", "tensor": )" +
          gradient + "}]}}]");
    return run();
  };
  const Report right = report_of(R"("x")");
  EXPECT_EQ(right.passed, 1) << right.failures[0].why;
  EXPECT_EQ(right.grad_cases, 1);
  EXPECT_EQ(right.grad_passed, 1);
  for (const char* wrong : {R"("z")", "null"}) {
    const Report report = report_of(wrong);
    EXPECT_EQ(report.failed, 1);
    EXPECT_EQ(report.grad_failed, 1);
    // In 16 bits the interpreter says what is right, and of compiled code it is eager.
    ASSERT_EQ(report.failures.size(), 2u);
    EXPECT_EQ(report.failures[0].mode, "interpreted-gradients");
    EXPECT_EQ(report.failures[1].mode, "eager-gradients");
    EXPECT_NE(report.failures[1].why.find("the gradient of x is -1.000000"), std::string::npos);
  }
}

}  // namespace
}  // namespace ingot::conformance
