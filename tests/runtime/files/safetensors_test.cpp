#include "runtime/files/safetensors.h"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>

#include "base/error.h"

namespace ingot::runtime {
namespace {

class Safetensors : public testing::Test {
 protected:
  std::string path_ = testing::TempDir() + "ingot-" + std::to_string(getpid()) + ".safetensors";
  ~Safetensors() override { std::filesystem::remove(path_); }

  void write_bytes(const std::string& bytes) {
    std::ofstream file(path_, std::ios::binary);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  }
  static std::string with_length(const std::string& header, const std::string& data) {
    uint64_t length = header.size();
    std::string bytes(8, '\0');
    std::memcpy(bytes.data(), &length, 8);
    return bytes + header + data;
  }
  void refused(const std::string& bytes, const std::string& reason) {
    write_bytes(bytes);
    try {
      read_safetensors(path_);
      ADD_FAILURE() << "accepted; expected: " << reason;
    } catch (const Error& error) {
      std::string text = error.what();
      EXPECT_NE(text.find(reason), std::string::npos) << text;
      EXPECT_NE(text.find(path_), std::string::npos) << text;
    }
  }
  void refused_header(const std::string& header, const std::string& reason, size_t data = 8) {
    refused(with_length(header, std::string(data, 'x')), reason);
  }
};

TEST_F(Safetensors, RoundTripOfEveryDTypeAndRank) {
  std::vector<char> data(64);
  std::iota(data.begin(), data.end(), 1);
  std::vector<TensorBytes> tensors;
  for (int d = 0; d <= static_cast<int>(DType::bool_); ++d) {
    DType dtype = static_cast<DType>(d);
    std::string name(name_of(dtype));
    tensors.push_back({name + ".scalar", dtype, {}, data.data()});
    tensors.push_back({name + ".empty", dtype, {3, 0, 2}, nullptr});
    tensors.push_back({name + " \"quoted\" \xc3\xa4", dtype, {1, 2, 3}, data.data() + d});
  }
  write_safetensors(path_, tensors, {{"format", "pt"}, {"note", "line\nbreak"}});
  SafetensorsFile file = read_safetensors(path_);
  EXPECT_EQ(file.metadata.at("note"), "line\nbreak");
  ASSERT_EQ(file.tensors.size(), tensors.size());
  for (const TensorBytes& expected : tensors) {
    auto it = std::find_if(file.tensors.begin(), file.tensors.end(),
                           [&](const StoredTensor& t) { return t.name == expected.name; });
    ASSERT_NE(it, file.tensors.end()) << expected.name;
    EXPECT_EQ(it->dtype, expected.dtype);
    EXPECT_EQ(it->shape, expected.shape);
    int64_t bytes = size_of(expected.dtype);
    for (int64_t n : expected.shape) bytes *= n;
    ASSERT_EQ(it->storage->bytes(), bytes);
    EXPECT_EQ(bytes ? std::memcmp(it->storage->data(), expected.data, bytes) : 0, 0);
    EXPECT_EQ(reinterpret_cast<uintptr_t>(it->storage->data()) % size_of(expected.dtype), 0u);
  }
}

TEST_F(Safetensors, StoragesKeepTheMappingAndWritesStayPrivate) {
  float values[] = {1, 2, 3};
  TensorBytes tensor{"x", DType::f32, {3}, values};
  write_safetensors(path_, {&tensor, 1});
  StoragePtr storage = read_safetensors(path_).tensors[0].storage;
  float* mapped = static_cast<float*>(storage->data());
  EXPECT_EQ(mapped[2], 3);
  mapped[2] = 9;
  EXPECT_EQ(static_cast<float*>(read_safetensors(path_).tensors[0].storage->data())[2], 3);
}

// Read, not mapped: what happens to the file afterwards changes nothing.
TEST_F(Safetensors, WhatIsReadOutlivesTheFile) {
  std::vector<float> values(100'000);
  std::iota(values.begin(), values.end(), 0.f);
  TensorBytes tensors[] = {{"flag", DType::bool_, {1}, values.data()},
                           {"empty", DType::f32, {0}, nullptr},
                           {"x", DType::f32, {100'000}, values.data()}};
  write_safetensors(path_, tensors);
  SafetensorsFile file = read_safetensors(path_, false);
  std::filesystem::resize_file(path_, 10);
  ASSERT_EQ(file.tensors.size(), 3u);
  EXPECT_EQ(file.tensors[0].storage->bytes(), 0);
  const StoredTensor& x = file.tensors[2];
  EXPECT_EQ(std::memcmp(x.storage->data(), values.data(), values.size() * sizeof(float)), 0);
  static_cast<float*>(x.storage->data())[0] = 1;
}

TEST_F(Safetensors, MisalignedTensorsAreReadable) {
  std::string header =
      R"({"a":{"dtype":"U8","shape":[1],"data_offsets":[0,1]},"b":{"dtype":"F32","shape":[],"data_offsets":[1,5]}})";
  float value = 1.5f;
  std::string data(5, '\7');
  std::memcpy(data.data() + 1, &value, 4);
  for (int padding = 0; padding < 8; ++padding) {
    write_bytes(with_length(header + std::string(padding, ' '), data));
    SafetensorsFile file = read_safetensors(path_);
    float* b = static_cast<float*>(file.tensors[1].storage->data());
    EXPECT_EQ(reinterpret_cast<uintptr_t>(b) % 4, 0u);
    EXPECT_EQ(*b, 1.5f);
  }
}

TEST_F(Safetensors, TruncatedFilesAreRefusedAtEveryLength) {
  float values[] = {1, 2};
  TensorBytes tensors[] = {{"a", DType::f32, {2}, values}, {"b", DType::f32, {1}, values}};
  write_safetensors(path_, tensors);
  std::ifstream in(path_, std::ios::binary);
  std::string whole((std::istreambuf_iterator<char>(in)), {});
  in.close();
  for (size_t length = 0; length < whole.size(); ++length) {
    write_bytes(whole.substr(0, length));
    EXPECT_THROW(read_safetensors(path_), Error) << length;
  }
  refused(whole + "x", "belong to no tensor");
  for (size_t length = 0; length < whole.size(); ++length) {
    write_bytes(whole.substr(0, length));
    EXPECT_THROW(read_safetensors(path_, false), Error) << length;
  }
}

TEST_F(Safetensors, WrongOffsetsAreRefused) {
  auto one = [](const std::string& shape, const std::string& offsets) {
    return R"({"a":{"dtype":"F32","shape":)" + shape + R"(,"data_offsets":)" + offsets + "}}";
  };
  refused_header(one("[2]", "[0,16]"), "outside");
  refused_header(one("[2]", "[8,0]"), "outside");
  refused_header(one("[2]", "[0,18446744073709551615]"), "outside");
  refused_header(one("[1]", "[0,8]"), "its shape and dtype need 4");
  refused_header(one("[3]", "[0,8]"), "its shape and dtype need 12");
  refused_header(one("[1]", "[4,8]"), "hole");
  refused_header(one("[1]", "[0,4]"), "belong to no tensor");
  refused_header(one("[2]", "[0]"), "two data offsets");
  refused_header(one("[2]", "[0,4,8]"), "two data offsets");
  refused_header(one("[4611686018427387904,4]", "[0,8]"), "63 bits");
  refused_header(one("[18446744073709551615]", "[0,8]"), "a size of");
  refused_header(one("[3037000500,3037000500,2]", "[0,8]"), "63 bits");
  auto two = [](const std::string& a, const std::string& b) {
    return R"({"a":{"dtype":"F32","shape":[1],"data_offsets":)" + a +
           R"(},"b":{"dtype":"F32","shape":[1],"data_offsets":)" + b + "}}";
  };
  refused_header(two("[0,4]", "[0,4]"), "overlaps");
  refused_header(two("[0,4]", "[2,6]"), "overlaps");
  refused_header(two("[0,4]", "[8,12]"), "hole", 12);
}

TEST_F(Safetensors, WrongHeadersAreRefused) {
  const std::string good = R"("dtype":"F32","shape":[2],"data_offsets":[0,8])";
  refused_header("", "begin with");
  refused_header(" {}", "begin with");
  refused_header("[]", "begin with");
  refused_header("{", "not valid JSON");
  refused_header("{}garbage", "not valid JSON");
  refused_header(R"({"a":{)" + good + R"(},"a":{)" + good + "}}", "occurs twice");
  refused_header(R"({"a":{)" + good + R"(,"dtype":"F32"}})", "occurs twice");
  refused_header(R"({"__metadata__":{},"__metadata__":{},"a":{)" + good + "}}", "occurs twice");
  refused_header(R"({"a":{)" + good + R"(,"more":1}})", "unknown field");
  refused_header(R"({"a":{"dtype":"F32","shape":[2]}})", "lacks");
  refused_header(R"({"a":{"dtype":"F8_E4M3","shape":[8],"data_offsets":[0,8]}})", "dtype 'F8_E4M3'; known: F64");
  refused_header(R"({"a":{"dtype":"f32","shape":[2],"data_offsets":[0,8]}})", "dtype 'f32'");
  refused_header(R"({"a":{"dtype":3,"shape":[2],"data_offsets":[0,8]}})", "a number");
  refused_header(R"({"a":{"dtype":"F32","shape":[-2],"data_offsets":[0,8]}})", "negative");
  refused_header(R"({"a":{"dtype":"F32","shape":[2.0],"data_offsets":[0,8]}})", "whole");
  refused_header(R"({"a":{"dtype":"F32","shape":[[2]],"data_offsets":[0,8]}})", "an array");
  refused_header(R"({"a":{"dtype":"F32","shape":2,"data_offsets":[0,8]}})", "a number");
  refused_header(R"({"a":{"dtype":"F32","shape":"2","data_offsets":[0,8]}})", "a string");
  refused_header(R"({"a":{"dtype":"F32","shape":null,"data_offsets":[0,8]}})", "null");
  refused_header(R"({"a":{"dtype":{"x":1},"shape":[2],"data_offsets":[0,8]}})", "an object");
  refused_header(R"({"a":[]})", "an array");
  refused_header(R"({"a":true})", "true or false");
  refused_header(R"({"__metadata__":{"n":1}})", "a number");
  refused_header(R"({"__metadata__":{"n":{}}})", "an object");
  refused_header("{\"\xff\":{" + good + "}}", "not valid JSON");
  // However deep: nothing recurses.
  auto deep = [](const std::string& unit) {
    std::string text;
    while (text.size() < 10'000'000) text += unit;
    return text;
  };
  refused_header("{\"a\":" + deep("["), "an array");
  refused_header(deep("{\"a\":"), "unknown field");
  refused_header("{\"__metadata__\":" + deep("{\"a\":"), "an object");
  refused_header("{\"a\":" + deep("{\"shape\":"), "an object");
  refused_header(R"({"a":{"dtype":"F32","shape":)" + deep("["), "an array");
  refused_header(R"({"a":{"dtype":"F32","shape":[2],"data_offsets":)" + deep("[{\"a\":"), "an object");
  std::string length(8, '\xff');
  refused(length + "{}", "more than 100000000");
  length = std::string("\x10\0\0\0\0\0\0\0", 8);
  refused(length + "{}", "truncated");
  refused("", "shorter than");
}

TEST_F(Safetensors, AnEmptyFileOfTensorsIsValid) {
  write_bytes(with_length("{}", ""));
  EXPECT_TRUE(read_safetensors(path_).tensors.empty());
  write_bytes(with_length(R"({"__metadata__":{"a":"b"}}      )", ""));
  EXPECT_EQ(read_safetensors(path_).metadata.at("a"), "b");
}

TEST_F(Safetensors, UnreadablePathsAreErrors) {
  EXPECT_THROW(read_safetensors("/nonexistent/file"), Error);
  EXPECT_THROW(read_safetensors(testing::TempDir()), Error);
  float value = 0;
  TensorBytes tensor{"x", DType::f32, {1}, &value};
  EXPECT_THROW(write_safetensors("/nonexistent/file", {&tensor, 1}), Error);
}

TEST_F(Safetensors, TheWriterRefusesWhatTheReaderWould) {
  double value = 0;
  auto refuse = [&](std::vector<TensorBytes> tensors, std::map<std::string, std::string> metadata = {}) {
    EXPECT_THROW(write_safetensors(path_, tensors, metadata), Error);
    EXPECT_FALSE(std::filesystem::exists(path_));
  };
  refuse({{"x", DType::f32, {1}, &value}, {"x", DType::f64, {1}, &value}});
  refuse({{"__metadata__", DType::f32, {1}, &value}});
  refuse({{"x", DType::c64, {1}, &value}});
  refuse({{"\xff", DType::f32, {1}, &value}});
  refuse({}, {{"a", "\xff"}});
  refuse({{"x", DType::f32, {INT64_MAX}, &value}});
}

}  // namespace
}  // namespace ingot::runtime
