// `ingot explain NAME --target sm_90`: the same programs lowered for a GPU, and what NVRTC makes of their text.
#include <fmt/format.h>

#include <map>

#include "cli/commands.h"
#include "cli/report.h"
#include "codegen/lower.h"
#include "runtime/cuda/nvrtc.h"
#include "runtime/thread_pool.h"

namespace ingot::cli {
namespace {

/// One program as a GPU would run it.
struct DeviceProgram {
  std::string shapes;
  Program program;
  std::vector<KernelPtr> kernels;      // distinct, in order of first use
  std::vector<std::string> libraries;  // steps that a library of the device makes
  runtime::cuda::Cubin cubin;          // empty without NVRTC
  std::map<std::string, runtime::cuda::KernelResources> resources;
};

DeviceProgram lowered_for(const Explanation::Program& p, const Target& target) {
  DeviceProgram d;
  d.shapes = p.shapes;
  d.program = codegen::lower(ir::parse(p.primitives), target).program;
  for (const Step& step : d.program.steps) {
    if (!step.is<LoopStep>() && !step.is<ColumnStep>()) d.libraries.push_back(step.name);
    for_each_kernel(step, [&](const KernelPtr& kernel) {
      for (const KernelPtr& known : d.kernels)
        if (known->key == kernel->key) return;
      d.kernels.push_back(kernel);
    });
  }
  if (runtime::cuda::nvrtc_missing().empty() && !d.kernels.empty()) {
    d.cubin = runtime::cuda::compile(d.program.device_source, target.cuda_arch);
    for (const auto& k : d.cubin.kernels) d.resources[k.entry] = k;
  }
  return d;
}

nlohmann::json program_json(const DeviceProgram& d) {
  nlohmann::json kernels = nlohmann::json::array();
  for (const KernelPtr& k : d.kernels) {
    nlohmann::json kernel = {
        {"name", k->name}, {"entry", k->cuda->entry}, {"ir", k->text}, {"source", k->cuda->source}};
    if (auto it = d.resources.find(k->cuda->entry); it != d.resources.end()) {
      kernel["registers"] = it->second.registers;
      kernel["stack_bytes"] = it->second.stack_bytes;
      kernel["spill_store_bytes"] = it->second.spill_store_bytes;
      kernel["spill_load_bytes"] = it->second.spill_load_bytes;
    }
    kernels.push_back(std::move(kernel));
  }
  nlohmann::json out = {{"shapes", d.shapes},
                        {"kernels", kernels},
                        {"device_library_steps", d.libraries},
                        {"source_bytes", d.program.device_source.size()}};
  if (!d.resources.empty()) {
    out["cubin_bytes"] = d.cubin.image.size();
    out["nvrtc_ms"] = d.cubin.milliseconds;
  }
  return out;
}

void print_program(const DeviceProgram& d) {
  fmt::print("\nprogram {}: {} kernels in one unit of {} bytes, {} steps for a library of the device\n", d.shapes,
             d.kernels.size(), d.program.device_source.size(), d.libraries.size());
  for (const std::string& name : d.libraries) fmt::print("  library: {}\n", name);
  if (!d.resources.empty()) {
    fmt::print("  NVRTC {}: {:.0f} ms, a cubin of {} bytes\n", runtime::cuda::nvrtc_version(), d.cubin.milliseconds,
               d.cubin.image.size());
    fmt::print("  {:<58}{:>10}{:>8}{:>8}{:>8}\n", "kernel", "registers", "stack", "spilled", "reload");
    for (const KernelPtr& k : d.kernels)
      if (auto it = d.resources.find(k->cuda->entry); it != d.resources.end())
        fmt::print("  {:<58}{:>10}{:>8}{:>8}{:>8}\n", it->first, it->second.registers, it->second.stack_bytes,
                   it->second.spill_store_bytes, it->second.spill_load_bytes);
  }
  for (const KernelPtr& k : d.kernels) fmt::print("\n{}", k->cuda->source);
}

}  // namespace

int run_explain_cuda(const CommonOptions& options, const std::string& name, int arch) {
  if (options.threads) set_num_threads(options.threads);
  Target target;
  target.cuda_arch = arch;
  std::vector<DeviceProgram> programs;
  const Explanation explanation = explanation_of(name, options.data, 0);
  for (const Explanation::Program& p : explanation.programs) programs.push_back(lowered_for(p, target));
  const std::string& missing = runtime::cuda::nvrtc_missing();
  if (options.json) {
    nlohmann::json list = nlohmann::json::array();
    for (const DeviceProgram& d : programs) list.push_back(program_json(d));
    nlohmann::json out = {{"name", name}, {"target", target.str()}, {"programs", list}};
    out["nvrtc"] = missing.empty() ? nlohmann::json(runtime::cuda::nvrtc_version()) : nlohmann::json();
    if (!missing.empty()) out["nvrtc_missing"] = missing;
    fmt::print("{}\n", out.dump());
    return 0;
  }
  fmt::print("{} for {}{}\n", name, target.str(), missing.empty() ? "" : "; not compiled: " + missing);
  for (const DeviceProgram& d : programs) print_program(d);
  return 0;
}

}  // namespace ingot::cli
