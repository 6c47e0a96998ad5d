#include "eager/execute/execute.h"

#include <atomic>
#include <set>
#include <string>
#include <vector>

#include "base/first_use.h"
#include "base/float_environment.h"
#include "base/log.h"
#include "base/mutex.h"
#include "base/overlap.h"
#include "eager/call/call.h"
#include "eager/call/check_values.h"
#include "eager/call/infer.h"
#include "eager/data.h"

namespace ingot::eager {
namespace {

std::atomic<int64_t> pointwise_kernels{0}, programs{0}, fallbacks{0};

/// Throws Error where the elements that an in-place call writes overlap.
void check_target(const OpCall& call) {
  const detail::TensorImpl& self = *call.operands[0].tensor->impl();
  if (elements_overlap(self.sizes, self.strides))
    fail(ir::info(call.op).name, "self", "a view, several elements of which are one place in memory",
         "a tensor whose elements are places of their own, for an in-place op (clone() it first)", call.location);
}

void execute_now(const OpCall& call, std::span<const OutputMeta> metas, std::span<Tensor> outputs) {
  const ir::OpInfo& op = ir::info(call.op);
  if (op.kind == ir::OpKind::elementwise && !call.derivative && execute_pointwise(call, metas[0], outputs[0])) return;
  execute_program(call, metas, outputs);
}

/// Sources that share memory with the destination without lying at the same places are read first.
void execute_inplace(const OpCall& call, std::span<const OutputMeta> metas, std::span<Tensor> outputs) {
  check_target(call);
  const detail::TensorImpl& self = *call.operands[0].tensor->impl();
  const Extent reach = extent_of(self);  // by address: two storages may be one memory (from_blob)
  bool in_the_way = false, overwrites = ir::info(call.op).has(ir::kOverwrites);
  for (size_t i = 1; i < call.operands.size(); ++i) {
    const Operand& o = call.operands[i];
    in_the_way |= o.kind == Operand::Kind::tensor && reach.meets(extent_of(*o.tensor->impl())) &&
                  (overwrites || !same_places(self, *o.tensor->impl()));
  }
  if (!in_the_way) {
    execute_now(call, metas, outputs);
  } else {
    std::vector<Operand> operands(call.operands.begin(), call.operands.end());
    std::vector<Tensor> copies;
    copies.reserve(operands.size());
    for (size_t i = 1; i < operands.size(); ++i) {
      if (operands[i].kind != Operand::Kind::tensor || !reach.meets(extent_of(*operands[i].tensor->impl()))) continue;
      Operand source = operands[i];
      OpCall clone{OpId::clone, false, {&source, 1}, {}, call.location};
      copies.emplace_back();
      execute(clone, {&copies.back(), 1});
      operands[i].tensor = &copies.back();
    }
    OpCall safe = call;
    safe.operands = operands;
    execute_now(safe, metas, outputs);
  }
  self.storage->bump_version(reach.begin, reach.end);
  outputs[0] = *call.operands[0].tensor;
}

}  // namespace

namespace {
void execute_checked(const OpCall& call, std::span<Tensor> outputs) {
  for (const Operand& o : call.operands)
    if (o.kind == Operand::Kind::tensor && !o.tensor->impl()->storage)
      materialize(*o.tensor, ir::info(call.op).name.data(), call.location);
  OutputMeta metas[4];
  std::vector<OutputMeta> many(outputs.size() > std::size(metas) ? outputs.size() : 0);
  std::span<OutputMeta> results = many.empty() ? std::span<OutputMeta>(metas, outputs.size()) : many;
  infer_outputs(call, results);
  if (results[0].alias && !call.inplace) {
    const detail::TensorImpl& base = *call.operands[0].tensor->impl();
    outputs[0] = make_tensor(results[0].dtype, results[0].sizes, results[0].strides, results[0].offset, base.storage);
    return;
  }
  check_values(call);
  if (call.inplace)
    execute_inplace(call, results, outputs);
  else
    execute_now(call, results, outputs);
}

/// What the machine cannot do is said under the name of the op that asked for it.
[[noreturn]] void fail_resource(const OpCall& call, const std::string& reason) {
  throw Error(std::string(ir::info(call.op).name) + ": " + reason + place_of(call.location));
}
}  // namespace

void execute(const OpCall& call, std::span<Tensor> outputs) {
  const FloatEnvironment environment;
  try {
    execute_checked(call, outputs);
  } catch (const OutOfMemory& e) {
    fail_resource(call, e.what());
  } catch (const SizeOverflow& e) {
    fail_resource(call, e.what());
  } catch (const std::bad_alloc&) {
    fail_resource(call, "cannot allocate memory for its intermediate results");
  }
}

EagerStatistics eager_statistics() { return {pointwise_kernels, programs, fallbacks}; }

void statistics::count_pointwise() { ++pointwise_kernels; }
void statistics::count_program() { ++programs; }
void statistics::count_fallback(std::string_view reason) {
  static constinit Mutex mutex;
  static constinit FirstUse<std::set<std::string, std::less<>>> said;
  ++fallbacks;
  std::lock_guard lock(mutex);
  if (said->emplace(reason).second) warn("eager: falls back to the scalar executor: " + std::string(reason));
}

}  // namespace ingot::eager
