#include "trace/dump.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>

#include "base/log.h"
#include "trace/compile_graph.h"

namespace ingot::trace {
namespace {

std::atomic<int> compiles{0};

void write(const std::filesystem::path& path, std::string_view bytes) {
  std::ofstream file(path, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) warn("INGOT_DUMP: cannot write " + path.string());
}

}  // namespace

void dump(const CompiledGraph& compiled) {
  const char* folder = std::getenv("INGOT_DUMP");
  if (!folder || !*folder) return;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  std::string number = std::to_string(compiles++);
  std::string prefix = std::string(3 - std::min<size_t>(number.size(), 3), '0') + number + "-";
  auto path = [&](const std::string& name) { return std::filesystem::path(folder) / (prefix + name); };
  write(path("traced.ir"), compiled.traced_text());
  write(path("primitives.ir"), ir::print(compiled.graph()));
  write(path("program.txt"), compiled.explanation().str(compiled.graph(), compiled.program()));
  for (const KernelPtr& kernel : compiled.kernels()) {
    std::string name = kernel->name;
    std::replace(name.begin(), name.end(), ' ', '_');
    write(path(name + ".kir"), kernel->text);
    if (!kernel->code.empty())
      write(path(name + ".bin"), {reinterpret_cast<const char*>(kernel->code.data()), kernel->code.size()});
  }
}

}  // namespace ingot::trace
