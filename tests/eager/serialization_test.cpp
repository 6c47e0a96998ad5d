#include "eager/serialization.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "eager/ops/factories.h"
#include "eager/ops/functions.h"

namespace ingot {
namespace {

class Serialization : public testing::Test {
 protected:
  void SetUp() override {
    path_ = (std::filesystem::temp_directory_path() / ("ingot_serialization_" + std::to_string(getpid()))).string();
  }
  void TearDown() override { std::filesystem::remove(path_); }

  std::string path_;
};

TEST_F(Serialization, WhatIsSavedIsLoaded) {
  StateDict state;
  state["b.weight"] = tensor({{1.5f, -2.f}, {0.f, 4.f}});
  state["a"] = tensor({1, 2, 3});
  state["flags"] = tensor({true, false, true});
  state["nothing"] = tensor(std::vector<double>{});
  state["scalar"] = tensor(2.5, kFloat64);
  save(state, path_, {{"made", "here"}});
  StateDict back = load(path_);
  ASSERT_EQ(back.size(), state.size());
  for (const auto& [name, t] : state) {
    const Tensor& u = back.at(name);
    EXPECT_EQ(u.dtype(), t.dtype()) << name;
    EXPECT_EQ(u.sizes(), t.sizes()) << name;
    EXPECT_EQ(std::memcmp(u.data_ptr(), t.data_ptr(), static_cast<size_t>(t.nbytes())), 0) << name;
  }
  EXPECT_EQ(load_metadata(path_).at("made"), "here");
}

TEST_F(Serialization, WritingToALoadedTensorLeavesTheFileAlone) {
  save({{"x", tensor({1.f, 2.f})}}, path_);
  Tensor x = load(path_).at("x");
  x.mutable_data_ptr<float>()[0] = 9;
  EXPECT_EQ(x[0].item<float>(), 9);
  EXPECT_EQ(load(path_).at("x")[0].item<float>(), 1);
}

TEST_F(Serialization, WhatIsNotMappedIsIndependentOfTheFile) {
  Tensor x = arange(5000).to(kFloat32);
  save({{"x", x}}, path_);
  StateDict back = load(path_, {.mapped = false});
  std::filesystem::resize_file(path_, 100);
  EXPECT_EQ(std::memcmp(back.at("x").data_ptr(), x.data_ptr(), static_cast<size_t>(x.nbytes())), 0);
  EXPECT_THROW(load(path_, {.mapped = false}), Error);
}

TEST_F(Serialization, SavingOverAFileWhoseTensorsAreInUseLeavesThemAlone) {
  save({{"x", tensor({1.f, 2.f})}}, path_);
  StateDict mapped = load(path_);
  mapped["y"] = tensor({3.f});
  save(mapped, path_);
  save({{"x", tensor({7.f, 8.f})}}, path_);
  EXPECT_EQ(mapped.at("x")[1].item<float>(), 2);
  EXPECT_EQ(load(path_).at("x")[1].item<float>(), 8);
}

TEST_F(Serialization, AFaultNamesTheFileAndTheLine) {
  std::ofstream(path_) << "abc";
  int line = 0;
  try {
    line = __LINE__ + 1;
    load(path_);
    FAIL();
  } catch (const Error& e) {
    std::string text = e.what();
    EXPECT_NE(text.find(path_), std::string::npos) << text;
    EXPECT_NE(text.find("serialization_test.cpp:" + std::to_string(line)), std::string::npos) << text;
  }
}

}  // namespace
}  // namespace ingot
