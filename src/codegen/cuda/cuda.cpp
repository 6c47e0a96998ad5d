#include "codegen/cuda/cuda.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "base/hash.h"
#include "codegen/cuda/printer.h"
#include "codegen/generate.h"

namespace ingot::codegen::cuda {
namespace {

/// A name for C++, the same for the same kernel in every program.
std::string entry_name(const std::string& name, const std::string& key) {
  std::string entry;
  for (char c : name.substr(0, 40)) entry += std::isalnum(static_cast<unsigned char>(c)) ? c : '_';
  if (entry.empty() || std::isdigit(static_cast<unsigned char>(entry[0]))) entry = "k" + entry;
  return fmt::format("{}_{:016x}", entry, hash_text(key));
}

}  // namespace

KernelPtr generate(const Kernel& kernel, const Target& target, const std::string& name, int outer) {
  auto out = std::make_shared<KernelSource>();
  out->text = print(kernel);
  out->key = kernel_key(out->text, target, outer);
  out->name = name;
  Mapping mapping = map_kernel(kernel, outer);
  // The architecture is not in the text: one text serves them all.
  auto text = std::make_shared<CudaText>();
  text->entry = entry_name(name, fmt::format("outer {}\n{}", outer, out->text));
  text->source = print(kernel, mapping, text->entry);
  text->mapping = mapping.launch;
  out->cuda = std::move(text);
  return out;
}

std::string translation_unit(std::span<const KernelPtr> kernels) {
  std::string unit = prelude();
  std::set<std::string> seen;
  for (const KernelPtr& kernel : kernels)
    if (kernel && kernel->cuda && seen.insert(kernel->cuda->entry).second) unit += "\n" + kernel->cuda->source;
  return unit;
}

std::string translation_unit(const Program& program) {
  std::vector<KernelPtr> kernels;
  for (const Step& step : program.steps)
    for_each_kernel(step, [&](const KernelPtr& kernel) { kernels.push_back(kernel); });
  return translation_unit(kernels);
}

}  // namespace ingot::codegen::cuda
