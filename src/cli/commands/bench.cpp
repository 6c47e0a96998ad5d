#include <fmt/format.h>

#include <algorithm>
#include <chrono>

#include "cli/bind_bench.h"
#include "cli/commands.h"
#include "cli/compile_bench.h"
#include "cli/cuda_bench.h"
#include "cli/kernel_bench.h"
#include "cli/math_bench.h"
#include "cli/memory_bench.h"
#include "cli/replay_bench.h"
#include "cli/report.h"
#include "cli/train_bench.h"
#include "cli/update_bench.h"
#include "cli/zoo.h"
#include "runtime/code/kernel_cache.h"
#include "runtime/cpu.h"
#include "runtime/thread_pool.h"

namespace ingot::cli {
namespace {

int bench_ceiling(const BenchOptions& options) {
  Roof roof = measure_roof(num_threads(), options.seconds, true);
  if (options.json) {
    nlohmann::json bandwidths = nlohmann::json::array();
    for (const Bandwidth& b : roof.bandwidths)
      bandwidths.push_back({{"bytes", b.bytes},
                            {"read_gbps", b.read},
                            {"copy_gbps", b.copy},
                            {"copy_streaming_gbps", b.copy_streaming}});
    fmt::print("{}\n", nlohmann::json{{"name", "ceiling"},
                                      {"threads", roof.threads},
                                      {"isa", runtime::host_target().str()},
                                      {"fma_f32_gflops", roof.fma_gflops},
                                      {"dot_bf16_gflops", roof.bf16_gflops},
                                      {"fork_join_us", roof.fork_join_us},
                                      {"bandwidths", bandwidths}}
                           .dump());
    return 0;
  }
  fmt::print("{} threads, {}\n", roof.threads, runtime::host_target().str());
  fmt::print("f32 fma {:.0f} GFLOP/s, bf16 dot {:.0f} GFLOP/s, fork and join {:.2f} us\n", roof.fma_gflops,
             roof.bf16_gflops, roof.fork_join_us);
  fmt::print("{:>14}{:>12}{:>12}{:>12}   (GB/s, all threads; a copy counts both sides)\n", "bytes a thread", "read",
             "copy", "streaming");
  for (const Bandwidth& b : roof.bandwidths)
    fmt::print("{:>14}{:>12.1f}{:>12.1f}{:>12.1f}\n", b.bytes, b.read, b.copy, b.copy_streaming);
  return 0;
}

// How long a frozen call takes to the first instruction of its kernel. The call is an ordinary one; a kernel that notes
// the time and then does the same stands in the cache under the generated kernel's key.
class FirstKernel {
 public:
  using Clock = std::chrono::steady_clock;

  template <class F>
  FirstKernel(const F& function, const std::vector<Tensor>& arguments) {
    runtime::KernelCache& cache = runtime::KernelCache::instance();
    cache.clear();
    (void)compile(function)(arguments);
    const std::vector<runtime::LoadedKernelPtr> made = cache.kernels();
    if (made.size() != 1)
      throw Error("the function to be timed is " + std::to_string(made.size()) + " kernels, not one");
    own_ = made[0];
    auto source = std::make_shared<KernelSource>();
    source->key = own_->source->key;
    source->name = own_->source->name + "_timed";
    source->interpret = [](const void* frame) {
      const auto* timed = static_cast<const FirstKernel*>(static_cast<const KernelFrame*>(frame)->context);
      timed->begun_ = Clock::now();
      timed->own_->entry(frame);
    };
    source->context = std::shared_ptr<const void>(this, [](const void*) {});
    cache.clear();
    cache.load(source);
    call_ = [frozen = compile(function, {.mode = CompileMode::frozen}), &arguments] { (void)frozen(arguments); };
  }
  ~FirstKernel() {
    call_ = nullptr;
    runtime::KernelCache::instance().clear();
  }
  FirstKernel(const FirstKernel&) = delete;

  /// Nanoseconds, the median of many calls, without what reading the clock takes.
  double median_ns() {
    constexpr int kCalls = 20001, kWarm = 1000;
    std::vector<double> taken, clock;
    for (int i = 0; i < kCalls; ++i) {
      const Clock::time_point before = Clock::now(), start = Clock::now();
      call_();
      if (i < kWarm) continue;
      taken.push_back(std::chrono::duration<double, std::nano>(begun_ - start).count());
      clock.push_back(std::chrono::duration<double, std::nano>(start - before).count());
    }
    return median(std::move(taken)) - median(std::move(clock));
  }

 private:
  runtime::LoadedKernelPtr own_;
  mutable Clock::time_point begun_;
  std::function<void()> call_;
};

/// A hundred parameters in fifty modules, of which a call looks at all and reads two.
struct ManyParametersImpl : nn::Module {
  std::vector<nn::Linear> layers;
  ManyParametersImpl() {
    for (int i = 0; i < 50; ++i) layers.emplace_back(4, 4);
  }
  Tensor forward(const Tensor& x) const { return x + layers[0]->bias - layers[49]->bias; }
};
INGOT_MODULE(ManyParameters, layers);

// Cost of small calls: an eager op on 16 floats, a frozen call of a function of 8 tensors, and what looking at the
// parameters of a frozen module adds.
int bench_dispatch(const BenchOptions& options) {
  Tensor a = ones({16}), b = ones({16});
  std::vector<Tensor> eight;
  for (int i = 0; i < 8; ++i) eight.push_back(ones({16}) * i);
  auto sum = [](const std::vector<Tensor>& t) { return t[0] + t[1] + t[2] + t[3] + t[4] + t[5] + t[6] + t[7]; };
  auto checked = compile(sum), frozen = compile(sum, {.mode = CompileMode::frozen});
  bool equal_bits = true;
  for (int call = 0; call < 4; ++call)
    equal_bits =
        equal_bits && bitwise_equal(checked(eight), sum(eight)) && ingot::bitwise_equal(frozen(eight), sum(eight));
  auto times = interleave(
      {[&] { (void)(a + b); }, [&] { (void)sum(eight); }, [&] { (void)checked(eight); }, [&] { (void)frozen(eight); }},
      options.seconds);
  const ManyParameters many;
  const Tensor four = ones({4});
  auto module = compile(many, {.mode = CompileMode::frozen});
  auto lambda = compile([&](const Tensor& x) { return many(x); }, {.mode = CompileMode::frozen});
  for (int call = 0; call < 4; ++call)
    equal_bits = equal_bits && bitwise_equal(module(four), many(four)) && bitwise_equal(lambda(four), many(four));
  auto watched = interleave({[&] { (void)module(four); }, [&] { (void)lambda(four); }}, options.seconds / 2);
  const double watch_ns = (watched[0].median - watched[1].median) * 1e3;
  // A frozen function of one op whose scalar is always another: what its calls add to the op.
  auto scaled = [](const Tensor& x, double factor) { return x * factor; };
  auto never = compile(scaled, {.mode = CompileMode::frozen});
  double factor = 0;
  for (int call = 0; call < 300'000; ++call) (void)never(a, factor += 1);
  auto always_another =
      interleave({[&] { (void)scaled(a, factor += 1); }, [&] { (void)never(a, factor += 1); }}, options.seconds / 2);
  const double first_kernel_ns = FirstKernel(sum, eight).median_ns();
  if (options.json) {
    fmt::print("{}\n", nlohmann::json{{"name", "dispatch"},
                                      {"threads", num_threads()},
                                      {"eager_add_16_ns", times[0].median * 1e3},
                                      {"eager_seven_adds_ns", times[1].median * 1e3},
                                      {"checked_call_ns", times[2].median * 1e3},
                                      {"frozen_call_ns", times[3].median * 1e3},
                                      {"frozen_call_to_its_kernel_ns", first_kernel_ns},
                                      {"hundred_parameters_add_ns", watch_ns},
                                      {"always_another_scalar_eager_ns", always_another[0].median * 1e3},
                                      {"always_another_scalar_frozen_ns", always_another[1].median * 1e3},
                                      {"bitwise_equal", equal_bits}}
                           .dump());
    return equal_bits ? 0 : 1;
  }
  fmt::print("eager add of 16 floats              {:8.0f} ns\n", times[0].median * 1e3);
  fmt::print("seven adds of 8 tensors, eager      {:8.0f} ns\n", times[1].median * 1e3);
  fmt::print("the same compiled, checked          {:8.0f} ns\n", times[2].median * 1e3);
  fmt::print("the same compiled, frozen           {:8.0f} ns   ({})\n", times[3].median * 1e3, frozen.explain().frozen);
  fmt::print("of that, to its kernel              {:8.0f} ns\n", first_kernel_ns);
  fmt::print("a module of 100 parameters adds     {:8.0f} ns\n", watch_ns);
  fmt::print("a scalar that is always another     {:8.0f} ns   (eager {:.0f} ns)\n", always_another[1].median * 1e3,
             always_another[0].median * 1e3);
  return equal_bits ? 0 : 1;
}

// What the canonical order of a sum costs: sums over rows and over columns beside a loop that only reads.
int bench_reduction_order(const BenchOptions& options) {
  Roof roof = measure_roof(num_threads(), options.seconds / 2, true);
  constexpr int64_t kShapes[][2] = {{256, 256}, {1024, 1024}, {4096, 4096}, {16384, 1024}, {512, 32768}};
  nlohmann::json list = nlohmann::json::array();
  for (auto [rows, columns] : kShapes) {
    Tensor x = rand({rows, columns});
    auto bytes = static_cast<double>(x.numel()) * 4;
    auto times =
        interleave({[&] { (void)x.sum({1}); }, [&] { (void)x.sum({0}); }}, options.seconds / 2 / std::size(kShapes));
    list.push_back({{"rows", rows},
                    {"columns", columns},
                    {"over_columns_gbps", bytes / times[0].median / 1e3},
                    {"over_rows_gbps", bytes / times[1].median / 1e3},
                    {"read_gbps", roof.read_gbps(bytes)}});
  }
  if (options.json) {
    fmt::print("{}\n", nlohmann::json{{"name", "reduction_order"}, {"threads", num_threads()}, {"sums", list}}.dump());
    return 0;
  }
  fmt::print("f32 sums in the canonical order, {} threads, GB/s\n{:>8}{:>9}{:>12}{:>12}{:>12}\n", num_threads(), "rows",
             "columns", "sum(1)", "sum(0)", "read only");
  for (const auto& s : list)
    fmt::print("{:>8}{:>9}{:>12.1f}{:>12.1f}{:>12.1f}\n", s["rows"].get<int64_t>(), s["columns"].get<int64_t>(),
               s["over_columns_gbps"].get<double>(), s["over_rows_gbps"].get<double>(), s["read_gbps"].get<double>());
  return 0;
}

constexpr double kFastError = 1e-3;  // of the largest result

/// The tensor `output` of a file, which must be one to be compared with ours.
Tensor peer_output(const std::string& path, const Tensor& ours) {
  const StateDict file = load(path, {}, Location::none());
  const auto found = file.find("output");
  if (found == file.end()) throw Error("bench: compare: got " + path + " without a tensor 'output', expected one");
  if (found->second.sizes() != ours.sizes())
    throw Error("bench: compare: " + path + ": got an output of another shape than the model's");
  return found->second;
}

template <class Forward, class Input>
int bench_forward(const BenchOptions& options, int batch, const Forward& forward, const Input& input) {
  CompileMode mode = options.mode == "frozen" ? CompileMode::frozen : CompileMode::checked;
  const AutocastGuard autocast(options.autocast);
  const Tensor expected = forward(input);
  const Tensor peer = options.compare.empty() ? Tensor() : peer_output(options.compare, expected);
  // Before anything else has made kernels that the program could share.
  clear_caches();
  const double cold_ms = [&] {
    const auto first = compile(forward, {.mode = mode, .name = options.name});
    (void)first(input);
    return first.stats().compile_ms;
  }();
  clear_caches();
  Roof roof = measure_roof(num_threads(), 0.5, options.steps);
  Run run = measure_run(options.name, forward, input, batch, mode, roof, options.seconds);
  const Statistics& s = run.statistics;
  // Fast numerics compute otherwise than eager does.
  const bool close = numerics() == Numerics::fast &&
                     run.max_abs_error <= kFastError * std::max(1.0, expected.abs().amax().template item<double>());
  nlohmann::json result = {{"name", options.name},
                           {"mode", options.mode},
                           {"threads", num_threads()},
                           {"batch", batch},
                           {"eager_us", run.eager.median},
                           {"compiled_us", run.compiled.median},
                           {"speedup", run.speedup()},
                           {"compile_ms", s.compile_ms},
                           {"cold_compile_ms", cold_ms},
                           {"first_eager_us", run.first_eager},
                           {"first_compiled_us", run.first_compiled},
                           {"compilations", s.compilations},
                           {"fallbacks", s.fallbacks},
                           {"max_abs_error", run.max_abs_error},
                           {"bitwise_equal", run.bitwise_equal},
                           {"roof_share", run.roof_share()},
                           {"roof_us", run.roof_us}};
  if (peer.defined())
    result["max_abs_error_to_peer"] = max_abs_difference(compile(forward, {.mode = mode})(input), peer);
  std::vector<StepReport> steps;
  if (options.steps) {
    auto fast = compile(forward, {.name = options.name});
    steps = time_steps([&] { (void)fast(input); }, roof);
  }
  if (options.steps) result["steps"] = to_json(steps), result["losses"] = to_json(largest_losses(steps));
  if (options.json) {
    fmt::print("{}\n", result.dump());
  } else {
    fmt::print("{} batch {}, {} threads, {} mode\n", options.name, batch, num_threads(), options.mode);
    fmt::print("  eager    {:>10}   ({} to {})\n", duration(run.eager.median), duration(run.eager.low),
               duration(run.eager.high));
    fmt::print("  compiled {:>10}   ({} to {})   {:.2f}x\n", duration(run.compiled.median), duration(run.compiled.low),
               duration(run.compiled.high), run.speedup());
    fmt::print("  modelled roof {} ({:.0f}%), {}, max error {:.1e}\n", duration(run.roof_us), 100 * run.roof_share(),
               run.bitwise_equal ? "same bits"
               : close           ? "fast numerics"
                                 : "BITS DIFFER",
               run.max_abs_error);
    fmt::print(
        "  compiled in {:.1f} ms ({:.1f} ms cold), {} compilations, {} fallbacks; first calls: eager {}, compiled {}\n",
        s.compile_ms, cold_ms, s.compilations, s.fallbacks, duration(run.first_eager), duration(run.first_compiled));
    if (peer.defined())
      fmt::print("  max difference from the peer {:.1e}\n", result["max_abs_error_to_peer"].get<double>());
  }
  if (!options.json) print_steps(steps);
  return (run.bitwise_equal || close) && s.fallbacks == 0 ? 0 : 1;
}

int bench_demo(const BenchOptions& options) {
  const DemoModel model = demo_model(options.name, options.data);
  const int batch = options.batch ? options.batch : model.large_batch;
  return bench_forward(options, batch, model.forward, model.input(batch));
}

int bench_zoo(const BenchOptions& options) {
  const ZooRow* row = find_zoo_row(options.name);
  if (!row) throw Error("unknown model '" + options.name + "'; `ingot models` lists those there are");
  if (options.mode == "train") {
    if (!options.weights.empty() || options.length)
      throw Error("bench: mode: got train with weights or a length, expected neither: they are random, and its own");
    if (options.weight_format != "f32")
      throw Error("bench: weight-format: got " + options.weight_format + " to train, expected f32");
    if (!row->whole_inputs)
      throw Error("bench: mode: got train of '" + options.name +
                  "', which writes to a cache without gradients, expected a model of whole inputs");
    return bench_train(options);
  }
  const ModelFile file = options.weights.empty() ? ModelFile() : ModelFile(options.weights);
  const ZooModel model = options.weights.empty() ? row->make(nullptr) : zoo_model(*row, file);
  if (options.length && !model.sequences)
    throw Error("bench: length: got " + std::to_string(options.length) + ", expected none: " + options.name +
                " is not fed sequences");
  model.module->eval();
  set_weight_format(*model.module, options.weight_format);
  const int batch = options.batch ? options.batch : 1;
  Inputs inputs = model.example(batch, options.length);
  // A file of the whole model has no cache of keys and values: then the next token's are as in the example.
  const bool whole = !file.inputs.empty() && (row->whole_inputs || file.inputs.size() == inputs.size());
  if (whole && !options.batch && !options.length) inputs = file.inputs;
  return bench_forward(options, static_cast<int>(inputs.at(0).size(0)), model.forward, inputs);
}

}  // namespace

int run_bench(const BenchOptions& options) {
  if (options.threads) set_num_threads(options.threads);
  const auto demos = model_names();
  const bool demo = std::find(demos.begin(), demos.end(), options.name) != demos.end();
  if (options.autocast && !demo && !find_zoo_row(options.name))
    throw Error("bench: autocast: got it for " + options.name + ", expected a model");
  if (options.name == "bind") return bench_bind(options);
  if (options.name == "ceiling") return bench_ceiling(options);
  if (options.name == "dispatch") return bench_dispatch(options);
  if (options.name == "compile") return bench_compile(options);
  if (options.name == "cuda") return bench_cuda(options);
  if (options.name == "update") return bench_update(options);
  if (options.name == "replay") return bench_replay(options);
  if (options.name == "reduction_order") return bench_reduction_order(options);
  if (options.name == "math") return bench_math(options);
  if (options.name == "memory") return bench_memory(options);
  if (const KernelBench* kernel = find_kernel_bench(options.name)) return bench_kernel(*kernel, options);
  if (!demo) return bench_zoo(options);
  if (options.weight_format != "f32")
    throw Error("bench: weight-format: got " + options.weight_format +
                " of a demo's model, expected one of `ingot models`");
  if (!options.weights.empty() || options.length)
    throw Error("bench: weights and length: got one for " + options.name +
                ", expected neither: a demo's model has its own");
  return options.mode == "train" ? bench_train(options) : bench_demo(options);
}

}  // namespace ingot::cli
