// The subcommands of `ingot`; each returns the exit code: 0 good, 1 a check failed, 2 wrong usage.
#pragma once
#include <map>
#include <string>

#include "cli/generate.h"
#include "compile/explain.h"
#include "conformance/conformance.h"

namespace ingot::cli {

struct CommonOptions {
  bool json = false;
  std::string data;  // folder of the demo's weights and data; empty: the installed one, or examples/data
  int threads = 0;   // 0: all usable processors
};

struct BenchOptions : CommonOptions {
  std::string name;
  std::string mode = "checked";
  int batch = 0;                      // 0: 1, of a demo's model its larger batch
  double seconds = 2;                 // of measurement
  bool steps = false;                 // show what each step of the program takes
  std::string compare;                // safetensors with a peer's `output` for the same input; empty: none
  std::string weights;                // of a model of the zoo: a safetensors file; empty: random ones, at full size
  int length = 0;                     // of the sequences that it is fed, or what a bench makes of it; 0: its own
  std::string weight_format = "f32";  // of a model's linear layers
  bool autocast = false;              // run a model in a region of bf16
};

struct GenerateOptions : CommonOptions {
  std::string name, weights;  // the kind of model, empty: as the folder says; the folder
  std::string prompt, mode = "compile", weight_format = "f32";
  int64_t tokens = 100;
  Sampling sampling;
};

struct ExplainOptions : CommonOptions {
  std::string name;
  int batch = 0;              // of the last call and of the times; 0: the model's larger demo batch
  std::string mode = "call";  // or train: a training step
  bool autocast = false;      // in a region of bf16
  ReportOptions report;
  bool all = false;  // everything the report can show
  std::string html;  // file to write the page to; empty: the report goes to the terminal
};

struct TrainOptions : CommonOptions {
  std::string name, text;                 // text: a file to learn; empty: the one that ships
  std::string mode = "compile";           // or eager, or compare: both in turns, on two copies
  std::map<std::string, double> numbers;  // of the recipe, where they are told (cli/train.h)
  int64_t until = 0;                      // the step to stop after, of a schedule that is longer; 0: the last
  std::string checkpoint, resume;         // files
  int64_t checkpoint_every = 100;         // steps
  int64_t sample_every = -1;              // steps; 0: no samples; -1: a sixth of all
};

int run_demo(const CommonOptions& options);
int run_bench(const BenchOptions& options);
int run_train(const TrainOptions& options);
/// Lists the models.
int run_models(const CommonOptions& options);
/// Checks them against a folder (cli/models_check.h).
int run_models_check(const CommonOptions& options, const std::string& folder);
int run_generate(const GenerateOptions& options);
/// A compiled model after some calls, with what its steps take: of the demo's models at both batch sizes, the larger
/// one (or `batch`) timed; any other of `ingot models` with random weights, its batch 1 unless told. With `training` a
/// whole training step, the batch its recipe's unless told. Throws Error for an unknown name.
Explanation explanation_of(const std::string& name, const std::string& data, int batch, bool training = false,
                           bool autocast = false);
int run_explain(ExplainOptions options);
/// The same model's programs as CUDA text for compute capability `arch`, with registers and spills where NVRTC is
/// found.
int run_explain_cuda(const CommonOptions& options, const std::string& name, int arch);
int run_cache(const CommonOptions& options, const std::string& name);
/// `cases`: with the markdown, what is missing of the ops of a folder of conformance cases; empty: nothing said.
int run_ops(const CommonOptions& options, bool markdown, const std::string& cases);

/// Prints what came of it; 1 for a failure, a required op that is missing, or where no case was run.
int run_conformance(const conformance::Options& options, bool json);

}  // namespace ingot::cli
