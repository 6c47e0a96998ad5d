// Ops that are more than one elementwise kernel: a graph of one op through the whole compiler, once for each key.
#include <algorithm>
#include <atomic>
#include <cstring>
#include <unordered_map>
#include <utility>
#include <vector>

#include "base/first_use.h"
#include "base/hash.h"
#include "base/mutex.h"
#include "base/thread_object.h"
#include "compiler/compiler.h"
#include "eager/call/call.h"
#include "eager/call/infer.h"
#include "eager/call/tensor_guard.h"
#include "eager/data.h"
#include "eager/execute/execute.h"
#include "eager/execute/numerics.h"
#include "ir/graph.h"
#include "runtime/steps/host_steps.h"

namespace ingot::eager {
namespace {

#define OP_host(name, ...) static_assert(runtime::has_host_step(#name), "the host op has no step: " #name);
#include "ir/ops.def"

/// Sizes below this are constants of a program, the others symbols: short rows, windows and head counts get code of
/// their own.
constexpr int64_t kSymbolFrom = 17;

enum StrideCode : int64_t { kZero, kOne, kDense, kFree };

/// A call as structure and numbers: calls with equal words run the same program with their own values.
struct Signature {
  std::vector<int64_t> words;
  std::vector<int64_t> values;  // of the symbols, in order
  std::vector<int64_t> sizes;   // values of the symbols that are sizes; equal sizes share a symbol
  std::vector<int64_t> size_symbols;

  /// Below kSymbolFrom the size itself, else kSymbolFrom + the number of its symbol.
  int64_t size(int64_t v) {
    if (v < kSymbolFrom) return v;
    for (size_t i = 0; i < sizes.size(); ++i)
      if (sizes[i] == v) return kSymbolFrom + size_symbols[i];
    sizes.push_back(v);
    size_symbols.push_back(static_cast<int64_t>(values.size()));
    values.push_back(v);
    return kSymbolFrom + size_symbols.back();
  }
  void clear() { words.clear(), values.clear(), sizes.clear(), size_symbols.clear(); }
};

void sign_tensor(Signature& s, const detail::TensorImpl& t) {
  s.words.push_back(static_cast<int64_t>(TensorFacts(t.dtype, t.sizes.size()).word()));  // (a tape changes no program)
  for (int64_t n : t.sizes) s.words.push_back(s.size(n));
  int64_t dense = 1;
  for (size_t d = t.sizes.size(); d-- > 0;) {
    int64_t stride = t.strides[d], code = kFree;
    if (t.sizes[d] <= 1 || stride == dense)
      code = kDense;
    else if (stride == 0)
      code = kZero;
    else if (stride == 1)
      code = kOne;
    else
      s.values.push_back(stride);
    s.words.push_back(code);
    dense *= t.sizes[d];
  }
}

void sign(Signature& s, const OpCall& call, const Target& target) {
  s.clear();
  s.words.push_back(reinterpret_cast<int64_t>(call.derivative));
  s.words.push_back(static_cast<int64_t>(call.op) << 32 | static_cast<int64_t>(call.operands.size()) << 8 |
                    static_cast<int64_t>(target.isa) << 1 | static_cast<int64_t>(target.bf16_dot));
  for (const Operand& o : call.operands) {
    s.words.push_back(static_cast<int64_t>(o.special) << 16 | static_cast<int64_t>(o.kind) << 8 |
                      static_cast<int64_t>(o.category));
    if (o.kind == Operand::Kind::tensor) sign_tensor(s, *o.tensor->impl());
  }
  const ir::OpInfo& op = ir::info(call.op);
  for (size_t i = 0; i < call.attrs.size(); ++i) {
    const ir::Attr& a = call.attrs[i];
    const bool sizes = ir::holds_sizes(op, i);
    s.words.push_back(static_cast<int64_t>(a.kind) << 32 | static_cast<int64_t>(a.list.size()));
    s.words.push_back(a.integer);
    for (Dim d : a.list) s.words.push_back(sizes ? s.size(d.code) : d.code);
  }
}

struct Compiled {
  compiler::ReadyProgram program;
  /// Symbols that a rule pinned to one value (the sizes of a convolution's kernel): by number, as it was.
  std::vector<std::pair<size_t, int64_t>> pinned;
  bool holds(std::span<const int64_t> symbols) const {
    for (const auto& [number, value] : pinned)
      if (symbols[number] != value) return false;
    const DimTable& dims = program.compiled->program->dims;
    if (dims.guards().empty()) return true;
    std::vector<int64_t> values = dims.evaluate(symbols);
    for (const DimGuard& g : dims.guards())
      if (!dims.holds(g, values)) return false;
    return true;
  }
};

/// The programs of one structure; more than one where a decision depended on the sizes.
struct Entry {
  std::vector<int64_t> words;
  std::vector<std::shared_ptr<const Compiled>> variants;
  std::atomic<uint64_t> last_use{0};  // Table::inserted then
};

/// All one-op programs of the process. Small sizes are constants of them, so there is no end to their number: past the
/// bound, the half that was not used for the longest goes.
class Table {
 public:
  static Table& instance() {
    static constinit FirstUse<Table> table;
    return *table;
  }
  std::shared_ptr<const Compiled> find(const Signature& s) {
    std::shared_lock lock(mutex_);
    return variant(seek(hash_ints(s.words), s), s);
  }
  std::shared_ptr<const Compiled> insert(const Signature& s, std::shared_ptr<const Compiled> made) {
    std::unique_lock lock(mutex_);
    const uint64_t hash = hash_ints(s.words);
    Entry* entry = seek(hash, s);
    if (auto found = variant(entry, s)) return found;  // another thread was first
    ++inserted_;
    if (programs_ >= kMostEagerPrograms) drop_older_half(), entry = seek(hash, s);
    if (!entry) {
      entry = entries_[hash].emplace_back(std::make_unique<Entry>()).get();
      entry->words = s.words;
    }
    entry->last_use.store(inserted_, std::memory_order_relaxed);
    if (entry->variants.size() >= kMostVariants) programs_ -= std::exchange(entry->variants, {}).size();
    entry->variants.push_back(made);
    ++programs_;
    return made;
  }
  EagerProgramFigures figures() {
    std::shared_lock lock(mutex_);
    return {static_cast<int64_t>(programs_), evictions_};
  }
  void clear() {
    std::unique_lock lock(mutex_);
    entries_.clear();
    programs_ = 0;
  }

 private:
  static constexpr size_t kMostVariants = 64;

  Entry* seek(uint64_t hash, const Signature& s) const {
    auto bucket = entries_.find(hash);
    if (bucket == entries_.end()) return nullptr;
    for (auto& entry : bucket->second)
      if (entry->words == s.words) return entry.get();
    return nullptr;
  }
  std::shared_ptr<const Compiled> variant(Entry* entry, const Signature& s) const {
    if (!entry) return nullptr;
    for (const auto& v : entry->variants)
      if (v->holds(s.values)) {
        if (entry->last_use.load(std::memory_order_relaxed) != inserted_)
          entry->last_use.store(inserted_, std::memory_order_relaxed);
        return v;
      }
    return nullptr;
  }
  void drop_older_half() {
    std::vector<uint64_t> uses;
    for (const auto& [hash, bucket] : entries_)
      for (const auto& entry : bucket) uses.push_back(entry->last_use);
    auto middle = uses.begin() + static_cast<std::ptrdiff_t>(uses.size() / 2);
    std::nth_element(uses.begin(), middle, uses.end());
    const uint64_t last = *middle;
    for (auto bucket = entries_.begin(); bucket != entries_.end();) {
      std::erase_if(bucket->second, [&](const std::unique_ptr<Entry>& entry) {
        if (entry->last_use > last) return false;
        programs_ -= entry->variants.size();
        evictions_ += static_cast<int64_t>(entry->variants.size());
        return true;
      });
      bucket = bucket->second.empty() ? entries_.erase(bucket) : std::next(bucket);
    }
  }

  SharedMutex mutex_;
  std::unordered_map<uint64_t, std::vector<std::unique_ptr<Entry>>> entries_;  // by hash of the words
  size_t programs_ = 0;
  uint64_t inserted_ = 0;
  int64_t evictions_ = 0;
};

ir::Graph graph_of(const OpCall& call, const Signature& s, std::span<const std::pair<size_t, int64_t>> pinned) {
  ir::Graph graph;
  DimTable& dims = graph.dims;
  std::vector<Dim> symbols;
  for (int64_t v : s.values) symbols.push_back(dims.symbol(v));
  for (const auto& [number, value] : pinned) symbols[number] = Dim(value);
  size_t at = 2, next_free = 0;
  auto size = [&](int64_t word) { return word < kSymbolFrom ? Dim(word) : symbols[word - kSymbolFrom]; };
  // Free strides are the symbols that are no size, in order.
  std::vector<bool> is_size(s.values.size(), false);
  for (int64_t number : s.size_symbols) is_size[number] = true;
  auto free_stride = [&] {
    while (is_size[next_free]) ++next_free;
    return symbols[next_free++];
  };
  std::vector<ir::Operand> operands;
  for (const Operand& o : call.operands) {
    ++at;
    if (o.kind == Operand::Kind::none) {
      operands.push_back(ir::Operand::none());
    } else if (o.kind == Operand::Kind::scalar) {
      operands.push_back(scalar_operand(graph, o));
    } else {
      const detail::TensorImpl& t = *o.tensor->impl();
      size_t rank = t.sizes.size();
      ++at;
      Dims shape, strides(rank);
      for (size_t d = 0; d < rank; ++d) shape.push_back(size(s.words[at++]));
      Dim dense = 1;
      for (size_t d = rank; d-- > 0;) {
        int64_t code = s.words[at++];
        strides[d] = code == kDense ? dense : code == kZero ? Dim(0) : code == kOne ? Dim(1) : free_stride();
        dense = dims.mul(dense, shape[d]);
      }
      operands.push_back(ir::Operand::value(graph.add_input(t.dtype, std::move(shape), std::move(strides))));
    }
  }
  std::vector<ir::Attr> attrs(call.attrs.begin(), call.attrs.end());
  for (size_t i = 0; i < attrs.size(); ++i) {
    ir::Attr& a = attrs[i];
    at += 2;
    const bool sizes = ir::holds_sizes(ir::info(call.op), i);
    for (Dim& d : a.list) {
      int64_t word = s.words[at++];
      if (sizes) d = size(word);
    }
  }
  graph.add(call.op, std::move(operands), std::move(attrs), call.location, false, call.derivative);
  graph.outputs = graph.nodes.back().outputs;
  return graph;
}

std::shared_ptr<const Compiled> compile_call(const OpCall& call, const Signature& s, const Target& target) {
  auto compiled = std::make_shared<Compiled>();
  ir::Graph graph = graph_of(call, s, {});
  for (const DimGuard& guard : graph.dims.guards()) {
    if (guard.relation != DimGuard::Relation::equal || guard.a.is_constant() == guard.b.is_constant()) continue;
    const Dim symbol = guard.a.is_constant() ? guard.b : guard.a, value = guard.a.is_constant() ? guard.a : guard.b;
    for (size_t i = 0; i < s.values.size(); ++i)
      if (graph.dims.symbol_dim(static_cast<int64_t>(i)) == symbol) compiled->pinned.emplace_back(i, value.code);
  }
  if (!compiled->pinned.empty()) graph = graph_of(call, s, compiled->pinned);
  std::string reason;
  compiled->program = compiler::compile_or_interpret(std::move(graph), {.level = {target}, .one_op = true}, &reason);
  if (!reason.empty()) statistics::count_fallback(std::string(ir::info(call.op).name) + ": " + reason);
  statistics::count_program();
  return compiled;
}

std::shared_ptr<const Compiled> find(const OpCall& call, const Signature& s, const Target& target) {
  if (auto found = Table::instance().find(s)) return found;
  return Table::instance().insert(s, compile_call(call, s, target));
}

bool all_empty(std::span<const OutputMeta> metas) {
  for (const OutputMeta& m : metas)
    if (count(m.sizes) != 0) return false;
  return true;
}

void run_program(const OpCall& call, std::span<void* const> results, bool in_place = false) {
  constinit thread_local ThreadObject<Signature> mine;
  Signature& s = *mine;
  const Target target = code_level().target;
  sign(s, call, target);
  const std::shared_ptr<const Compiled> compiled = find(call, s, target);

  SmallVector<void*, 8> inputs;
  SmallVector<uint64_t, 8> scalars;
  for (const Operand& o : call.operands) {
    if (o.kind == Operand::Kind::tensor) inputs.push_back(data_of(*o.tensor->impl()));
    if (o.kind == Operand::Kind::scalar && !o.special)
      scalars.push_back(o.category == Category::floating ? std::bit_cast<uint64_t>(o.number)
                                                         : static_cast<uint64_t>(o.integer));
  }
  runtime::BoundProgramPtr bound = compiled->program.loaded->bind(s.values);
  compiled->program.loaded->run(*bound, {{inputs.data(), inputs.size()}, {}, results, {scalars.data(), scalars.size()}},
                                in_place);
}

/// True if an in-place call's result can be made where self lies: it has self's dtype and order in memory.
bool writes_over_self(const OpCall& call) {
  if (!call.inplace || !ir::info(call.op).has(ir::kOverwrites) || !call.operands[0].tensor->is_contiguous())
    return false;
  OpCall apart = call;
  apart.inplace = false;
  OutputMeta result;
  infer_outputs(apart, {&result, 1});
  return result.dtype == call.operands[0].tensor->impl()->dtype;
}

/// Where there is no kernel for a view: of more dims than kernels go through, or as fusion is left out.
void copy_elements(Tensor from, const Tensor& to, Location location) {
  const detail::TensorImpl& target = *to.impl();
  if (from.impl()->dtype != target.dtype) {
    const Tensor given = from;
    Operand operands[] = {Operand(given)};
    const ir::Attr attrs[] = {ir::Attr::of(target.dtype)};
    execute({OpId::cast, false, operands, attrs, location}, {&from, 1});
  }
  INGOT_CHECK(from.is_contiguous(), "a result that was just made is contiguous");
  const int64_t bytes = size_of(target.dtype);
  const char* next = data_of(*from.impl());
  for_each_offset(target, [&](int64_t offset) {
    std::memcpy(data_of(target) + offset * bytes, next, static_cast<size_t>(bytes));
    next += bytes;
  });
}

}  // namespace

EagerProgramFigures eager_program_figures() { return Table::instance().figures(); }
void clear_eager_programs() { Table::instance().clear(); }

void execute_program(const OpCall& call, std::span<const OutputMeta> metas, std::span<Tensor> outputs) {
  if (writes_over_self(call)) {
    OpCall apart = call;
    apart.inplace = false;
    void* self = data_of(*call.operands[0].tensor->impl());
    if (!all_empty(metas)) run_program(apart, {&self, 1}, true);
    return;
  }
  if (call.inplace) {
    OpCall apart = call;
    apart.inplace = false;
    Tensor result;
    execute(apart, {&result, 1});
    Operand operands[] = {call.operands[0], Operand(result)};
    if (!execute_pointwise({OpId::copy, true, operands, {}, call.location}, metas[0], outputs[0]))
      copy_elements(result, outputs[0] = *call.operands[0].tensor, call.location);
    return;
  }
  for (size_t i = 0; i < metas.size(); ++i) outputs[i] = make_empty(metas[i].dtype, metas[i].sizes);
  if (all_empty(metas)) return;
  SmallVector<void*, 4> results;
  for (const Tensor& t : outputs) results.push_back(data_of(*t.impl()));
  run_program(call, {results.data(), results.size()});
}

}  // namespace ingot::eager
