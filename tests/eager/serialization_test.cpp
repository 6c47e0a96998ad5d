#include "eager/serialization.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>

#include "eager/factories.h"
#include "eager/functions.h"

namespace ingot {
namespace {

class Serialization : public testing::Test {
 protected:
  void SetUp() override {
    path_ = (std::filesystem::temp_directory_path() / ("ingot_serialization_" + std::to_string(getpid()))).string();
  }
  void TearDown() override { std::filesystem::remove(path_); }

  void write(const std::string& header, const std::string& data, uint64_t length) {
    std::ofstream out(path_, std::ios::binary);
    out.write(reinterpret_cast<const char*>(&length), 8);
    out << header << data;
  }
  std::string refusal(const std::string& header, const std::string& data) {
    write(header, data, header.size());
    return refusal();
  }
  std::string refusal() {
    try {
      load(path_);
    } catch (const Error& e) {
      return e.what();
    }
    return "accepted";
  }
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

TEST_F(Serialization, UnalignedDataIsRead) {
  std::string data(9, '\0');
  int64_t value = 77;
  std::memcpy(data.data() + 1, &value, 8);
  std::string header =
      R"({"flag":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"n":{"dtype":"I64","shape":[1],"data_offsets":[1,9]}})";
  write(header, data, header.size());
  EXPECT_EQ(load(path_).at("n").item<int64_t>(), 77);
}

TEST_F(Serialization, HostileFilesAreRefused) {
  EXPECT_NE(refusal().find("cannot be opened"), std::string::npos);
  std::ofstream(path_) << "abc";
  EXPECT_NE(refusal().find("truncated"), std::string::npos);
  write("{}", "", 1000);
  EXPECT_NE(refusal().find("header length"), std::string::npos);
  EXPECT_NE(refusal("[1]", "").find("JSON object"), std::string::npos);
  EXPECT_NE(refusal("{\"a\":", "").find("JSON object"), std::string::npos);
  auto one = [](const std::string& rest) { return "{\"a\":{" + rest + "}}"; };
  EXPECT_NE(refusal(one(R"("dtype":"F32","shape":[2],"data_offsets":[0,12])"), "12345678").find("outside"),
            std::string::npos);
  EXPECT_NE(refusal(one(R"("dtype":"F32","shape":[2],"data_offsets":[0,4])"), "1234").find("expected 8"),
            std::string::npos);
  EXPECT_NE(refusal(one(R"("dtype":"F31","shape":[1],"data_offsets":[0,4])"), "1234").find("F31"), std::string::npos);
  EXPECT_NE(refusal(one(R"("dtype":"F32","shape":[-1],"data_offsets":[0,4])"), "1234").find("whole number"),
            std::string::npos);
  EXPECT_NE(refusal(one(R"("dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0])"), "").find("64 bits"),
            std::string::npos);
  EXPECT_NE(refusal(one(R"("dtype":"F32","shape":[1],"data_offsets":[0,4])"), "12345678").find("its tensors 4"),
            std::string::npos);
  std::string a = R"("a":{"dtype":"U8","shape":[4],"data_offsets":[0,4]})";
  EXPECT_NE(refusal("{" + a + "," + a + "}", "1234").find("twice"), std::string::npos);
  EXPECT_NE(refusal("{" + a + R"(,"b":{"dtype":"U8","shape":[4],"data_offsets":[2,6]}})", "123456").find("overlaps"),
            std::string::npos);
  EXPECT_NE(refusal("{" + a + R"(,"b":{"dtype":"U8","shape":[1],"data_offsets":[5,6]}})", "123456").find("hole"),
            std::string::npos);
}

}  // namespace
}  // namespace ingot
