#include "trace/build_graph.h"

#include <algorithm>
#include <numeric>

#include "base/error.h"
#include "eager/call/call.h"
#include "trace/graph_checks.h"
#include "trace/write_back.h"

namespace ingot::trace {
namespace {

using Kind = OperandRecord::Kind;

// The memory behind a tensor from outside or a result, and its value at this point of the path.
struct Root {
  uint32_t slot = ir::kNoValue;  // from outside
  uint32_t value = 0;            // else: made by this value of the record
  ir::ValueId current = ir::kNoValue;
  int64_t generation = 0;         // number of writes so far
  SmallVector<int64_t, 6> order;  // its dims from the outermost in memory
  ir::Layout layout;              // as if it were dense in that order
  int64_t counter = -1;           // the node of the path, if it counts
  bool read = false;              // an op saw what it held at the start
  bool written = false;
  bool elsewhere = false;  // other slots look at this memory differently
};

// A tensor of the record: a root, or a view of another tensor.
struct Alias {
  uint32_t root = 0;
  int32_t parent = -1;         // alias; -1: it is its root
  const Node* view = nullptr;  // how it is derived from the parent
  std::vector<ir::Attr> attrs;
  ir::ValueId current = ir::kNoValue;
  int64_t generation = -1;
  ir::Layout layout;
};

class Builder {
 public:
  explicit Builder(const BuildRequest& request) : request_(request) {}

  BuiltGraph build() {
    for (int s = 0; s < request_.symbol_count; ++s) built_.symbols.push_back(hinted_symbol(s));
    for (size_t i = 0; i < request_.path.size(); ++i) {
      node_number_ = i;
      add(*request_.path[i]);
    }
    add_outputs();
    add_flags();
    return std::move(built_);
  }

 private:
  ir::Graph& graph() { return built_.graph; }
  DimTable& dims() { return built_.graph.dims; }

  Dim hinted_symbol(int symbol) {
    for (size_t i = 0; i < request_.sites.size(); ++i)
      if (request_.symbol_of[i] == symbol) return dims().symbol(request_.sites[i]);
    INGOT_CHECK(false, "a symbol without a site");
    return 0;
  }
  Dim next_site() {
    size_t i = next_site_++;
    return request_.symbol_of[i] < 0 ? Dim(request_.sites[i]) : built_.symbols[request_.symbol_of[i]];
  }

  // Dims from the outermost in memory, as the guarded class of the strides has them: what holds for the strides of this
  // call alone, as among dims of size 0 or 1, must not decide.
  static SmallVector<int64_t, 6> memory_order(const SlotRecord& slot) {
    const size_t rank = slot.sizes.size();
    Ints assumed = slot.strides;
    for (size_t i = 0; i < rank; ++i)
      if (slot.classes[i] == eager::kStrideOne) assumed[i] = 1;
    for (size_t round = 0; round < rank; ++round)
      for (size_t i = 0; i < rank; ++i)
        if (slot.classes[i] < rank) {
          const size_t inner = slot.classes[i];
          if (__builtin_mul_overflow(assumed[inner], std::max<int64_t>(slot.sizes[inner], 2), &assumed[i]))
            assumed[i] = INT64_MAX;
        }
    SmallVector<int64_t, 6> order = row_major(rank);
    std::stable_sort(order.begin(), order.end(), [&](int64_t a, int64_t b) { return assumed[a] > assumed[b]; });
    return order;
  }
  static SmallVector<int64_t, 6> row_major(size_t rank) {
    SmallVector<int64_t, 6> order(rank);
    std::iota(order.begin(), order.end(), 0);
    return order;
  }
  ir::Layout dense_layout(const Dims& sizes, std::span<const int64_t> order) {
    ir::Layout layout{sizes, Dims(sizes.size(), 1), 0};
    Dim stride = 1;
    for (size_t i = order.size(); i-- > 0;) {
      layout.strides[order[i]] = stride;
      stride = dims().mul(stride, sizes[order[i]]);
    }
    return layout;
  }

  uint32_t add_root(Root root, const Dims& sizes) {
    root.layout = dense_layout(sizes, root.order);
    roots_.push_back(std::move(root));
    Alias alias;
    alias.root = static_cast<uint32_t>(roots_.size() - 1);
    alias.layout = roots_.back().layout;
    alias.current = roots_.back().current;
    alias.generation = 0;
    aliases_.push_back(std::move(alias));
    return static_cast<uint32_t>(aliases_.size() - 1);
  }

  void bind(const SlotRecord& slot) {
    Dims sizes, free;
    for (size_t i = 0; i < slot.sizes.size(); ++i) sizes.push_back(next_site());
    for (int i = 0; i < eager::free_count(slot.classes); ++i) free.push_back(next_site());
    const uint32_t alias = request_.aliases.empty() ? slot.slot : request_.aliases[slot.slot];
    if (first_alias(alias) != slot.slot) {
      // The same tensor under another handle: writes to one are seen by the other.
      slots_.push_back(slots_[first_alias(alias)]);
      return;
    }
    Dims strides = eager::strides_of(dims(), slot.classes, sizes, free);
    Root root;
    root.slot = slot.slot;
    root.elsewhere = alias & kSeenElsewhere;
    root.current = graph().add_input(slot.facts.dtype(), sizes, strides);
    root.order = memory_order(slot);
    graph().inputs.back().constant = slot.captured && !root.elsewhere &&
                                     std::find(request_.written_slots.begin(), request_.written_slots.end(),
                                               slot.slot) == request_.written_slots.end();
    built_.binding.input_slots.push_back(slot.slot);
    slots_.push_back(add_root(std::move(root), sizes));
  }

  uint32_t alias_of(const OperandRecord& operand) const {
    return operand.kind == Kind::slot ? slots_[operand.id] : values_[operand.id];
  }

  // The tensor's value now: views that are older than the latest write to their storage are derived again.
  ir::ValueId read(uint32_t alias) {
    Root& root = roots_[aliases_[alias].root];
    std::vector<uint32_t> stale;
    for (uint32_t a = alias; aliases_[a].generation != root.generation; a = static_cast<uint32_t>(aliases_[a].parent)) {
      stale.push_back(a);
      if (aliases_[a].parent < 0) break;
    }
    for (size_t i = stale.size(); i-- > 0;) {
      Alias& a = aliases_[stale[i]];
      a.current = a.parent < 0 ? root.current
                               : graph().add(a.view->op, {ir::Operand::value(aliases_[a.parent].current)}, a.attrs,
                                             a.view->location);
      a.generation = root.generation;
    }
    if (!root.generation) root.read = true;
    return aliases_[alias].current;
  }

  void write(uint32_t alias, ir::ValueId value, const Node& node) {
    Alias& a = aliases_[alias];
    Root& root = roots_[a.root];
    if (a.parent < 0) {
      root.current = value;
    } else {
      if (!root.generation) root.read = true;
      root.current = write_part(root, a.layout, value, node);
    }
    ++root.generation;
    root.written = true;
    a.current = value;
    a.generation = root.generation;
  }

  // The storage as a tensor in memory order, where positions are those of its layout; and back.
  ir::ValueId to_memory_order(const Root& root, ir::ValueId value, Location location) {
    if (std::is_sorted(root.order.begin(), root.order.end())) return value;
    Dims order;
    for (int64_t d : root.order) order.push_back(d);
    return graph().add(OpId::permute, {ir::Operand::value(value)}, {ir::Attr::of(order)}, location);
  }
  ir::ValueId from_memory_order(const Root& root, ir::ValueId value, Location location) {
    if (std::is_sorted(root.order.begin(), root.order.end())) return value;
    Dims back(root.order.size(), 0);
    for (size_t i = 0; i < root.order.size(); ++i) back[root.order[i]] = static_cast<int64_t>(i);
    return graph().add(OpId::permute, {ir::Operand::value(value)}, {ir::Attr::of(back)}, location);
  }
  ir::ValueId write_part(const Root& root, const ir::Layout& part, ir::ValueId value, const Node& node) {
    ir::ValueId whole = to_memory_order(root, root.current, node.location);
    ir::ValueId result = graph().add(
        OpId::as_strided_scatter, {ir::Operand::value(whole), ir::Operand::value(value)},
        {ir::Attr::of(part.sizes), ir::Attr::of(part.strides), ir::Attr::of(Dims{part.offset})}, node.location);
    graph().nodes.back().module = node.module;
    return from_memory_order(root, result, node.location);
  }

  void add(Node& node) {
    for (const SlotRecord& slot : node.slots) bind(slot);
    std::vector<ir::Attr> attrs(node.attrs);
    for (size_t i = 0; i < attrs.size(); ++i)
      if (i < 64 && node.size_attrs >> i & 1)
        for (Dim& size : attrs[i].list) size = next_site();
    const ir::OpInfo& row = ir::info(node.op);
    if (row.kind == ir::OpKind::view && !node.derivative) return add_view(node, std::move(attrs));

    bool replaces = node.inplace && row.has(ir::kReplaces);
    Root* target_root = node.inplace ? &roots_[aliases_[alias_of(node.operands[0])].root] : nullptr;
    bool target_was_read = target_root && target_root->read;
    std::vector<ir::Operand> operands;
    for (size_t i = 0; i < node.operands.size(); ++i) {
      const OperandRecord& operand = node.operands[i];
      switch (operand.kind) {
        case Kind::none:
          operands.push_back(ir::Operand::none());
          break;
        case Kind::scalar:
          operands.push_back(ir::Operand::scalar(graph().add_scalar(operand.category), operand.category));
          break;
        case Kind::repeated:
          operands.push_back(ir::Operand::scalar(operand.id, operand.category));
          break;
        case Kind::special:
          operands.push_back(eager::scalar_operand(graph(), special_operand(node.op, i, operand)));
          break;
        default:
          operands.push_back(ir::Operand::value(read(alias_of(operand))));
          break;
      }
      if (replaces && operands.size() == 1) target_root->read = target_was_read;
    }
    if (!node.derivative) check_values(node, operands, attrs);
    ir::ValueId first =
        graph().add(node.op, std::move(operands), std::move(attrs), node.location, false, node.derivative);
    graph().nodes.back().module = node.module;
    if (node.inplace) {
      uint32_t target = alias_of(node.operands[0]);
      DType dtype = graph().type(aliases_[target].current).dtype;
      if (graph().type(first).dtype != dtype)
        first = graph().add(OpId::cast, {ir::Operand::value(first)}, {ir::Attr::of(dtype)}, node.location);
      return write(target, first, node);
    }
    for (size_t i = 0; i < node.outputs.size(); ++i) {
      Root root;
      root.value = static_cast<uint32_t>(values_.size());
      if (row.has(ir::kCounts) && !node.derivative) root.counter = static_cast<int64_t>(node_number_);
      root.current = first + static_cast<ir::ValueId>(i);
      Dims sizes = graph().type(root.current).shape;
      root.order = row_major(sizes.size());  // as every result that is not a view
      values_.push_back(add_root(std::move(root), sizes));
    }
  }

  // What eager checks of the data before it computes: of memory from outside and of scalars before the program runs, of
  // values that the program makes by the program.
  void check_values(const Node& node, std::vector<ir::Operand>& operands, const std::vector<ir::Attr>& attrs) {
    for (const eager::ValueCheck& check : checks_.of(node.op, operands, attrs)) {
      if (add_host_check(node, check)) continue;
      checks_.add(check, operands, node.location);
      if (check.kind == eager::ValueCheck::Kind::positions)
        built_.binding.host_checks.push_back({node_number_, static_cast<uint32_t>(check.operand), -1, true});
    }
  }

  bool add_host_check(const Node& node, const eager::ValueCheck& check) {
    const auto number = static_cast<uint32_t>(check.operand);
    const OperandRecord& record = node.operands[number];
    HostCheck host{node_number_, number, -1};
    if (record.kind != Kind::scalar && record.kind != Kind::special) {
      const Root& root = roots_[aliases_[alias_of(record)].root];
      if (root.generation) return false;
      if (root.slot == ir::kNoValue) {
        if (root.counter < 0 || check.kind != eager::ValueCheck::Kind::positions) return false;
        host.counter = root.counter;
      }
    }
    built_.binding.host_checks.push_back(host);
    return true;
  }

  void add_view(Node& node, std::vector<ir::Attr> attrs) {
    uint32_t parent = alias_of(node.operands[0]);
    ir::ValueId base = read(parent);
    Alias alias;
    alias.root = aliases_[parent].root;
    alias.parent = static_cast<int32_t>(parent);
    alias.view = &node;
    alias.attrs = attrs;
    alias.generation = roots_[alias.root].generation;
    alias.current = graph().add(node.op, {ir::Operand::value(base)}, attrs, node.location);
    graph().nodes.back().module = node.module;

    ir::OperandType type;
    type.kind = ir::OperandType::Kind::tensor;
    type.dtype = graph().type(base).dtype;
    Dims shape = graph().type(base).shape;
    type.shape = &shape;
    std::vector<ir::TensorType> outputs;
    ir::RuleContext context{node.op, {&type, 1}, attrs, dims(), node.location, outputs};
    alias.layout = ir::infer_layout(context, aliases_[parent].layout);
    values_.push_back(static_cast<uint32_t>(aliases_.size()));
    aliases_.push_back(std::move(alias));
  }

  void add_outputs() {
    std::vector<uint32_t> output_of(roots_.size(), ir::kNoValue);
    for (uint32_t value : request_.live) {
      uint32_t r = aliases_[values_[value]].root;
      Root& root = roots_[r];
      LiveValue live{value, root.slot != ir::kNoValue, root.slot};
      if (!live.external) {
        const bool unseen = std::ranges::binary_search(request_.unseen, root.value);
        if (output_of[r] == ir::kNoValue)
          output_of[r] = add_output(root, {.number = root.value, .order = root.order, .unseen = unseen});
        live.number = output_of[r];
      }
      built_.binding.live.push_back(live);
    }
    for (Root& root : roots_)
      if (root.slot != ir::kNoValue && root.written)
        add_output(root, {.kind = OutputTarget::Kind::write_back,
                          .number = root.slot,
                          .donated = !root.read && !root.elsewhere && checks_.failed().empty(),
                          .apart = root.elsewhere,
                          .order = root.order});
  }
  // One flag for each check that the program makes itself.
  void add_flags() {
    for (ir::ValueId failed : checks_.failed()) {
      graph().outputs.push_back(failed);
      built_.binding.outputs.push_back({.kind = OutputTarget::Kind::failed});
    }
  }
  uint32_t add_output(const Root& root, OutputTarget target) {
    graph().outputs.push_back(to_memory_order(root, root.current, Location::none()));
    built_.binding.outputs.push_back(target);
    return static_cast<uint32_t>(graph().outputs.size() - 1);
  }

  const BuildRequest& request_;
  BuiltGraph built_;
  size_t next_site_ = 0, node_number_ = 0;
  GraphChecks checks_{built_.graph};
  std::vector<Root> roots_;
  std::vector<Alias> aliases_;
  std::vector<uint32_t> slots_, values_;  // alias of each
};

}  // namespace

BuiltGraph build_graph(const BuildRequest& request) { return Builder(request).build(); }

}  // namespace ingot::trace
