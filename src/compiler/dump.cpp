#include "compiler/dump.h"

#include <algorithm>
#include <atomic>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>

#include "base/log.h"
#include "compiler/compiled_graph.h"
#include "runtime/code/disassemble.h"

namespace ingot::compiler {
namespace {

std::atomic<int> compiles{0};

}  // namespace

Dump::Dump(bool wanted) {
  const char* folder = wanted ? std::getenv("INGOT_DUMP") : nullptr;
  if (!folder || !*folder) return;
  std::error_code error;
  std::filesystem::create_directories(folder, error);
  std::string number = std::to_string(compiles++);
  number.insert(0, 3 - std::min<size_t>(number.size(), 3), '0');
  prefix_ = (std::filesystem::path(folder) / (number + "-")).string();
}

void Dump::write(const std::string& name, std::string_view bytes) const {
  if (!on()) return;
  std::ofstream file(prefix_ + name, std::ios::binary);
  file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
  if (!file.flush()) warn("INGOT_DUMP: cannot write " + prefix_ + name);
}

void Dump::write(const CompiledGraph& compiled) const {
  if (!on()) return;
  write("program.txt", compiled.explanation.str(compiled.graph, *compiled.program) + compiled.times() + "\n");
  write("steps.txt", str(*compiled.program));
  std::map<std::string, int> seen;  // different kernels may have one name
  for (const KernelPtr& kernel : compiled.kernels()) {
    std::string name = kernel->name;
    std::replace(name.begin(), name.end(), ' ', '_');
    if (int n = seen[name]++) name += "." + std::to_string(n);
    write(name + ".kir", kernel->text);
    if (kernel->code.empty()) continue;
    write(name + ".asm", runtime::disassemble(kernel->code, kernel->code_bytes));
    write(name + ".bin", {reinterpret_cast<const char*>(kernel->code.data()), kernel->code.size()});
  }
}

}  // namespace ingot::compiler
