// `ingot generate` as a user runs it: what it prints, and when; its JSON; its flags; what it refuses.
#include <gtest/gtest.h>
#include <sys/socket.h>

#include <algorithm>
#include <filesystem>
#include <functional>

#include "cli/generate.h"
#include "cli/zoo.h"
#include "run_command.h"

namespace ingot::cli {
namespace {

namespace fs = std::filesystem;
using test::command;
using test::Outcome;
using Json = nlohmann::json;

const std::string kFolder = INGOT_SOURCE_DIR "/tests/data/generate/", kPrompt = "First Citizen: we are";
std::string in_quotes(const std::string& text) { return "'" + text + "'"; }
std::string arguments(const std::string& folder, const std::string& more) {
  return "generate --weights " + in_quotes(folder) + " --prompt " + in_quotes(kPrompt) + " " + more;
}

/// What the library makes of the same prompt, and its text.
struct Expected {
  std::vector<int64_t> prompt, tokens;
  std::string text;
};
Expected expected(const std::string& kind, int64_t count, const Sampling& sampling) {
  const Tokenizer tokenizer(kFolder + kind + "/tokenizer.json");
  const std::vector<int64_t> prompt = tokenizer.encode(kPrompt);
  const Generation made = generate(read_language_model(kFolder + kind), prompt, count, sampling, true);
  return {made.prompt, made.tokens, tokenizer.decode(made.tokens)};
}

TEST(GenerateCommand, GivesTheTokensOfTransformersAsJson) {
  for (const std::string kind : {"gpt2", "llama"}) {
    SCOPED_TRACE(kind);
    const Json greedy = Json::parse(std::ifstream(kFolder + kind + "/expected.json"))["greedy"];
    const std::string count = std::to_string(greedy["tokens"].size());
    for (const std::string mode : {"compile", "eager"}) {
      const Outcome run =
          command(arguments(kFolder + kind, "--json --threads 1 --tokens " + count + " --mode " + mode));
      ASSERT_EQ(run.code, 0) << run.error;
      EXPECT_TRUE(run.error.empty()) << run.error;
      const Json report = run.json();
      EXPECT_EQ(report["prompt_tokens"], greedy["prompt"]);
      EXPECT_EQ(report["tokens"], greedy["tokens"]);
      EXPECT_EQ(report["text"], expected(kind, 24, {}).text);
      EXPECT_EQ(report["model"], kind);
      EXPECT_EQ(report["mode"], mode);
      EXPECT_EQ(report["ended"], false);
      EXPECT_EQ(report["threads"], 1);
      EXPECT_EQ(report["seed"], 0);
      EXPECT_EQ(report["weight_format"], "f32");
      EXPECT_EQ(report["parameters"], read_language_model(kFolder + kind).parameters);
      for (const char* figure : {"prompt_ms", "tokens_per_second"}) EXPECT_GT(report[figure], 0) << figure;
    }
  }
}

// Each flag reaches the draw: without it, the tokens are others.
TEST(GenerateCommand, DrawsAsItsFlagsSay) {
  struct Flag {
    std::string text;
    std::function<void(Sampling&)> set;
  };
  const std::vector<Flag> flags = {{"--temperature 1.5", [](Sampling& s) { s.temperature = 1.5; }},
                                   {"--top-k 60", [](Sampling& s) { s.top_k = 60; }},
                                   {"--top-p 0.8", [](Sampling& s) { s.top_p = 0.8; }},
                                   {"--seed 7", [](Sampling& s) { s.seed = 7; }}};
  std::vector<std::vector<int64_t>> all;
  for (size_t left_out = 0; left_out <= flags.size(); ++left_out) {
    Sampling sampling;
    std::string text = "--json --tokens 20";
    for (size_t i = 0; i < flags.size(); ++i)
      if (i != left_out) flags[i].set(sampling), text += " " + flags[i].text;
    SCOPED_TRACE(text);
    const Expected want = expected("llama", 20, sampling);
    for (int again = 0; again < 2; ++again) {
      const Outcome run = command(arguments(kFolder + "llama", text));
      ASSERT_EQ(run.code, 0) << run.error;
      EXPECT_EQ(run.json()["tokens"], want.tokens);
      EXPECT_EQ(run.json()["text"], want.text);
      EXPECT_EQ(run.json()["seed"], sampling.seed);
    }
    EXPECT_EQ(std::count(all.begin(), all.end(), want.tokens), 0) << "a flag that changes nothing";
    all.push_back(want.tokens);
  }
}

TEST(GenerateCommand, TakesFormatsOfWeights) {
  for (const auto& [format, dtype] : weight_formats()) {
    SCOPED_TRACE(format);
    const Outcome run = command(arguments(kFolder + "llama", "--json --tokens 8 --weight-format " + format));
    ASSERT_EQ(run.code, 0) << run.error;
    EXPECT_EQ(run.json()["weight_format"], format);
    const LanguageModel model = read_language_model(kFolder + "llama", format);
    EXPECT_EQ(run.json()["tokens"],
              generate(model, run.json()["prompt_tokens"].get<std::vector<int64_t>>(), 8, {}, true).tokens);
  }
}

TEST(GenerateCommand, EndsWhereTheModelEndsTexts) {
  const std::string folder = testing::TempDir() + "/generate_command_ends";
  fs::remove_all(folder);
  fs::copy(kFolder + "gpt2", folder);
  const Expected whole = expected("gpt2", 24, {});
  const int64_t end = whole.tokens[3];
  std::ofstream(folder + "/generation_config.json") << Json{{"eos_token_id", end}};
  const Outcome run = command(arguments(folder, "--json")), page = command(arguments(folder, ""));
  ASSERT_EQ(run.code, 0) << run.error;
  EXPECT_EQ(run.json()["ended"], true);
  EXPECT_EQ(run.json()["tokens"],
            std::vector<int64_t>(whole.tokens.begin(), std::find(whole.tokens.begin(), whole.tokens.end(), end)));
  EXPECT_NE(page.out.find("; the text ended"), std::string::npos) << page.out;
  fs::remove_all(folder);
}

// A socket that keeps one write apart from the next shows when a part of the text was written.
TEST(GenerateCommand, ShowsEachTokenAsItComes) {
  int ends[2];
  ASSERT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
  const std::string folder = kFolder + "llama";
  const pid_t child = fork();
  ASSERT_GE(child, 0);
  if (child == 0) {
    dup2(ends[1], STDOUT_FILENO);
    close(ends[0]), close(ends[1]);
    execl(INGOT_COMMAND, "ingot", "generate", "llama", "--weights", folder.c_str(), "--prompt", kPrompt.c_str(),
          "--tokens", "12", nullptr);
    _exit(127);
  }
  close(ends[1]);
  std::vector<std::string> parts;
  char buffer[4096];
  for (ssize_t n; (n = read(ends[0], buffer, sizeof buffer)) > 0;) parts.emplace_back(buffer, n);
  close(ends[0]);
  int status = 0;
  waitpid(child, &status, 0);
  ASSERT_EQ(WEXITSTATUS(status), 0);
  const Tokenizer tokenizer(folder + "/tokenizer.json");
  const Expected want = expected("llama", 12, {});
  Utf8Stream stream;
  std::vector<std::string> shown{kPrompt};
  for (int64_t token : want.tokens) shown.push_back(stream.add(tokenizer.bytes_of(token)));
  shown.push_back(stream.finish());
  std::erase(shown, "");
  ASSERT_GE(shown.size(), 8u) << "most tokens end a character";
  ASSERT_EQ(parts.size(), shown.size() + 1) << "the last one holds the figures";
  for (size_t i = 0; i < shown.size(); ++i) EXPECT_EQ(parts[i], shown[i]) << i;
  for (const char* figure : {"million parameters", "tokens of the prompt in", "tokens/s"})
    EXPECT_NE(parts.back().find(figure), std::string::npos) << parts.back();
}

/// One line that says it, nothing on the other side, and the code of wrong usage.
void refused(const Outcome& run, const std::vector<std::string>& parts) {
  EXPECT_EQ(run.code, 2);
  EXPECT_TRUE(run.out.empty()) << run.out;
  EXPECT_EQ(std::count(run.error.begin(), run.error.end(), '\n'), 1) << run.error;
  for (const std::string& part : parts) EXPECT_NE(run.error.find(part), std::string::npos) << run.error;
}

TEST(GenerateCommand, RefusesOtherWeightsWithOneError) {
  const std::string folder = testing::TempDir() + "/generate_command_other";
  using Change = std::function<void(StateDict&)>;
  auto check = [&](const std::string& kind, const std::string& name, const std::string& said, const Change& change) {
    SCOPED_TRACE(kind + ": " + said);
    fs::remove_all(folder);
    fs::copy(kFolder + kind, folder);
    StateDict weights = read_checkpoint(folder);
    ASSERT_TRUE(weights.contains(name));
    change(weights);
    for (const auto& file : fs::directory_iterator(folder))
      if (file.path().filename().string().starts_with("model")) fs::remove(file);
    save(weights, folder + "/model.safetensors");
    refused(command(arguments(folder, "")), {"ingot: ", folder, name, said});
    refused(command(arguments(folder, "--json --mode eager")), {name, said});
  };
  for (const std::string kind : {"gpt2", "llama"}) {
    const std::string name =
        kind == "gpt2" ? "transformer.h.1.mlp.c_fc.weight" : "model.layers.1.self_attn.k_proj.weight";
    check(kind, name, "no tensor for", [&](StateDict& w) { w.erase(name); });
    check(kind, name, "does not have: " + name + ".more", [&](StateDict& w) { w[name + ".more"] = ones({1}); });
    check(kind, name, "wrong shapes: " + name, [&](StateDict& w) { w[name] = w[name].narrow(0, 0, 3).contiguous(); });
    check(kind, name, "got i32, expected floating weights", [&](StateDict& w) { w[name] = w[name].to(kInt32); });
  }
  fs::remove_all(folder);
}

TEST(GenerateCommand, RefusesWhatDoesNotFit) {
  const std::string gpt2 = kFolder + "gpt2";
  std::string text;
  for (int i = 0; i < 200; ++i) text += "we are ";
  const Outcome run = command("generate --weights " + in_quotes(gpt2) + " --prompt " + in_quotes(text));
  refused(run, {"ingot: prompt: got ", " tokens, expected at most the model's 48 positions"});
  refused(command("generate --weights " + in_quotes(gpt2) + " --prompt ''"), {"prompt: got no tokens"});
  refused(command("generate --weights " + in_quotes(gpt2) + " --prompt \"$(printf '\\377')\""), {"UTF-8"});
  refused(command("generate llama --weights " + in_quotes(gpt2) + " --prompt a"),
          {gpt2, "got a gpt2, expected a llama"});
  refused(command("generate --weights " + in_quotes(INGOT_SOURCE_DIR "/tests/data/zoo") + " --prompt a"),
          {"tokenizer.json: cannot open"});
  for (const std::string wrong : {"--temperature -1", "--temperature nan", "--top-k -1", "--top-p 1.5", "--top-p nan",
                                  "--tokens 0", "--seed x", "--weight-format int4", "--mode fast"}) {
    const Outcome usage = command(arguments(gpt2, wrong));
    EXPECT_EQ(usage.code, 2) << wrong;
    EXPECT_TRUE(usage.out.empty()) << usage.out;
    EXPECT_NE(usage.error.find(wrong.substr(0, wrong.find(' '))), std::string::npos) << usage.error;
  }
  EXPECT_NE(command("generate --weights /no/such --prompt a").error.find("/no/such"), std::string::npos);
}

}  // namespace
}  // namespace ingot::cli
