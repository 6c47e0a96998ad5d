#include "cli/cuda_bench.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <random>

#include "base/pieces.h"
#include "cli/cuda_cases.h"
#include "codegen/lower.h"
#include "compile/compare.h"
#include "ir/passes/pipeline.h"
#include "ir/reference.h"
#include "runtime/cuda/device_program.h"

namespace ingot::cli {
namespace {

namespace cuda = runtime::cuda;

/// Microseconds: the one in the middle, the 10th and 90th percentile.
Timing timing_of(std::vector<double> samples) {
  std::sort(samples.begin(), samples.end());
  auto at = [&](double share) { return samples[static_cast<size_t>(share * static_cast<double>(samples.size() - 1))]; };
  return {at(0.5), at(0.1), at(0.9)};
}

/// Calls follow one another on the device, so many between two events there. For about `seconds`.
Timing time_on_device(const std::function<void(int)>& call, double seconds) {
  constexpr int kBatch = 50, kWarm = 3;
  cuda::Event before, after;
  auto batch = [&](std::vector<double>& samples) {
    for (int i = -kWarm; i < kBatch; ++i) {  // the first ones may wait for this thread
      if (i == 0) before.record();
      call(i + kWarm);
    }
    after.record();
    samples.push_back(1e3 * after.milliseconds_since(before) / kBatch);
  };
  std::vector<double> cold, samples;
  const double begin = now_us();
  batch(cold);
  while (now_us() - begin < 30e3) batch(cold);  // until clocks are up
  const double end = now_us() + 1e6 * seconds;
  do batch(samples);
  while (now_us() < end);
  return timing_of(std::move(samples));
}

/// GB/s of a copy of 1 GiB within the device's memory, bytes read and written counted.
double copy_gbps(double seconds) {
  constexpr int64_t kBytes = int64_t{1} << 30;
  const cuda::DeviceMemory from(kBytes), to(kBytes);
  cuda::fill(from.data(), 0x55, kBytes);
  const Timing t = time_on_device([&](int) { cuda::copy_on_device(to.data(), from.data(), kBytes); }, seconds);
  return 2e-3 * kBytes / t.median;
}

/// Rows that repeat themselves to the sizes of a case: so all of a large result can be judged by a small reference.
struct Tile {
  std::vector<int64_t> sizes;
  int64_t repeats = 1;
  explicit Tile(const CudaCase& c) : sizes(c.sizes) {
    constexpr int64_t kElements = 1 << 21;
    for (int64_t n = c.elements(); n > kElements && sizes[0] % 2 == 0; n /= 2) sizes[0] /= 2, repeats *= 2;
  }
};

/// The inputs of one call, the output, and the program bound to them.
struct Set {
  std::vector<cuda::DeviceMemory> memory;  // the output last
  std::unique_ptr<cuda::DeviceProgram> program;
};

struct CudaRun {
  Timing us;
  double nvrtc_ms = 0, error = 0;  // error: relative to the largest result
  size_t launches = 0, kernels = 0, sets = 1;
  bool repeats = true;  // all of the result is as its first part says
  std::string failure;  // why there is nothing of it
  bool good(const CudaCase& c) const { return failure.empty() && repeats && error <= c.tolerance; }
};

ir::ReferenceTensor random_input(const ir::Graph& graph, ir::ValueId v, std::span<const int64_t> sizes, uint64_t seed) {
  std::mt19937 random(seed);
  std::uniform_real_distribution<float> number(-1, 2);  // no sum of many is near zero
  const std::vector<int64_t> values = graph.dims.evaluate(sizes);
  Ints shape;
  for (Dim d : graph.type(v).shape) shape.push_back(DimTable::value_of(d, values));
  ir::ReferenceTensor x(graph.type(v).dtype, shape);
  for (double& e : x.real) e = ir::round_to(x.dtype, number(random));
  return x;
}

/// Judges the whole output: its first part by the reference on the tile, the rest by the first part.
void check(const CudaCase& c, const Tile& tile, std::span<const ir::ReferenceTensor> inputs,
           const cuda::DeviceMemory& output, CudaRun& run) {
  ir::ReferenceTensor expected = ir::interpret(c.graph, inputs, {}, {.symbols = tile.sizes})[0];
  if (c.repeats == Repeats::sums)
    for (double& x : expected.real) x *= static_cast<double>(tile.repeats);
  std::vector<char> bytes(static_cast<size_t>(output.bytes()));
  cuda::copy_to_host(bytes.data(), output.data(), output.bytes());
  // Lines of so many equal periods.
  const int64_t lines = c.repeats == Repeats::columns ? c.sizes[1] : 1,
                periods = c.repeats == Repeats::sums ? 1 : tile.repeats;
  const size_t line = bytes.size() / static_cast<size_t>(lines), period = line / static_cast<size_t>(periods);
  std::vector<char> first(period * static_cast<size_t>(lines));
  for (size_t l = 0; l < static_cast<size_t>(lines); ++l) {
    const char* at = bytes.data() + l * line;
    std::memcpy(first.data() + l * period, at, period);
    for (size_t p = 1; p < static_cast<size_t>(periods); ++p)
      run.repeats = run.repeats && std::memcmp(at, at + p * period, period) == 0;
  }
  const ir::ReferenceTensor got = ir::ReferenceTensor::from_bytes(expected.dtype, expected.shape, first.data());
  double largest = 0, error = 0;
  for (int64_t i = 0; i < got.size(); ++i) {
    largest = std::max(largest, std::abs(expected.at(i)));
    const double difference = std::abs(got.at(i) - expected.at(i));
    if (difference <= error) continue;
    error = difference;
    if (std::isnan(error)) break;
  }
  run.error = error / largest;
}

CudaRun run_cuda_case(const CudaCase& c, double seconds) {
  CudaRun run;
  ir::Graph graph = c.graph;
  ir::run_pipeline(graph);
  const Program program = codegen::lower(graph, Target{.cuda_arch = cuda::device().arch}).program;
  const cuda::LoadedUnit unit(program.device_source);
  run.nvrtc_ms = unit.compile_ms();
  run.kernels = program.steps.size();

  const Tile tile(c);
  std::vector<ir::ReferenceTensor> inputs;
  for (size_t i = 0; i < c.graph.inputs.size(); ++i)
    inputs.push_back(random_input(c.graph, c.graph.inputs[i].value, tile.sizes, i + 1));
  // One after the other, so that no call finds its data in L2.
  run.sets = static_cast<size_t>(std::clamp<int64_t>(ceil_div(4 * cuda::device().l2_bytes, c.floor_bytes()), 1, 8));
  std::vector<Set> sets(run.sets);
  for (Set& set : sets) {
    std::vector<char*> addresses;
    for (size_t i = 0; i < inputs.size(); ++i) {
      const int64_t bytes = inputs[i].size() * size_of(c.dtype),
                    repeats = static_cast<int>(i) < c.tiled_inputs ? tile.repeats : 1;
      std::vector<char> host(static_cast<size_t>(bytes));
      inputs[i].to_bytes(host.data());
      char* at = set.memory.emplace_back(bytes * repeats).data();
      cuda::copy_to_device(at, host.data(), bytes);
      for (int64_t r = 1; r < repeats; ++r) cuda::copy_on_device(at + r * bytes, at, bytes);
      addresses.push_back(at);
    }
    const cuda::DeviceMemory& output = set.memory.emplace_back(c.bytes_of(c.graph.outputs[0]));
    cuda::fill(output.data(), 0xff, output.bytes());  // NaN
    char* const outputs[] = {output.data()};
    set.program =
        std::make_unique<cuda::DeviceProgram>(program, unit, c.sizes, cuda::DeviceData{addresses, outputs, {}});
    set.program->run();
  }
  cuda::synchronize();
  run.launches = sets[0].program->launches();
  check(c, tile, inputs, sets[0].memory.back(), run);
  run.us = time_on_device([&](int number) { sets[static_cast<size_t>(number) % sets.size()].program->run(); }, seconds);
  return run;
}

double gbps_of(const CudaCase& c, const CudaRun& r) {
  return 1e-3 * static_cast<double>(c.floor_bytes()) / r.us.median;
}

nlohmann::json case_json(const CudaCase& c, const CudaRun& r, double roof) {
  return {{"name", c.name},
          {"sizes", c.sizes},
          {"dtype", name_of(c.dtype)},
          {"us", r.us.median},
          {"low_us", r.us.low},
          {"high_us", r.us.high},
          {"floor_bytes", c.floor_bytes()},
          {"gbps", gbps_of(c, r)},
          {"copy_share", gbps_of(c, r) / roof},
          {"nvrtc_ms", r.nvrtc_ms},
          {"kernels", r.kernels},
          {"launches", r.launches},
          {"buffer_sets", r.sets},
          {"max_abs_error", r.error},
          {"failure", r.failure},
          {"good", r.good(c)}};
}

void print_case(const CudaCase& c, const CudaRun& r, double roof) {
  fmt::print("{:<17}{:>14}{:>6}", c.name, fmt::format("{}", fmt::join(c.sizes, "x")), name_of(c.dtype));
  if (!r.failure.empty()) return fmt::print("  {}\n", r.failure);
  fmt::print("{:>10.1f}{:>22}{:>9.0f}{:>8.0f}%{:>10}{:>10.0f}{:>10.1e}{}\n", r.us.median,
             fmt::format("({:.1f} to {:.1f})", r.us.low, r.us.high), gbps_of(c, r), 100 * gbps_of(c, r) / roof,
             r.launches, r.nvrtc_ms, r.error,
             r.good(c)   ? ""
             : r.repeats ? "  WRONG"
                         : "  NOT REPEATED");
}

}  // namespace

int bench_cuda(const BenchOptions& options) {
  const cuda::Device& device = cuda::device();
  if (!cuda::nvrtc_missing().empty()) throw Error(cuda::nvrtc_missing());
  const std::vector<CudaCase> cases = cuda_cases();
  const double each = options.seconds / static_cast<double>(cases.size() + 2);
  double roof = copy_gbps(each);
  std::vector<CudaRun> runs;
  bool good = true, all = true;
  for (const CudaCase& c : cases) {
    try {
      runs.push_back(run_cuda_case(c, each));
    } catch (const Error& error) {  // the others are told all the same
      runs.emplace_back().failure = error.what();
      runs.back().us.median = std::nan("");
      all = false;
    }
    good = good && runs.back().good(c);
  }
  if (all) roof = std::max(roof, copy_gbps(each));
  if (options.json) {
    nlohmann::json list = nlohmann::json::array();
    for (size_t i = 0; i < cases.size(); ++i) list.push_back(case_json(cases[i], runs[i], roof));
    fmt::print("{}\n", nlohmann::json{{"name", "cuda"},
                                      {"device", device.name},
                                      {"arch", device.arch},
                                      {"multiprocessors", device.multiprocessors},
                                      {"driver_version", device.driver_version},
                                      {"nvrtc", cuda::nvrtc_version()},
                                      {"copy_gbps", roof},
                                      {"cases", list}}
                           .dump());
    return good ? 0 : 1;
  }
  fmt::print("{}, sm_{}, CUDA {} of the driver, NVRTC {}; a copy of 1 GiB: {:.0f} GB/s read and written\n", device.name,
             device.arch, device.driver_version, cuda::nvrtc_version(), roof);
  fmt::print("{:<17}{:>14}{:>6}{:>10}{:>22}{:>9}{:>9}{:>10}{:>10}{:>10}\n", "", "sizes", "", "us", "(10% to 90%)",
             "GB/s", "of copy", "launches", "NVRTC ms", "error");
  for (size_t i = 0; i < cases.size(); ++i) print_case(cases[i], runs[i], roof);
  return good ? 0 : 1;
}

}  // namespace ingot::cli
