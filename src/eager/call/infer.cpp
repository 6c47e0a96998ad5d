// What a call gives, before anything is computed. The common elementwise call neither allocates nor asks the rules: its
// dtype follows from a key that this thread has seen before, its shape is the broadcast of sizes.
#include "eager/call/infer.h"

#include <array>
#include <vector>

#include "base/hash.h"
#include "base/thread_object.h"
#include "eager/call/call.h"
#include "eager/data.h"
#include "ir/rules/rules.h"

namespace ingot::eager {
namespace {

/// The rules' view of a call: sizes as constants. One per thread, reused.
struct Scratch {
  std::vector<ir::OperandType> operands;
  std::vector<Dims> shapes;
  std::vector<ir::TensorType> outputs;
};

void read_operands(const OpCall& call, Scratch& s) {
  size_t n = call.operands.size();
  s.operands.assign(n, {});
  if (s.shapes.size() < n) s.shapes.resize(n);
  for (size_t i = 0; i < n; ++i) {
    const Operand& given = call.operands[i];
    ir::OperandType& type = s.operands[i];
    if (given.kind == Operand::Kind::scalar) {
      type.kind = ir::OperandType::Kind::scalar;
      type.category = given.category;
    } else if (given.kind == Operand::Kind::tensor) {
      const detail::TensorImpl& t = *given.tensor->impl();
      type.kind = ir::OperandType::Kind::tensor;
      type.dtype = t.dtype;
      s.shapes[i].assign(t.sizes.begin(), t.sizes.end());
      type.shape = &s.shapes[i];
    }
  }
}

/// False where there are more elements than the rules allow (they count sizes of 0 as 1, and say so to the user).
bool set_contiguous(OutputMeta& out, DType dtype, std::span<const int64_t> sizes) {
  out.dtype = dtype;
  out.sizes.assign(sizes.begin(), sizes.end());
  out.strides.resize(sizes.size());
  out.offset = 0;
  out.alias = false;
  int64_t step = 1;
  for (size_t d = sizes.size(); d-- > 0;) {
    out.strides[d] = step;
    if (__builtin_mul_overflow(step, std::max<int64_t>(sizes[d], 1), &step)) return false;
  }
  return step <= ir::kMostElements;
}

void set_self(OutputMeta& out, const detail::TensorImpl& self) {
  out.dtype = self.dtype;
  out.sizes = self.sizes;
  out.strides = self.strides;
  out.offset = self.offset;
  out.alias = true;
}

/// By the rules of the table.
void infer_by_rules(const OpCall& call, std::span<OutputMeta> outputs) {
  constinit thread_local ThreadObject<Scratch> mine;
  Scratch& s = *mine;
  read_operands(call, s);
  s.outputs.clear();
  DimTable dims;
  ir::RuleContext context{call.op, s.operands, call.attrs, dims, call.location, s.outputs, call.inplace};
  const ir::OpInfo& op = ir::info(call.op);
  // A view of a tensor has its dtype, and the layout rule checks everything else.
  context.derivative = call.derivative;
  if (!call.derivative && op.kind == ir::OpKind::view && call.operands[0].kind == Operand::Kind::tensor) {
    const detail::TensorImpl& self = *call.operands[0].tensor->impl();
    ir::Layout base{s.shapes[0], Dims(self.strides.begin(), self.strides.end()), self.offset};
    ir::Layout layout = ir::infer_layout(context, base);
    // The one view that may reach beyond its tensor; a pending one has no storage yet and is asked again when it has.
    if (op.has(ir::kOfMemory) && self.storage)
      ir::check_extent(context, layout.sizes, layout.strides, layout.offset,
                       self.storage->bytes() / size_of(self.dtype));
    OutputMeta& out = outputs[0];
    out.dtype = self.dtype;
    out.sizes.clear(), out.strides.clear();
    for (Dim d : layout.sizes) out.sizes.push_back(d.code);
    for (Dim d : layout.strides) out.strides.push_back(d.code);
    out.offset = layout.offset.code;
    out.alias = true;
    return;
  }
  ir::infer(context);
  if (call.inplace) {
    set_self(outputs[0], *call.operands[0].tensor->impl());
    return;
  }
  for (size_t i = 0; i < outputs.size(); ++i) {
    Ints sizes;
    for (Dim d : s.outputs[i].shape) sizes.push_back(d.code);
    const bool fits = set_contiguous(outputs[i], s.outputs[i].dtype, sizes);
    INGOT_CHECK(fits, "sizes that the rules let through");
  }
}

struct KnownDtype {
  uint64_t key = 0;
  DType output = DType::f32;
};
constexpr size_t kKnown = 512;
constexpr uint64_t kMix = 0x9e3779b97f4a7c15ull;
constinit thread_local ThreadObject<std::array<KnownDtype, kKnown>> known;

/// Broadcasts into `shape`; false where the sizes do not fit.
bool broadcast(Ints& shape, const Ints& sizes) {
  size_t n = sizes.size();
  while (shape.size() < n) shape.insert(0, 1);
  size_t lead = shape.size() - n;
  for (size_t d = 0; d < n; ++d) {
    int64_t& have = shape[lead + d];
    if (have == sizes[d] || sizes[d] == 1) continue;
    if (have != 1) return false;
    have = sizes[d];
  }
  return true;
}

bool infer_elementwise(const OpCall& call, OutputMeta& out) {
  uint64_t key = pointwise_key(call);
  if (!key) return false;
  const KnownDtype& entry = (*known)[hash_mix(key, kMix) % kKnown];
  if (entry.key != key) return false;
  const detail::TensorImpl* first = nullptr;
  bool same = true;
  for (const Operand& o : call.operands) {
    if (o.kind != Operand::Kind::tensor) continue;
    const detail::TensorImpl* t = o.tensor->impl();
    if (!first)
      first = t;
    else
      same = same && t->sizes == first->sizes;
  }
  if (!first) return false;
  if (same) {
    if (!call.inplace) return set_contiguous(out, entry.output, first->sizes);
    set_self(out, *first);
    return true;
  }
  Ints shape = first->sizes;
  for (const Operand& o : call.operands)
    if (o.kind == Operand::Kind::tensor && !broadcast(shape, o.tensor->impl()->sizes)) return false;
  const detail::TensorImpl& self = *call.operands[0].tensor->impl();
  bool keeps_self = call.inplace || ir::info(call.op).shapes == &ir::shapes::into_self;
  if (keeps_self && !(call.operands[0].kind == Operand::Kind::tensor && shape == self.sizes)) return false;
  if (!call.inplace) return set_contiguous(out, entry.output, shape);
  set_self(out, self);
  return true;
}

}  // namespace

uint64_t pointwise_key(const OpCall& call) {
  if (call.operands.size() > kMaxPointwiseOperands || call.attrs.size() > 1) return 0;
  uint64_t key = 1 | static_cast<uint64_t>(call.inplace) << 1 | static_cast<uint64_t>(call.op) << 2;
  int shift = 18;
  for (const Operand& o : call.operands) {
    uint64_t kind = 0, type = 0;
    if (o.kind == Operand::Kind::tensor) {
      const detail::TensorImpl& t = *o.tensor->impl();
      kind = t.sizes.empty() ? 2 : 1;
      type = static_cast<uint64_t>(t.dtype);
    } else if (o.kind == Operand::Kind::scalar) {
      kind = 3;
      type = static_cast<uint64_t>(o.category);
      key |= static_cast<uint64_t>(o.special) << 48;  // at most one operand of a row has special values
    }
    key |= (kind << 4 | type) << shift;
    shift += 6;
  }
  if (call.attrs.empty()) return key;
  const ir::Attr& a = call.attrs[0];
  if (a.kind == ir::Attr::Kind::none) return key;
  if (a.kind != ir::Attr::Kind::mode && a.kind != ir::Attr::Kind::dtype) return 0;
  return key | static_cast<uint64_t>(a.integer + 1) << 58;
}

void infer_outputs(const OpCall& call, std::span<OutputMeta> outputs) {
  if (call.derivative || ir::info(call.op).kind != ir::OpKind::elementwise) {
    infer_by_rules(call, outputs);
    return;
  }
  if (infer_elementwise(call, outputs[0])) return;
  infer_by_rules(call, outputs);
  if (uint64_t key = pointwise_key(call)) (*known)[hash_mix(key, kMix) % kKnown] = {key, outputs[0].dtype};
}

}  // namespace ingot::eager
