// The `ingot` command: reads the command line, nothing else.
#include <CLI/CLI.hpp>
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <map>

#include "base/error.h"
#include "cli/commands.h"
#include "cli/kernel_cases.h"
#include "cli/models.h"
#include "cli/train.h"
#include "cli/zoo.h"
#include "codegen/cuda/cuda.h"
#include "eager/autograd/autograd.h"

using namespace ingot;

namespace {

/// Takes numbers that are at least, or more than, 0; `what` stands in --help.
CLI::Validator number(const char* what, bool zero) {
  return CLI::Validator(
      [zero](std::string& text) -> std::string {
        double value = 0;
        if (CLI::detail::lexical_cast(text, value) && std::isfinite(value) && (value > 0 || (zero && value == 0)))
          return {};
        return "got " + text + ", expected a number " + (zero ? "from 0 on" : "above 0");
      },
      what);
}

int run(int argc, char** argv) {
  const ingot::NoGradGuard no_grad;  // but for steps of training
  CLI::App app{"Ingot: a JIT tracing compiler runtime for tensor programs in C++."};
  app.set_version_flag("--version", std::string("ingot ") + INGOT_VERSION);
  app.require_subcommand(1);
  const CLI::Validator positive = number("POSITIVE", false), not_negative = number("NONNEGATIVE", true);
  const CLI::Validator share = not_negative & CLI::Range(0.0, 1.0);
  cli::BenchOptions options;
  std::string model;
  std::map<std::string, Numerics> levels;
  for (Numerics level : {Numerics::strict, Numerics::default_, Numerics::fast})
    levels[std::string(name_of(level))] = level;
  auto common = [&](CLI::App* command, const char* example) {
    command->add_flag("--json", options.json, "print JSON for programs");
    command->add_option("--data", options.data, "folder of the demo's weights and data");
    command->add_option("--threads", options.threads, "threads to use (default: all)")->check(positive);
    command->add_option_function<Numerics>("--numerics", set_numerics, "how free results are with their last bits")
        ->transform(CLI::CheckedTransformer(levels, CLI::ignore_case));
    command->footer(std::string("Example:\n  ") + example);
    return command;
  };
  auto named = [&](CLI::App* command, std::vector<std::string> names) {
    command->add_option("name", model, "one of: " + CLI::detail::join(names, ", "))
        ->required()
        ->check(CLI::IsMember(names));
    return command;
  };
  std::vector<std::string> models = cli::model_names();
  for (const cli::ZooRow& row : cli::zoo_rows()) models.push_back(row.name);
  std::vector<std::string> benches = models;
  benches.insert(benches.end(), {"bind", "ceiling", "compile", "cuda", "dispatch", "math", "memory", "replay",
                                 "reduction_order", "update"});
  for (const cli::KernelBench& kernel : cli::kernel_benches()) benches.push_back(kernel.name);

  auto* demo =
      common(app.add_subcommand("demo", "run three real models and train one, eager and compiled side by side"),
             "ingot demo --json");
  auto* bench =
      named(common(app.add_subcommand("bench", "A/B-measure eager against compiled"),
                   "ingot bench bytegpt --batch 8 --seconds 5\n  ingot bench resnet50 --mode frozen --threads 2\n"
                   "  ingot bench gpt2 --weights model.safetensors --length 512"),
            benches);
  bench->add_option("--batch", options.batch, "examples a call")->check(positive);
  bench
      ->add_option(
          "--length", options.length,
          "of the sequences that a model is fed (default: its own); for compile, update and bind: the most ops, the "
          "elements of a tensor, the number of lengths")
      ->check(positive);
  bench
      ->add_option("--weights", options.weights,
                   "safetensors for a model, which takes its sizes (default: random, full size); without --batch and "
                   "--length\nthe file's own input/0, input/1, ..., if it has them")
      ->check(CLI::ExistingFile);
  bench->add_option("--seconds", options.seconds, "how long to measure")->check(positive);
  bench->add_option("--mode", options.mode, "of a model: checked, frozen or train, a whole step of training")
      ->check(CLI::IsMember({"checked", "frozen", "train"}));
  bench->add_option("--compare", options.compare, "a safetensors file with a peer's `output`")
      ->check(CLI::ExistingFile);
  std::vector<std::string> formats;
  for (const auto& [name, dtype] : cli::weight_formats()) formats.push_back(name);
  const auto weight_format = [&](CLI::App* command, std::string& format) {
    command
        ->add_option("--weight-format", format,
                     "of linear layers: " + CLI::detail::join(formats, ", ") +
                         " (default: f32; sums are f32 in each; int8 has a scale for each output)")
        ->check(CLI::IsMember(formats));
  };
  weight_format(bench, options.weight_format);
  const auto autocast = [](CLI::App* command, const auto& set) {
    return command->add_flag_function("--autocast", set,
                                      "products in bf16, parameters and losses in f32 (AutocastGuard)");
  };
  autocast(bench, [&](int64_t) { options.autocast = true; });
  bench->add_flag("--steps", options.steps, "show what each step of the compiled program takes, and each kind of step");
  auto* zoo = common(app.add_subcommand("models", "list the models that there are, or check them"),
                     "ingot models\n  ingot models check FOLDER --json");
  std::string folder;
  auto* check = common(zoo->add_subcommand("check", "judge the models by a folder of small ones with expected results"),
                       "ingot models check tests/data/zoo");
  check->add_option("folder", folder, "of safetensors files; each is named like its model")->required();
  cli::GenerateOptions generated;
  auto* generate =
      common(app.add_subcommand("generate", "go on with a text"),
             "ingot generate gpt2 --weights FOLDER --prompt \"Once upon a time\" --temperature 0.8 --top-k 40");
  generate->add_option("name", generated.name, "gpt2 or llama (default: what the folder holds)")
      ->check(CLI::IsMember({"gpt2", "llama"}));
  generate
      ->add_option("--weights", generated.weights,
                   "a Hugging Face folder: config.json, model.safetensors (or parts and their index), tokenizer.json")
      ->required()
      ->check(CLI::ExistingDirectory);
  generate->add_option("--prompt", generated.prompt, "the text to go on with")->required();
  generate->add_option("--tokens", generated.tokens, "how many at most (default: 100)")->check(CLI::Range(1, 1 << 24));
  generate->add_option("--temperature", generated.sampling.temperature, "0: always the likeliest (default)")
      ->check(not_negative);
  generate->add_option("--top-k", generated.sampling.top_k, "draw from so many of the likeliest (default: all)")
      ->check(not_negative);
  generate->add_option("--top-p", generated.sampling.top_p, "draw from the likeliest that have this share (default: 1)")
      ->check(share);
  generate->add_option("--seed", generated.sampling.seed, "of what is drawn (default: 0)");
  weight_format(generate, generated.weight_format);
  generate->add_option("--mode", generated.mode, "compile or eager (default: compile)")
      ->check(CLI::IsMember({"compile", "eager"}));
  cli::TrainOptions training;
  auto* train =
      common(app.add_subcommand("train", "train a model from scratch"),
             "ingot train bytegpt --checkpoint gpt.ckpt\n  ingot train bytegpt --resume gpt.ckpt --steps 2400\n"
             "  ingot train digits-cnn --mode compare --json");
  train->add_option("name", training.name, "bytegpt or digits-cnn")
      ->required()
      ->transform([](std::string name) {
        std::replace(name.begin(), name.end(), '-', '_');
        return name;
      })
      ->check(CLI::IsMember(cli::task_names()));
  train->add_option("--text", training.text, "a file to learn (bytegpt; default: the text that ships)");
  train
      ->add_option("--mode", training.mode, "eager, compile or compare: both in turns on two copies (default: compile)")
      ->check(CLI::IsMember({"eager", "compile", "compare"}));
  const CLI::Range counts(int64_t{1}, int64_t{1} << 40, "INT"), most(int64_t{0}, int64_t{1} << 40, "INT");
  auto recipe = [&](const char* option, const char* field, const char* what) {  // checked with those of a checkpoint
    train->add_option_function<double>(
        option, [&training, field](double value) { training.numbers[field] = value; }, what);
  };
  recipe("--steps", "steps", "of the whole schedule (default: 1200; digits-cnn: 660)");
  recipe("--batch", "batch", "examples a step (default: 32; digits-cnn: 64)");
  recipe("--warmup", "warmup", "steps in which the rate rises (default: 100; digits-cnn: 20)");
  recipe("--seed", "seed", "of first weights and the order of the data (default: 1)");
  recipe("--lr", "lr", "highest learning rate (default: 0.0015; digits-cnn: 0.05)");
  recipe("--weight-decay", "weight_decay", "default: 0.1; digits-cnn: 0.001");
  recipe("--clip", "clip", "most of the gradients' norm; 0: any (default: 1; digits-cnn: 0)");
  autocast(train, [&](int64_t) { training.numbers["autocast"] = 1; });
  train->add_option("--until", training.until, "stop after this step, as if interrupted")->check(counts);
  train->add_option("--checkpoint", training.checkpoint, "write all that resuming needs to this file");
  train->add_option("--checkpoint-every", training.checkpoint_every, "steps (default: 100)")->check(counts);
  train->add_option("--resume", training.resume, "go on from a checkpoint, with its recipe but for what is told");
  train
      ->add_option("--sample-every", training.sample_every,
                   "steps between two samples; 0: none (default: a sixth of all; none with --json)")
      ->check(most);
  auto* explain =
      named(common(app.add_subcommand("explain", "show what compiling a model did, and why"),
                   "ingot explain digits_mlp\n  ingot explain resnet18 --html resnet18.html\n"
                   "  ingot explain digits_cnn --asm relu --kernel-ir relu\n  ingot explain bytegpt --target sm_90\n"
                   "  ingot explain bytegpt --mode train"),
            models);
  cli::ExplainOptions explained;
  explain->add_option("--batch", explained.batch, "examples a call (default: 1, then the demo's larger batch)")
      ->check(positive);
  explain
      ->add_option("--mode", explained.mode,
                   "train: a whole training step, with what is saved for its backward pass and what is computed again "
                   "(default: call, the model's forward)")
      ->check(CLI::IsMember({"call", "train"}));
  autocast(explain, [&](int64_t) { explained.autocast = true; });
  // What the text leaves out or goes into; JSON and the page hold all of it.
  std::vector<CLI::Option*> of_text = {
      explain->add_option("--program", explained.report.program, "which program to show in full (default: the last)")
          ->check(not_negative),
      explain->add_flag("--ir", explained.report.ir, "show the IR, as recorded and after the passes"),
      explain->add_flag("--steps", explained.report.steps,
                        "list every step, in order of execution, not only the longest"),
      explain->add_flag("--fusion", explained.report.fusion, "list every fusion decision, not only each reason")};
  std::string kernel_ir, assembly;
  auto* wants_ir =
      explain->add_option("--kernel-ir", kernel_ir, "show the kernel IR of kernels with this in their name")
          ->expected(0, 1);
  auto* wants_asm = explain->add_option("--asm", assembly, "show the machine code of kernels with this in their name")
                        ->expected(0, 1);
  of_text.insert(of_text.end(),
                 {wants_ir, wants_asm, explain->add_flag("--all", explained.all, "show all of the above")});
  auto* html = explain->add_option("--html", explained.html, "write a page with a picture of the graph to this file")
                   ->excludes("--json");
  for (CLI::Option* option : of_text) option->excludes(html)->excludes("--json");
  std::map<std::string, int> targets;
  for (int arch : codegen::cuda::kArchitectures) targets["sm_" + std::to_string(arch)] = arch;
  int arch = 0;
  explain->add_option("--target", arch, "show the CUDA text for a GPU instead: sm_80, sm_90 or sm_100")
      ->transform(CLI::CheckedTransformer(targets));
  explain->add_flag_function(
      "--cuda", [&](int64_t) { arch = arch ? arch : 90; }, "the same as --target sm_90");
  auto* cache = named(
      common(app.add_subcommand("cache", "show the in-memory kernel cache after a run"), "ingot cache bytegpt --json"),
      models);
  auto* ops = common(app.add_subcommand("ops", "list the op table"), "ingot ops --json");
  bool markdown = false;
  auto* as_markdown = ops->add_flag("--markdown", markdown, "the table as docs/operators.md");
  std::string op_cases;
  ops->add_option("--cases", op_cases, "also say which ops of a folder of conformance cases are missing")
      ->check(CLI::ExistingDirectory)
      ->needs(as_markdown);
  conformance::Options cases;
  bool cases_json = false;
  auto* conform = app.add_subcommand("conformance", "run PyTorch's operator cases eager, interpreted and compiled");
  conform->add_option("path", cases.path, "a folder of case files, or one file")->required()->check(CLI::ExistingPath);
  conform->add_flag("--json", cases_json, "print JSON for programs");
  conform->add_option("--require-ops", cases.require_ops, "a file with op names, one a line, that must not be missing")
      ->check(CLI::ExistingFile);
  conform->add_option("--filter", cases.filter, "only ops whose name has this in it");
  conform->add_option("--mode", cases.modes, "only these of " + conformance::mode_names());
  conform->footer(
      "compiled-sizes calls one compiled function with each dim that an op leaves free at four sizes: the first three "
      "may\n"
      "take two compilations, and every result must be eager's to the bit and close to the interpreter's.\n\n"
      "Exit code: 0, 1 where a case fails, none was run or a required op is missing, 2 where the command or a file is "
      "wrong\nor the filter matches none.\n\n"
      "Example:\n  ingot conformance cases/core --filter softmax");
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    return app.exit(error) == 0 ? 0 : 2;  // help and version are no mistake
  }
  options.name = model;
  if (*demo) return cli::run_demo(options);
  if (*bench) return cli::run_bench(options);
  if (*check) return cli::run_models_check(options, folder);
  if (*zoo) return cli::run_models(options);
  if (*generate) {
    static_cast<cli::CommonOptions&>(generated) = options;
    return cli::run_generate(generated);
  }
  if (*train) {
    static_cast<cli::CommonOptions&>(training) = options;
    return cli::run_train(training);
  }
  if (*explain && arch) return cli::run_explain_cuda(options, model, arch);
  if (*explain) {
    static_cast<cli::CommonOptions&>(explained) = options;
    explained.name = model;
    if (*wants_ir) explained.report.kernel_ir = kernel_ir;
    if (*wants_asm) explained.report.assembly = assembly;
    return cli::run_explain(explained);
  }
  if (*cache) return cli::run_cache(options, model);
  if (*ops) return cli::run_ops(options, markdown, op_cases);
  if (*conform) return cli::run_conformance(cases, cases_json);
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  try {
    return run(argc, argv);
  } catch (const std::exception& error) {  // an Error, or the system's: no memory, a folder that may not be read
    std::fprintf(stderr, "ingot: %s\n", error.what());
    return 2;
  }
}
