#include "cli/memory_bench.h"

#include <fmt/format.h>
#include <unistd.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "cli/zoo.h"

namespace ingot::cli {
namespace {

/// As the system counts it, without what is kept for later.
int64_t resident() {
  trim_memory();
  return memory_stats().resident_bytes;
}

/// A file of a model's weights, while it lives.
struct WeightsFile {
  const std::string path =
      (std::filesystem::temp_directory_path() / ("ingot_memory_" + std::to_string(getpid()) + ".safetensors")).string();
  int64_t bytes = 0;
  explicit WeightsFile(const ZooRow& row) {
    const StateDict state = row.make(nullptr).module->state_dict();
    for (const auto& [name, t] : state) bytes += t.nbytes();
    save(state, path);
  }
  ~WeightsFile() { std::filesystem::remove(path); }
};

struct Held {
  int64_t resident, packed;
};
/// What a frozen model adds to the process whose weights are the pages of a mapped file.
Held held(const ZooRow& row, const WeightsFile& file, bool pack_weights_only) {
  clear_caches();
  const int64_t before = resident();
  const ZooModel model = [&] {
    const nn::SkipInit skip;
    return row.make(nullptr);
  }();
  model.module->load_state_dict(load(file.path), {.assign = true});
  model.module->eval();
  const auto fast = compile(model.forward, {.mode = CompileMode::frozen, .pack_weights_only = pack_weights_only});
  const Inputs inputs = model.example(1, 0);
  for (int call = 0; call < 6; ++call) (void)fast(inputs);
  return {resident() - before, memory_stats().packed_bytes};
}

}  // namespace

int bench_memory(const BenchOptions& options) {
  constexpr double kMiB = 1 << 20;
  nlohmann::json rows = nlohmann::json::array();
  if (!options.json)
    fmt::print(
        "resident MiB of a frozen model over a mapped file, and of its weights alone\n{:<20}{:>10}{:>10}{:>10}{:>8}"
        "{:>24}\n",
        "", "weights", "packed", "held", "x", "pack_weights_only    x");
  for (const char* name : {"mobilenet_v2", "resnet18", "resnet50", "vit", "bert", "llama"}) {
    const ZooRow& row = *find_zoo_row(name);
    const WeightsFile file(row);
    const Held plain = held(row, file, false), packed_only = held(row, file, true);
    const auto weights = static_cast<double>(file.bytes);
    const double ratio = static_cast<double>(plain.resident) / weights,
                 packed_ratio = static_cast<double>(packed_only.resident) / weights;
    rows.push_back({{"name", name},
                    {"weights_bytes", file.bytes},
                    {"packed_bytes", plain.packed},
                    {"resident_bytes", plain.resident},
                    {"resident_of_weights", ratio},
                    {"resident_bytes_packed_only", packed_only.resident},
                    {"resident_of_weights_packed_only", packed_ratio}});
    if (!options.json)
      fmt::print("{:<20}{:>10.1f}{:>10.1f}{:>10.1f}{:>8.2f}{:>18.1f}{:>6.2f}\n", name, weights / kMiB,
                 static_cast<double>(plain.packed) / kMiB, static_cast<double>(plain.resident) / kMiB, ratio,
                 static_cast<double>(packed_only.resident) / kMiB, packed_ratio);
  }
  if (options.json)
    fmt::print("{}\n", nlohmann::json{{"name", "memory"}, {"threads", num_threads()}, {"rows", rows}}.dump());
  return 0;
}

}  // namespace ingot::cli
