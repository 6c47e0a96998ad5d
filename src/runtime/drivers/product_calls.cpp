#include "runtime/drivers/product_calls.h"

#include <algorithm>

namespace ingot::runtime {

KernelCall call_of(const KernelPtr& source, const BindContext& context) {
  if (!source) return {};
  const LoadedKernel& kernel = context.kernel(source);
  return {kernel.entry, kernel.context};
}

std::vector<KernelCall> calls_of(std::span<const KernelPtr> sources, const BindContext& context) {
  std::vector<KernelCall> calls;
  calls.reserve(sources.size());
  for (const KernelPtr& source : sources) calls.push_back(call_of(source, context));
  return calls;
}

RowCalls::RowCalls(const ProductKernels& kernels, const BindContext& context)
    : add_row(call_of(kernels.add_row, context)),
      add_rows(call_of(kernels.add_rows, context)),
      transposed(call_of(kernels.transposed, context)) {}

namespace {
std::vector<ProductCalls::SideBySide> side_by_side_of(const ProductKernels& kernels, const BindContext& context) {
  std::vector<ProductCalls::SideBySide> calls;
  for (const ProductKernels::SideBySide& k : kernels.side_by_side)
    calls.push_back({k.rows, k.panels, call_of(k.tile, context)});
  return calls;
}
}  // namespace

ProductCalls::ProductCalls(const ProductKernels& kernels, const Epilogue& epilogue,
                           const std::optional<LoopStep>& before, const BindContext& context)
    : tiles(calls_of(kernels.tiles, context)),
      packs(calls_of(kernels.packs, context)),
      epilogues(calls_of(epilogue.kernels, context)),
      finishing(
          calls_of(std::span(epilogue.finishing).first(std::min(tiles.size(), epilogue.finishing.size())), context)),
      wide_tiles(calls_of(kernels.wide_tiles, context)),
      finishing_last(calls_of(std::span(epilogue.finishing).subspan(finishing.size()), context)),
      side_by_side(side_by_side_of(kernels, context)),
      pack_a(call_of(kernels.pack_a, context)),
      widen(call_of(kernels.widen, context)),
      widen_rows(call_of(kernels.widen_rows, context)),
      of_row(kernels, context) {
  const std::vector<Argument>& arguments = epilogue.arguments;
  const auto first = std::find_if(arguments.begin(), arguments.end(), [](const Argument& a) { return !a.read_only; });
  if (!epilogues.empty() && first != arguments.end()) written += static_cast<size_t>(first - arguments.begin());
  for (const KernelPtr& kernel : epilogue.kernels)
    if (kernel) epilogue_scratch = std::max(epilogue_scratch, kernel->scratch_bytes);
  if (before) prologue.emplace(*before, epilogue.scalars.size(), context);
}

}  // namespace ingot::runtime
