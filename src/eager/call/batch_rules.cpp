// How a call of slices is one call of wholes: by the kind of its op and the rule of its shape, as its row has them.
#include <algorithm>

#include "eager/autograd/node.h"
#include "eager/call/batch.h"
#include "eager/call/call.h"
#include "eager/call/infer.h"
#include "eager/data.h"
#include "eager/ops/functions.h"
#include "ir/rules/rules.h"

namespace ingot::eager {
namespace {

using ir::ArgKind;
namespace shapes = ir::shapes;

/// A call in the making. Where nothing else is said, operands that are the same for all slices stay as they are.
class WholeCall {
 public:
  WholeCall(const Batch& batch, int64_t size, const OpCall& call, std::span<const OutputMeta> metas)
      : batch_(batch),
        size_(size),
        call_(call),
        op_(ir::info(call.op)),
        metas_(metas),
        tensors_(call.operands.size()),
        held_(call.operands.size()),
        operands_(call.operands.begin(), call.operands.end()),
        attrs_(call.attrs.begin(), call.attrs.end()) {
    for (size_t i = 0; i < operands_.size(); ++i) {
      if (!is_tensor(i)) continue;
      held_[i] = batch.holds(*call.operands[i].tensor);
      tensors_[i] = held_[i] ? batch.whole_of(*call.operands[i].tensor) : *call.operands[i].tensor;
      operands_[i].tensor = &tensors_[i];
    }
  }

  /// False where there is no rule for it.
  bool run(std::span<Tensor> outputs) {
    if (call_.derivative) return false;
    if (op_.kind == ir::OpKind::view) return view(outputs);
    if (op_.kind == ir::OpKind::elementwise || is(shapes::broadcast) || is(shapes::into_self))
      return elementwise(outputs);
    if (is(shapes::compared)) return compared(outputs);
    if (op_.kind == ir::OpKind::reduction || is(shapes::reduce) || is(shapes::reduce_some)) return reduction(outputs);
    if (is(shapes::loss) || is(shapes::binary_loss)) return loss(outputs);
    if (is(shapes::class_loss) || is(shapes::class_or_probability_loss)) return class_loss(outputs);
    if (is(shapes::matmul)) return product(outputs);
    if (op_.has(ir::kMatrices)) return expand_all(), fits(outputs);
    if (is(shapes::convolution)) return convolution(outputs);
    if (is(shapes::pool) || is(shapes::adaptive_pool) || is(shapes::im2col) || is(shapes::col2im) ||
        is(shapes::convolution_transposed))
      return held_only(0) && (fits(outputs) || joined(outputs));
    if (is(shapes::group_norm) || is(shapes::upsample) || is(shapes::local_response_norm))
      return held_only(0) && joined(outputs);
    if (is(shapes::channels)) return held_only(0) && rank(0) > 1 && joined(outputs);
    if (is(shapes::triangle) || is(shapes::pad) || is(shapes::layer_norm) || is(shapes::linear) ||
        is(shapes::bucketize))
      return held_only(0) && fits(outputs);
    if (is(shapes::embedding)) return held_only(1) && fits(outputs);
    if (is(shapes::searchsorted)) return search(outputs);
    if (is(shapes::cdist)) return aligned(outputs);
    if (is(shapes::attention)) return attention(outputs);
    return along(outputs);
  }

 private:
  bool is(ir::Rule shape) const { return op_.kind != ir::OpKind::view && op_.shapes == shape; }
  bool is_tensor(size_t i) const { return call_.operands[i].kind == Operand::Kind::tensor; }
  /// Of a slice.
  size_t rank(size_t i) const { return call_.operands[i].tensor->impl()->sizes.size(); }
  size_t highest_rank() const {
    size_t highest = 0;
    for (size_t i = 0; i < operands_.size(); ++i)
      if (is_tensor(i)) highest = std::max(highest, rank(i));
    return highest;
  }
  bool held_only(size_t number) const {
    for (size_t i = 0; i < held_.size(); ++i)
      if (held_[i] != (i == number)) return false;
    return true;
  }
  bool has_halves() const {
    for (size_t i = 0; i < operands_.size(); ++i)
      if (is_tensor(i) && is_half(tensors_[i].impl()->dtype)) return true;
    return false;
  }
  /// The place of an attribute among them.
  size_t place(std::string_view name) const { return static_cast<size_t>(ir::attribute_position(op_, name)); }
  /// The sizes of a result.
  std::vector<int64_t> expected(size_t output = 0) const {
    std::vector<int64_t> sizes{size_};
    sizes.insert(sizes.end(), metas_[output].sizes.begin(), metas_[output].sizes.end());
    return sizes;
  }
  Ints dims_of_slice(size_t rank) const {
    Ints dims;
    for (size_t d = 1; d <= rank; ++d) dims.push_back(static_cast<int64_t>(d));
    return dims;
  }

  void expand(size_t i) {
    if (!is_tensor(i) || held_[i]) return;
    tensors_[i] = batch_.whole_of(tensors_[i]);
    held_[i] = true;
  }
  void expand_all() {
    for (size_t i = 0; i < operands_.size(); ++i) expand(i);
  }
  /// A whole whose slices have `to` dims, new ones in front.
  static Tensor lifted(Tensor whole, size_t from, size_t to) {
    for (; from < to; ++from) whole = whole.unsqueeze(1, Location::none());
    return whole;
  }
  void lift(size_t i, size_t to) {
    if (is_tensor(i) && held_[i]) tensors_[i] = lifted(tensors_[i], rank(i), to);
  }
  void shift_dims() {
    for (size_t i = 0; i < attrs_.size(); ++i) {
      const ArgKind kind = op_.attribute(static_cast<int>(i)).kind;
      ir::Attr& a = attrs_[i];
      if (!a.present()) continue;
      if (kind == ArgKind::dim || kind == ArgKind::new_dim) ++a.integer;
      if (kind == ArgKind::dims)
        for (Dim& d : a.list) ++d.code;
    }
  }

  OpCall call() const {
    OpCall whole = call_;
    whole.operands = operands_;
    whole.attrs = attrs_;
    return whole;
  }
  /// Calls it, if what it will give is what slices would: the rules of dtypes and sizes say so.
  bool fits(std::span<Tensor> outputs) const {
    std::vector<OutputMeta> given(metas_.size());
    try {
      infer_outputs(call(), given);
    } catch (const Error&) {
      return false;
    }
    for (size_t i = 0; i < given.size(); ++i)
      if (given[i].dtype != metas_[i].dtype || given[i].sizes != Ints(std::span<const int64_t>(expected(i))))
        return false;
    dispatch(call(), outputs);
    return true;
  }
  /// Calls it, and gives its results the sizes that they are to have: dims of one element come and go.
  bool reshaped(std::span<Tensor> outputs) const {
    dispatch(call(), outputs);
    for (size_t i = 0; i < outputs.size(); ++i) outputs[i] = outputs[i].reshape(expected(i), call_.location);
    return true;
  }

  /// Slices are lined up from the end, as operands are that broadcast.
  bool aligned(std::span<Tensor> outputs) {
    const size_t highest = highest_rank();
    for (size_t i = 0; i < operands_.size(); ++i) lift(i, highest);
    return fits(outputs);
  }

  /// A view of the whole.
  bool view(std::span<Tensor> outputs) {
    if (op_.has(ir::kOfMemory)) return false;
    shift_dims();
    if (op_.layout == &ir::layouts::permute) attrs_[0].list.insert(0, Dim(0));
    for (size_t i = 0; i < attrs_.size(); ++i) {
      const ir::ArgInfo& argument = op_.attribute(static_cast<int>(i));
      // Without dims, squeeze takes those of one element; the batch is none of them.
      if (argument.kind == ArgKind::dims && !attrs_[i].present()) {
        Dims ones;
        for (size_t d = 0; d < rank(0); ++d)
          if (tensors_[0].impl()->sizes[d + 1] == 1) ones.push_back(static_cast<int64_t>(d) + 1);
        attrs_[i] = ir::Attr::of(std::move(ones));
      }
      if (argument.kind != ArgKind::sizes) continue;
      attrs_[i].list.insert(0, Dim(size_));
      if (argument.settling == ir::Settling::kept) lift(0, attrs_[i].list.size() - 1);
    }
    return fits(outputs);
  }

  bool elementwise(std::span<Tensor> outputs) {
    // A zero-dim tensor takes part in promotion as a scalar does; its whole has a dim.
    std::optional<DType> common;
    bool mixed = false, zero_dim = false;
    for (size_t i = 0; i < operands_.size(); ++i) {
      if (!is_tensor(i) || op_.operand(static_cast<int>(i)).mask) continue;
      const DType dtype = tensors_[i].impl()->dtype;
      mixed = mixed || (common && *common != dtype);
      common = dtype;
      zero_dim = zero_dim || (held_[i] && rank(i) == 0);
    }
    if (mixed && zero_dim) return false;
    if (is(shapes::into_self)) expand(0);
    return aligned(outputs);
  }

  bool compared(std::span<Tensor> outputs) {
    if (highest_rank() == 0) return false;
    // Of the operands broadcast together; from the end it is the same one.
    if (const int dim = ir::attribute_position(op_, "dim"); dim >= 0) {
      ir::Attr& at = attrs_[static_cast<size_t>(dim)];
      if (at.present() && at.integer >= 0) ++at.integer;
    }
    return aligned(outputs);
  }

  bool reduction(std::span<Tensor> outputs) {
    const size_t own = rank(0);
    const ArgKind kind = op_.attribute(static_cast<int>(place("dim"))).kind;
    ir::Attr& dim = attrs_[place("dim")];
    const bool all = op_.reduces_all(dim.present(), dim.present() && kind == ArgKind::dims && dim.list.empty());
    if (own == 0) {
      if (dim.present() && kind == ArgKind::dims && dim.list.empty() && !all) return false;
      tensors_[0] = tensors_[0].unsqueeze(1, Location::none());
      dim = kind == ArgKind::dims ? ir::Attr::of(Dims{Dim(1)}) : ir::Attr::of(int64_t{1});
    } else if (!all) {
      shift_dims();
    } else if (kind == ArgKind::dims) {
      const Ints dims = dims_of_slice(own);
      dim = ir::Attr::of(Dims(dims.begin(), dims.end()));
    } else {
      // A position among all elements.
      tensors_[0] = tensors_[0].reshape({size_, count(call_.operands[0].tensor->impl()->sizes)}, Location::none());
      dim = ir::Attr::of(int64_t{1});
    }
    return reshaped(outputs);
  }

  /// What the modes of attribute `reduction` are called.
  std::string_view reduction_word() const {
    const size_t at = place("reduction");
    return op_.attribute(static_cast<int>(at)).modes[static_cast<size_t>(attrs_[at].integer)];
  }
  void do_not_reduce() { attrs_[place("reduction")].integer = 0; }

  /// The losses of all elements, then a mean or a sum for each slice.
  bool loss(std::span<Tensor> outputs) {
    const std::string_view word = reduction_word();
    // Of 16-bit floats, losses are not rounded before they are summed.
    if (word != "none" && (has_halves() || (word != "mean" && word != "sum"))) return false;
    const size_t highest = highest_rank();
    expand(0), expand(1);
    for (size_t i = 0; i < operands_.size(); ++i) lift(i, highest);
    do_not_reduce();
    dispatch(call(), outputs);
    if (word == "none" || highest == 0) return true;
    const Ints dims = dims_of_slice(highest);
    outputs[0] = word == "mean" ? outputs[0].mean(dims, false, {}, call_.location)
                                : outputs[0].sum(dims, false, {}, call_.location);
    return true;
  }

  /// The same of losses of classes: a mean is one over the weights of the targets.
  bool class_loss(std::span<Tensor> outputs) {
    const std::string_view word = reduction_word();
    if (held_[2] || (word != "none" && has_halves())) return false;
    expand(0), expand(1);
    const bool of_classes = !is_floating(tensors_[1].impl()->dtype);
    const size_t batches = rank(0) - 1;
    std::vector<int64_t> losses(tensors_[0].impl()->sizes.begin(), tensors_[0].impl()->sizes.end());
    losses.erase(losses.begin() + (batches ? 2 : 1));
    if (batches) join(0), join(1);
    do_not_reduce();
    dispatch(call(), outputs);
    outputs[0] = outputs[0].reshape(losses, call_.location);
    const Ints dims = dims_of_slice(batches);
    if (word == "none") return true;
    if (word == "mean" && !of_classes && batches) {
      outputs[0] = outputs[0].mean(dims, false, {}, call_.location);
      return true;
    }
    const auto total = [&](const Tensor& each) { return batches ? each.sum(dims, false, {}, call_.location) : each; };
    outputs[0] = total(outputs[0]);
    if (word == "sum" || !of_classes) return true;
    // Where the input is -1, the loss is the weight of the target, or zero where that is ignored.
    const Tensor minus_one = full_like({tensors_[0], call_.location}, -1);
    const TensorArg weight = is_tensor(2) ? TensorArg(tensors_[2]) : TensorArg();
    const Tensor weights =
        nll_loss({minus_one, call_.location}, tensors_[1], weight, attrs_[place("ignore_index")].integer, "none");
    outputs[0] = outputs[0].div(total(weights.reshape(losses, call_.location)), "none", call_.location);
    return true;
  }

  bool product(std::span<Tensor> outputs) {
    size_t ranks[2];
    for (size_t i = 0; i < 2; ++i) {
      ranks[i] = rank(i);
      // A vector of each slice is a matrix of one row, or one column.
      if (!held_[i] || ranks[i] > 1) continue;
      tensors_[i] = tensors_[i].unsqueeze(i == 0 ? 1 : 2, Location::none());
      ranks[i] = 2;
    }
    for (size_t i = 0; i < 2; ++i)
      if (held_[i]) tensors_[i] = lifted(tensors_[i], ranks[i], std::max(ranks[0], ranks[1]));
    return reshaped(outputs);
  }

  /// The batch and dim 0 of a slice become one dim.
  void join(size_t i) { tensors_[i] = tensors_[i].flatten(0, 1, Location::none()); }
  bool joined(std::span<Tensor> outputs) {
    join(0);
    return reshaped(outputs);
  }

  bool convolution(std::span<Tensor> outputs) {
    const bool images = rank(0) == ir::spatial_dims(op_) + 2;
    if (held_only(0)) return images ? joined(outputs) : fits(outputs);
    if (size_ == 0) return false;
    // Weights of each slice: groups of channels.
    expand_all();
    if (images)
      tensors_[0] = tensors_[0].transpose(0, 1, Location::none()).flatten(1, 2, Location::none());
    else
      join(0);
    join(1);
    if (is_tensor(2)) join(2);
    attrs_[place("groups")].integer *= size_;
    dispatch(call(), outputs);
    const Ints& sizes = metas_[0].sizes;
    if (!images) {
      outputs[0] = outputs[0].reshape(expected(), call_.location);
      return true;
    }
    std::vector<int64_t> apart(sizes.begin(), sizes.end());
    apart.insert(apart.begin() + 1, size_);
    outputs[0] = outputs[0].reshape(apart, call_.location).transpose(0, 1, call_.location);
    return true;
  }

  bool search(std::span<Tensor> outputs) {
    if (held_[0]) expand_all();
    return fits(outputs);
  }

  bool attention(std::span<Tensor> outputs) {
    size_t highest = 0;
    for (size_t i = 0; i < 3; ++i) {
      expand(i);
      highest = std::max(highest, rank(i));
    }
    for (size_t i = 0; i < 3; ++i) lift(i, highest);
    if (is_tensor(3)) lift(3, highest);
    return fits(outputs);
  }

  /// Along dims that attributes name, each slice by itself.
  bool along(std::span<Tensor> outputs) {
    bool named = false;
    for (size_t i = 0; i < attrs_.size(); ++i) {
      const ArgKind kind = op_.attribute(static_cast<int>(i)).kind;
      if (kind != ArgKind::dim && kind != ArgKind::dims && kind != ArgKind::new_dim) continue;
      // Without dims it is along all elements, as if they had one dim.
      if (!attrs_[i].present() || (kind == ArgKind::dims && attrs_[i].list.empty())) return false;
      named = true;
    }
    if (!named) return false;
    shift_dims();
    expand(0);
    if (op_.list_first) expand_all();
    if (fits(outputs)) return true;
    expand_all();
    return fits(outputs);
  }

  const Batch& batch_;
  const int64_t size_;
  const OpCall& call_;
  const ir::OpInfo& op_;
  const std::span<const OutputMeta> metas_;
  std::vector<Tensor> tensors_;
  std::vector<bool> held_;
  std::vector<Operand> operands_;
  std::vector<ir::Attr> attrs_;
};

}  // namespace

bool Batch::call_wholes(const OpCall& call, std::span<const OutputMeta> metas, std::span<Tensor> outputs) const {
  return WholeCall(*this, size_, call, metas).run(outputs);
}

}  // namespace ingot::eager
