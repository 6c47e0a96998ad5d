// The one interception point: every op, eager or traced, is an OpCall that passes here.
#pragma once
#include <cstdint>
#include <span>
#include <string>

#include "eager/tensor.h"
#include "ir/op.h"

namespace ingot::ir {
struct Graph;
struct Operand;
}  // namespace ingot::ir

namespace ingot::eager {

/// An operand of a call: nothing, a tensor (borrowed), or a scalar with its category.
struct Operand {
  enum class Kind : uint8_t { none, tensor, scalar } kind = Kind::none;
  Category category = Category::floating;
  uint8_t special = 0;  // not 0: the number of the row's special value that this scalar is, counted from 1
  const Tensor* tensor = nullptr;
  double number = 0;         // floating
  int64_t integer = 0;       // boolean, integer
  uint64_t size_origin = 0;  // of a size (eager/size.h)
  Operand() = default;
  Operand(const Tensor& t) : kind(t.defined() ? Kind::tensor : Kind::none), tensor(&t) {}
  Operand(const Scalar& s)
      : kind(Kind::scalar), category(s.category()), number(s.to_double()), integer(s.to_int64_saturated()) {}
};

/// Marks a scalar whose value is one of those that operand `number` of the op has code of its own for.
void note_special(OpId op, int number, Operand* operand);
/// A scalar as an operand of a graph: a constant if it is special, else a new run-time scalar.
ir::Operand scalar_operand(ir::Graph& graph, const Operand& operand);

/// One call of an op, on the caller's stack. A list of tensors comes first, its members one by one.
struct OpCall {
  OpId op;
  bool inplace = false;  // the result is written to operand 0, which is also the output
  std::span<const Operand> operands;
  std::span<const ir::Attr> attrs;
  Location location;
};

/// What an output of a call looks like, known before anything is computed.
struct OutputMeta {
  DType dtype;
  Ints sizes, strides;
  int64_t offset = 0;  // elements, views only
  bool alias = false;  // shares the storage of operand 0 (a view, or the in-place result itself)
  friend bool operator==(const OutputMeta&, const OutputMeta&) = default;
};

/// Types, shapes and layouts of the outputs; throws Error for what the user got wrong. Reads no data.
void infer_outputs(const OpCall& call, std::span<OutputMeta> outputs);

/// Replaces immediate execution on this thread (the tracer). Interceptors nest; the innermost sees the call.
class Interceptor {
 public:
  virtual ~Interceptor() = default;
  virtual void call(const OpCall& call, std::span<Tensor> outputs) = 0;
  /// A pending tensor's data, or any storage that recorded calls will write, is needed now: compute what was recorded.
  virtual void flush(const char* reason, Location location) = 0;
  /// A pointer to a tensor's memory is given to the user, after a flush: what is done through it is not seen.
  virtual void hand_out(const detail::TensorImpl&, bool /*writable*/) {}
};
Interceptor* current_interceptor();
/// Sets the interceptor of this thread; returns the previous one.
Interceptor* set_interceptor(Interceptor* interceptor);
/// None on this thread while it lives.
struct WithoutInterceptor {
  Interceptor* interceptor = set_interceptor(nullptr);
  WithoutInterceptor() = default;
  ~WithoutInterceptor() { set_interceptor(interceptor); }
  WithoutInterceptor(const WithoutInterceptor&) = delete;
};

/// Validates nothing: executes now, on this thread, whatever is intercepted.
void execute(const OpCall& call, std::span<Tensor> outputs);
/// The door: to the interceptor if there is one, else execute.
void dispatch(const OpCall& call, std::span<Tensor> outputs);

}  // namespace ingot::eager
