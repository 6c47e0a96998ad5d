#include "trace/flush_point.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <numeric>
#include <unordered_map>

#include "runtime/bound_program.h"
#include "runtime/memory/donation.h"
#include "runtime/thread_pool.h"

namespace ingot::trace {
namespace {

// "operand self of add": where a tensor from outside is first used.
std::string use_of(const Node& node, const SlotRecord& slot) {
  size_t i = 0;
  while (node.operands[i].kind != OperandRecord::Kind::slot || node.operands[i].id != slot.slot) ++i;
  return "operand " + ir::name_of_operand(node.op, node.derivative, i) + " of " +
         ir::name_of_call(node.op, node.derivative);
}

template <class Visit>
void for_each_site(std::span<Node* const> path, Visit visit) {
  for (const Node* node : path) {
    for (const SlotRecord& slot : node->slots) {
      auto text = [&](const char* what, size_t i) {
        return [&slot, node, what, i] {
          return SiteDescription{what + std::to_string(i) + " of " + use_of(*node, slot), node};
        };
      };
      for (size_t i = 0; i < slot.sizes.size(); ++i) visit(slot.sizes[i], text("size ", i));
      for (size_t i = 0; i < slot.classes.size(); ++i)
        if (slot.classes[i] == eager::kStrideFree) visit(slot.strides[i], text("stride ", i));
    }
    for (size_t i = 0; i < node->attrs.size(); ++i)
      if (i < 64 && node->size_attrs >> i & 1)
        for (Dim size : node->attrs[i].list)
          visit(size.code, [&] {
            return SiteDescription{"argument " + ir::name_of_attribute(node->op, i) + " of " +
                                       ir::name_of_call(node->op, node->derivative),
                                   node};
          });
  }
}

}  // namespace

uint64_t FlushPoint::next_id() {
  static std::atomic<uint64_t> latest{0};
  return latest.fetch_add(1, std::memory_order_relaxed) + 1;
}

bool Variant::bind_to(std::span<const int64_t> now) {
  std::vector<int64_t> met(static_cast<size_t>(symbol_count), -1);
  for (size_t i = 0; i < sites.size(); ++i) {
    int32_t symbol = symbol_of[i];
    int64_t& expected = symbol < 0 ? sites[i] : met[static_cast<size_t>(symbol)];
    if (expected < 0 && symbol >= 0) expected = now[i];
    if (expected != now[i]) return false;
  }
  if (!entry) return true;
  runtime::BoundProgramPtr program = entry->loaded->bind_where_it_holds(met);
  if (!program) return false;
  symbols = std::move(met);
  use(std::move(program));
  return true;
}

bool Variant::bind_if_ready() {
  if (!entry || (bound && bound->threads == num_threads())) return true;
  if (!entry->ready.load(std::memory_order_acquire)) return false;
  if (entry->failure.empty()) {
    leave_to_recipes();
    grant_direct_writes();
    use(entry->loaded->bind(symbols));
  } else {
    fallback = entry->failure;
    entry = nullptr;
  }
  return true;
}

// All of it or, where there is no memory for it, nothing.
void Variant::leave_to_recipes() {
  if (left_to_recipes_) return;
  const std::vector<ir::Recipe>& recipes = entry->compiled->recipes;
  SegmentBinding left{binding.input_slots, {}, {}, {}, binding.host_checks};
  std::vector<uint32_t> number;
  std::vector<size_t> recipe_of(binding.outputs.size(), recipes.size());
  for (size_t r = 0; r < recipes.size(); ++r) recipe_of[recipes[r].output] = r;
  for (size_t i = 0; i < binding.outputs.size(); ++i) {
    number.push_back(static_cast<uint32_t>(left.outputs.size()));
    if (recipe_of[i] == recipes.size()) left.outputs.push_back(binding.outputs[i]);
  }
  for (LiveValue value : binding.live) {
    if (!value.external && recipe_of[value.number] < recipes.size()) {
      left.deferred.push_back({value.value, recipe_of[value.number]});
      continue;
    }
    if (!value.external) value.number = number[value.number];
    left.live.push_back(value);
  }
  // For the recipes alone.
  left.outputs.resize(entry->compiled->graph.outputs.size(), {.number = ir::kNoValue, .unseen = true});
  binding = std::move(left);
  left_to_recipes_ = true;
}

void Variant::bind_recipes(const runtime::BoundProgram& program) {
  const compiler::CompiledGraph& compiled = *entry->compiled;
  auto value_of = [&](Dim d) { return DimTable::value_of(d, program.values); };
  recipes.clear();
  recipes_read.assign(compiled.recipes.empty() ? 0 : binding.outputs.size(), {});
  for (const ir::Recipe& recipe : compiled.recipes) {
    BoundRecipe& made = recipes.emplace_back();
    auto ops = std::make_shared<autograd::DeferredOps>(recipe.nodes);
    for (ir::Node& node : *ops) {
      for (ir::Attr& attr : node.attrs)
        for (Dim& d : attr.list) d = value_of(d);
      for (ir::Operand& o : node.operands) {
        if (o.kind == ir::Operand::Kind::size) o.dim = value_of(o.dim);
        if (o.kind != ir::Operand::Kind::scalar) continue;
        made.scalars.push_back(o.id);
        o.id = static_cast<uint32_t>(made.scalars.size() - 1);
      }
    }
    made.ops = std::move(ops);
    for (uint32_t output : recipe.from) {
      const ir::TensorType& type = compiled.graph.type(compiled.graph.outputs[output]);
      eager::OutputMeta& meta = recipes_read[output];
      meta.dtype = type.dtype;
      meta.sizes.clear();
      for (Dim d : type.shape) meta.sizes.push_back(value_of(d));
      meta.strides = binding.outputs[output].strides(meta.sizes);
    }
  }
}

void Variant::grant_direct_writes() {
  std::unordered_map<uint32_t, uint32_t> input_of;  // slot
  for (uint32_t i = 0; i < binding.input_slots.size(); ++i) input_of.emplace(binding.input_slots[i], i);
  auto is = [](OutputTarget::Kind kind) { return [kind](const OutputTarget& target) { return target.kind == kind; }; };
  if (std::ranges::none_of(binding.outputs, is(OutputTarget::Kind::write_back))) return;
  // What a program finds wrong it finds once it runs: nothing is to be written by then.
  const bool checks = std::ranges::any_of(binding.outputs, is(OutputTarget::Kind::failed));
  // Nor may it run out of memory on the way, which functions of matrices take as they run.
  const Program& program = *entry->compiled->program;
  const bool allocates = std::ranges::any_of(program.steps, [](const Step& step) {
    const auto* host = std::get_if<HostStep>(&step.work);
    return host && host->products;
  });
  const runtime::Donations donations(program);
  std::vector<Write> writes;
  for (uint32_t i = 0; i < binding.outputs.size(); ++i) {
    OutputTarget& target = binding.outputs[i];
    if (target.kind != OutputTarget::Kind::write_back) continue;
    Write& write = writes.emplace_back();
    write.output = i;
    const auto input = input_of.find(target.number);
    if (input != input_of.end()) write.input = input->second;
    if (target.apart) {
      write.apart = "another tensor from outside is a view of its memory";
    } else if (checks) {
      write.apart = "the program may still refuse a value after it is written";
    } else if (allocates) {
      write.apart = "a function of matrices may find no memory after it is written";
      target.donated = false;
    } else if (!target.donated) {
      write.apart = input == input_of.end() ? "it is no input" : donations.refusal(i, input->second);
      target.donated = write.apart.empty();
    }
  }
  entry->note_writes(std::move(writes));
}

void Variant::use(runtime::BoundProgramPtr program) {
  bound = {};  // until all that follows from it is there
  for (size_t i = 0; i < binding.outputs.size(); ++i)
    if (binding.outputs[i].unseen) binding.outputs[i].order = entry->compiled->output_orders[i];
  output_bytes.clear();
  for (Dim bytes : entry->compiled->output_bytes) output_bytes.push_back(DimTable::value_of(bytes, program->values));
  bind_recipes(*program);
  bound = std::move(program);
}

Ints OutputTarget::strides(const Ints& sizes) const {
  Ints strides(sizes.size(), 1);
  int64_t stride = 1;
  for (size_t i = order.size(); i-- > 0;) {
    strides[order[i]] = stride;
    stride *= sizes[order[i]];
  }
  return strides;
}

void collect_sites(std::span<Node* const> path, std::vector<int64_t>& sites) {
  sites.clear();
  for_each_site(path, [&](int64_t value, auto&&) { sites.push_back(value); });
}

SiteDescription describe_site(std::span<Node* const> path, size_t site) {
  SiteDescription text;
  size_t i = 0;
  for_each_site(path, [&](int64_t, auto&& describe) {
    if (i++ == site) text = describe();
  });
  return text;
}

std::vector<int32_t> assign_symbols(std::span<const std::vector<int64_t>> history, int* count) {
  std::map<std::vector<int64_t>, int32_t> symbols;
  std::vector<int32_t> symbol_of(history[0].size(), -1);
  for (size_t i = 0; i < symbol_of.size(); ++i) {
    std::vector<int64_t> values;
    bool varies = false;
    for (const auto& sites : history) {
      values.push_back(sites[i]);
      varies = varies || sites[i] != history[0][i];
    }
    // Of an empty tensor everything is a view: a symbol would hold what is true of no other size.
    if (varies && values.back() != 0)
      symbol_of[i] = symbols.try_emplace(std::move(values), static_cast<int32_t>(symbols.size())).first->second;
  }
  *count = static_cast<int>(symbols.size());
  return symbol_of;
}

bool pin_symbols(const DimTable& dims, std::span<const int64_t> sites, std::vector<int32_t>& symbol_of, int* count) {
  const std::vector<int64_t> becomes = dims.pinned_symbols();
  bool changed = false;
  for (size_t i = 0; i < becomes.size(); ++i) changed = changed || becomes[i] != static_cast<int64_t>(i);
  if (!changed) return false;
  // Numbered anew, in order of the sites.
  std::map<int64_t, int32_t> numbers;
  for (size_t i = 0; i < sites.size(); ++i) {
    if (symbol_of[i] < 0) continue;
    const int64_t s = becomes[static_cast<size_t>(symbol_of[i])];
    symbol_of[i] = s < 0 ? -1 : numbers.try_emplace(s, static_cast<int32_t>(numbers.size())).first->second;
  }
  *count = static_cast<int>(numbers.size());
  return true;
}

}  // namespace ingot::trace
