// Tokens are those of Hugging Face's `tokenizers` (tools/generate_cases.py), and what is no such tokenizer is refused.
#include "cli/tokenizer.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "base/error.h"

namespace ingot::cli {
namespace {

using Json = nlohmann::json;
const std::string kFolder = INGOT_SOURCE_DIR "/tests/data/generate/";

Json read(const std::string& path) {
  std::ifstream file(path);
  return Json::parse(file);
}

class Tokens : public testing::TestWithParam<const char*> {};

TEST_P(Tokens, AreTheirs) {
  const std::string folder = kFolder + GetParam();
  const Tokenizer tokenizer(folder + "/tokenizer.json");
  const Json expected = read(folder + "/expected.json");
  ASSERT_GE(expected["texts"].size(), 20u);
  for (const Json& text : expected["texts"]) {
    SCOPED_TRACE(text["text"].dump());
    const std::vector<int64_t> tokens = tokenizer.encode(text["text"].get<std::string>());
    EXPECT_EQ(tokens, text["ids"].get<std::vector<int64_t>>());
    EXPECT_EQ(tokenizer.encode(text["text"].get<std::string>(), false), text["plain"].get<std::vector<int64_t>>());
    EXPECT_EQ(tokenizer.decode(tokens), text["decoded"].get<std::string>());
    EXPECT_EQ(tokenizer.decode(tokens, true), text["decoded_special"].get<std::string>());
  }
  const Json& odd = expected["odd"];
  EXPECT_EQ(tokenizer.decode(odd["ids"].get<std::vector<int64_t>>()), odd["decoded"].get<std::string>());
}
INSTANTIATE_TEST_SUITE_P(Kinds, Tokens, testing::Values("gpt2", "llama", "prefixed"));

TEST(Tokenizer, LongPiecesTakeNoSquareOfTheirLength) {
  const Tokenizer tokenizer(kFolder + "gpt2/tokenizer.json");
  for (const char* part : {"a", " ", "the", "\n", "é", "1"}) {
    std::string text;
    while (text.size() < 400'000) text += part;
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text) << part;
  }
}

TEST(Tokenizer, EveryTextComesBack) {
  const Tokenizer tokenizer(kFolder + "gpt2/tokenizer.json");
  uint64_t state = 1;
  auto next = [&] { return state = state * 6364136223846793005u + 1442695040888963407u, state >> 40; };
  for (int i = 0; i < 300; ++i) {
    std::string text;
    for (uint64_t n = next() % 40; n > 0; --n) {
      const uint64_t kind = next() % 4;
      if (kind == 0) text += static_cast<char>(next() % 128);
      if (kind == 1) text += " \n\t"[next() % 3];
      if (kind == 2) (text += static_cast<char>(0xC3)) += static_cast<char>(0x80 + next() % 64);
      if (kind == 3) text += "\xF0\x9F\x99\x82";
    }
    EXPECT_EQ(tokenizer.decode(tokenizer.encode(text)), text);
  }
}

// As `tokenizers` has it: blanks of any kind, to a token's left and right.
TEST(Tokenizer, TokensTakeTheBlanksBesideThem) {
  const Tokenizer tokenizer(kFolder + "gpt2/tokenizer.json");
  const std::vector<int64_t> bare = tokenizer.encode("x<sep>y");
  EXPECT_EQ(bare.size(), 3U);
  for (const std::string blank : {" ", "\t", "\r\n", "\u0085", "\u00a0", "\u1680", "\u2003\u200a", "\u2028\u2029",
                                  "\u202f", "\u205f", "\u3000 \u3000"})
    EXPECT_EQ(tokenizer.encode("x" + blank + "<sep>" + blank + "y"), bare) << blank;
  for (const std::string other : {"\u200b", "\ufeff", "\u180e", "\u0301"})  // nothing to see, and no blanks
    EXPECT_GT(tokenizer.encode("x" + other + "<sep>" + other + "y").size(), 3U) << other;
  EXPECT_EQ(tokenizer.encode("\u3000 <sep>\u3000"), tokenizer.encode("<sep>"));
}

TEST(Tokenizer, TextThatIsNotUtf8IsRefused) {
  const Tokenizer tokenizer(kFolder + "gpt2/tokenizer.json");
  for (const char* text : {"a\xff", "\xc3", "\xed\xa0\x80", "\xf0\x80\x80\x80", "\xc0\x80"})
    EXPECT_THROW(tokenizer.encode(text), Error);
  EXPECT_THROW(tokenizer.bytes_of(-1), Error);
  EXPECT_THROW(tokenizer.bytes_of(tokenizer.size()), Error);
}

TEST(Utf8Stream, ShowsCharactersOnceTheyAreWhole) {
  Utf8Stream stream;
  EXPECT_EQ(stream.add("a\xF0\x9F"), "a");
  EXPECT_EQ(stream.add("\x99"), "");
  EXPECT_EQ(stream.add("\x82z\xC3"), "\xF0\x9F\x99\x82z");
  EXPECT_EQ(stream.add("("), "\xEF\xBF\xBD(");
  EXPECT_EQ(stream.add("\xE2\x82"), "");
  EXPECT_EQ(stream.finish(), "\xEF\xBF\xBD");
  EXPECT_EQ(stream.finish(), "");
}

TEST(Tokenizer, WhatIsNoByteLevelBpeIsRefusedWithTheField) {
  const Json good = read(kFolder + "gpt2/tokenizer.json");
  const std::string path = testing::TempDir() + "/tokenizer.json";
  auto refused = [&](const std::string& part, const std::string& text) {
    std::ofstream(path) << text;
    try {
      Tokenizer tokenizer(path);
      ADD_FAILURE() << "read without " << part;
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find(part), std::string::npos) << error.what();
      EXPECT_NE(std::string(error.what()).find(path), std::string::npos) << error.what();
    }
  };
  auto changed = [&](const char* pointer, Json value) {
    Json json = good;
    json[Json::json_pointer(pointer)] = std::move(value);
    return json.dump();
  };
  refused("model.type", changed("/model/type", "WordPiece"));
  refused("model.type", changed("/model/type", nullptr));
  refused("model.byte_fallback", changed("/model/byte_fallback", true));
  refused("model.end_of_word_suffix", changed("/model/end_of_word_suffix", "</w>"));
  refused("model.dropout", changed("/model/dropout", 0.1));
  refused("model.vocab", changed("/model/vocab", Json::array()));
  refused("model.vocab.a", changed("/model/vocab/a", -1));
  refused("model.vocab.a", changed("/model/vocab/a", 1e9));
  refused("tokens", changed("/model/vocab/a", 2'000'000'000));
  refused("which another token has", changed("/model/vocab/a", good["model"]["vocab"]["b"]));
  refused("model.merges[1]", changed("/model/merges/1", "no-pair"));
  refused("model.merges[0]", changed("/model/merges/0", Json::array({"a", "nothing"})));
  refused("model.merges", changed("/model/merges", "x"));
  refused("pre_tokenizer", changed("/pre_tokenizer", nullptr));
  refused("pre_tokenizer.type", changed("/pre_tokenizer/type", "Metaspace"));
  refused("pre_tokenizer", changed("/pre_tokenizer", {{"type", "Digits"}}));
  refused("pattern",
          changed("/pre_tokenizer", {{"type", "Split"}, {"pattern", {{"Regex", "("}}}, {"behavior", "Isolated"}}));
  refused("behavior", changed("/pre_tokenizer",
                              {{"type", "Split"}, {"pattern", {{"Regex", "a"}}}, {"behavior", "MergedWithNext"}}));
  refused("normalizer", changed("/normalizer", {{"type", "Lowercase"}}));
  refused("added_tokens.id", changed("/added_tokens/0/id", "zero"));
  refused("post_processor.type", changed("/post_processor", {{"type", "BertProcessing"}}));
  refused("special_tokens", changed("/post_processor", {{"type", "TemplateProcessing"},
                                                        {"single", {{{"SpecialToken", {{"id", "[CLS]"}}}}}}}));
  refused("the file", "[]");
  refused("", "{");
  refused("", std::string(1000, '['));
  const std::string whole = good.dump();
  for (size_t cut = 0; cut < whole.size(); cut += 97) refused("", whole.substr(0, cut));
  std::filesystem::remove(path);
  EXPECT_THROW(Tokenizer{path}, Error);
  std::filesystem::create_directory(path);
  EXPECT_THROW(Tokenizer{path}, Error);
  std::filesystem::remove(path);
}

}  // namespace
}  // namespace ingot::cli
