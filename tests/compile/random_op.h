// A call of any op of the table, made of a number and the tensors at hand.
#pragma once
#include <algorithm>
#include <cmath>
#include <deque>
#include <functional>
#include <optional>
#include <random>
#include <vector>

#include "eager/call/call.h"
#include "eager/call/check_values.h"
#include "eager/call/dispatch.h"
#include "eager/call/infer.h"
#include "ingot.h"
#include "ir/samples.h"

namespace ingot::test {

/// Half of the calls take tensors and attributes as they come, so that shapes and dtypes meet that nobody thought of;
/// the others have the shapes of the op's samples, so that every op is reached. Positions, divisors and probabilities
/// are brought into range: what an op refuses because of its data may be refused later in a compiled function.
class RandomOp {
 public:
  /// Sees a call, and what it gave.
  using Observer = std::function<void(const eager::OpCall&, const std::vector<Tensor>&)>;

  RandomOp(uint32_t seed, const std::vector<Tensor>& at_hand, Observer observer = {})
      : random_(seed), at_hand_(at_hand), observer_(std::move(observer)) {}

  /// The outputs; none where the op takes no such arguments, or where the result is large. Which it is depends on
  /// dtypes, shapes and the seed alone.
  std::vector<Tensor> run() {
    if (at_hand_.empty()) return {};
    try {
      return attempt();
    } catch (const Error&) {
      return {};
    }
  }

 private:
  static constexpr int64_t kLargest = 2000;  // elements

  std::vector<Tensor> attempt() {
    const ir::OpInfo* row = nullptr;
    if (pick(2)) {
      row = from_sample();
    } else {
      row = &ir::ops()[random_() % ir::ops().size()];
      freely(*row);
    }
    // Of a tensor of its own: beyond one it looks at a storage, which is an alias that no graph knows.
    if (row->id == OpId::as_strided) operands_[0] = eager::Operand(keep(operands_[0].tensor->clone()));
    for (size_t i = 0; i < operands_.size(); ++i) eager::note_special(row->id, static_cast<int>(i), &operands_[i]);
    eager::OpCall call{row->id, row->has(ir::kInplace) && pick(4) == 0, operands_, attrs_, Location()};
    eager::settle(call, attrs_);
    std::vector<Tensor> outputs(row->outputs);
    std::vector<eager::OutputMeta> metas(row->outputs);
    eager::infer_outputs(call, metas);
    for (const eager::OutputMeta& meta : metas) {
      int64_t elements = 1;
      for (int64_t n : meta.sizes)
        if (__builtin_mul_overflow(elements, n, &elements)) return {};
      if (elements > kLargest) return {};
    }
    // A write of floats only: a NaN has no integer.
    if (call.inplace && !is_floating(metas[0].dtype)) return {};
    if (row->has(ir::kRandom)) eager::draw(call, std::span(operands_).last(2), {});
    bring_into_range(call);
    eager::dispatch(call, outputs);
    if (call.inplace) return {};
    if (observer_) observer_(call, outputs);
    return outputs;
  }

  int pick(int n) { return static_cast<int>(random_() % static_cast<uint32_t>(n)); }
  const Tensor& any() { return at_hand_[static_cast<size_t>(pick(static_cast<int>(at_hand_.size())))]; }
  Tensor& keep(Tensor t) { return chosen_.emplace_back(std::move(t)); }

  /// What eager would refuse for its data becomes what it takes.
  void bring_into_range(const eager::OpCall& call) {
    for (const eager::ValueCheck& check : eager::value_checks(call)) bring_into_range(call, check);
  }
  void bring_into_range(const eager::OpCall& call, const eager::ValueCheck& check) {
    using Kind = eager::ValueCheck::Kind;
    eager::Operand& o = operands_[check.operand];
    if (check.kind == Kind::order) {
      operands_[check.operand - 1] = Scalar(int64_t{-2});
      o = Scalar(int64_t{3});
    } else if (check.kind == Kind::held) {
      if (o.category == Category::floating)
        o = Scalar(std::isfinite(o.number) ? std::fabs(std::fmod(o.number, 100)) : 0.5);
      else
        o = Scalar(std::abs(o.integer % 100));
    } else if (o.kind == eager::Operand::Kind::scalar) {
      o = check.kind == Kind::divisor ? Scalar(int64_t{3}) : Scalar(0.25);
    } else if (check.kind == Kind::finished) {
      o = eager::Operand(keep(o.tensor->eq(*o.tensor).logical_not().to(o.tensor->dtype())));
    } else if (check.kind == Kind::divisor) {
      o = eager::Operand(keep(o.tensor->bitwise_or(1)));
    } else if (check.kind == Kind::interval || check.kind == Kind::weights) {
      o = eager::Operand(keep(o.tensor->nan_to_num().clamp(check.kind == Kind::weights ? 0.25 : 0, 1)));
    } else {
      const Tensor& self = *call.operands[0].tensor;
      const int64_t size = check.dim < 0 ? self.numel() : self.dim() ? self.size(check.dim) : 1;
      if (o.tensor->numel() == 0) return;
      if (size == 0) throw Error("no position is inside of an empty tensor");
      Tensor inside = o.tensor->remainder(std::min<int64_t>(size, 100));
      o = eager::Operand(keep(inside.dtype() == o.tensor->dtype() ? inside : inside.to(o.tensor->dtype())));
    }
  }

  // The shapes, dtypes and attributes of a sample, with values at hand.
  const ir::OpInfo* from_sample() {
    static const std::vector<ir::Graph> graphs = [] {
      std::vector<ir::Graph> parsed;
      for (const ir::Sample& sample : ir::samples()) parsed.push_back(ir::parse(sample.text));
      return parsed;
    }();
    // Ops first, so that one with many samples is not met more often.
    const OpId wanted = ir::ops()[random_() % ir::ops().size()].id;
    std::vector<const ir::Graph*> of_op;
    for (const ir::Graph& graph : graphs)
      if (graph.nodes[0].op == wanted) of_op.push_back(&graph);
    const ir::Graph& graph = *of_op[static_cast<size_t>(pick(static_cast<int>(of_op.size())))];
    const ir::Node& node = graph.nodes[0];
    for (const ir::Operand& o : node.operands) {
      if (o.is_value())
        operands_.emplace_back(keep(shaped(graph.type(o.id))));
      else if (o.kind != ir::Operand::Kind::constant)
        operands_.emplace_back();
      else if (o.category == Category::floating)
        operands_.emplace_back(Scalar(o.number));
      else
        operands_.emplace_back(o.category == Category::boolean ? Scalar(o.integer != 0) : Scalar(o.integer));
    }
    attrs_ = node.attrs;
    return &ir::info(node.op);
  }

  Tensor shaped(const ir::TensorType& type) {
    Tensor x = any();
    Ints sizes;
    int64_t elements = 1;
    for (Dim d : type.shape) sizes.push_back(d.code), elements *= d.code;
    if (x.numel() == 0) x = at_hand_[0];
    if (x.numel() == 0) return zeros(sizes, type.dtype);
    Tensor line = x.reshape({x.numel()});
    if (line.numel() >= elements)
      line = line.narrow(0, pick(static_cast<int>(line.numel() - elements + 1)), elements);
    else
      line = line.index_select(0, arange(elements).remainder(line.numel()));
    line = line.reshape(sizes);
    return line.dtype() == type.dtype ? line : line.to(type.dtype);
  }

  void freely(const ir::OpInfo& row) {
    for (const ir::ArgInfo& argument : row.arguments) {
      if (argument.kind == ir::ArgKind::tensors) {
        for (int i = 0, n = 1 + pick(3); i < n; ++i) operands_.emplace_back(keep(tensor(false)));
      } else if (ir::is_operand(argument.kind)) {
        operands_.push_back(operand(argument));
      } else {
        attrs_.push_back(attribute(argument));
      }
    }
  }

  // Often of the shape of the first, so that they go together.
  Tensor tensor(bool mask) {
    Tensor x = any();
    for (int tries = 0; tries < 4 && !chosen_.empty() && x.sizes() != chosen_[0].sizes() && pick(8); ++tries) x = any();
    return mask ? x > 0 : x;
  }

  eager::Operand operand(const ir::ArgInfo& argument) {
    if (argument.optional && pick(2)) return {};
    if (argument.name == "seed" || argument.name == "offset") return Scalar(int64_t{pick(1000)});
    if (argument.kind == ir::ArgKind::value ||
        (argument.kind == ir::ArgKind::operand && !chosen_.empty() && pick(3) == 0)) {
      if (argument.has_default && pick(2))
        return argument.default_integer ? Scalar(static_cast<int64_t>(argument.default_number))
                                        : Scalar(argument.default_number);
      return pick(2) ? Scalar(int64_t{1} + pick(3)) : Scalar(0.5 * (1 + pick(4)));
    }
    if (argument.check.kind == ir::DataCheck::Kind::positions && pick(8))
      return eager::Operand(keep(tensor(false).to(kInt64)));
    return eager::Operand(keep(tensor(argument.mask)));
  }

  ir::Attr attribute(const ir::ArgInfo& argument) {
    using ir::ArgKind;
    using ir::Attr;
    if ((argument.optional || argument.has_default) && pick(2))
      return argument.has_default ? ir::default_attribute(argument) : Attr();
    const Tensor x = chosen_.empty() ? at_hand_[0] : chosen_[0];
    const int rank = static_cast<int>(x.dim());
    auto list = [](std::initializer_list<int64_t> values) {
      Dims dims;
      for (int64_t v : values) dims.push_back(eager::raw_size(v));
      return Attr::of(dims);
    };
    switch (argument.kind) {
      case ArgKind::dim:
      case ArgKind::new_dim:
        return Attr::of(int64_t{rank ? pick(rank) - (pick(2) ? rank : 0) : 0});
      case ArgKind::dims: {
        Dims order;
        for (int64_t d = 0; d < rank; ++d) order.push_back(Dim(d));
        std::shuffle(order.begin(), order.end(), random_);
        if (pick(2)) order.resize(static_cast<size_t>(pick(rank + 1)));
        return Attr::of(order);
      }
      case ArgKind::boolean:
        return Attr::of(pick(2) == 1);
      case ArgKind::integer:
        return Attr::of(int64_t{pick(5) - 2});
      case ArgKind::integers:
        return pick(2) ? list({1 + pick(3)}) : list({1 + pick(2), 1 + pick(3)});
      case ArgKind::number: {
        constexpr double numbers[] = {0, 1, 2, 0.5, INFINITY};
        return Attr::number(
            numbers[pick(argument.name == "correction" ? 4 : 5)]);  // none left over: 0 / 0 by a rounding
      }
      case ArgKind::dtype: {
        constexpr DType dtypes[] = {DType::f32, DType::f64, DType::bf16, DType::f16,
                                    DType::i64, DType::i32, DType::bool_};
        return Attr::of(dtypes[pick(7)]);
      }
      case ArgKind::mode:
        return Attr::mode(pick(static_cast<int>(argument.modes.size())));
      case ArgKind::size:
        return list({pick(4)});
      default:
        break;
    }
    switch (pick(5)) {
      case 0:
        return list({x.numel()});
      case 1:
        return list({rank ? x.size(-1) : 1});
      case 2:
        return list({1 + pick(3), 1 + pick(3)});
      default: {
        Dims sizes;
        for (int64_t d = 0; d < rank; ++d) sizes.push_back(eager::raw_size(x.size(d)));
        if (pick(2)) sizes.insert(0, Dim(int64_t{2}));
        return Attr::of(sizes);
      }
    }
  }

  std::minstd_rand random_;
  const std::vector<Tensor>& at_hand_;
  Observer observer_;
  std::deque<Tensor> chosen_;  // what operands point to
  std::vector<eager::Operand> operands_;
  std::vector<ir::Attr> attrs_;
};

}  // namespace ingot::test
