// The one interception point: every op, eager or traced, is an OpCall that passes here, through one chain of stages.
#pragma once
#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <vector>

#include "eager/tensor.h"
#include "ir/op.h"

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
  uint64_t origin = 0;       // names a scalar that the tape keeps: where it comes again, it is the same one
  bool is_tensor() const { return kind == Kind::tensor; }
  Operand() = default;
  Operand(const Tensor& t) : kind(t.defined() ? Kind::tensor : Kind::none), tensor(&t) {}
  Operand(const Scalar& s)
      : kind(Kind::scalar), category(s.category()), number(s.to_double()), integer(s.to_int64_saturated()) {}
};

/// One call of an op, on the caller's stack. A list of tensors comes first, its members one by one.
struct OpCall {
  OpId op;
  bool inplace = false;  // the result is written to operand 0, which is also the output
  std::span<const Operand> operands;
  std::span<const ir::Attr> attrs;
  Location location;
  const ir::Derivative* derivative = nullptr;  // not the op, but its vector-Jacobian product
};

/// What an output of a call looks like, known before anything is computed.
struct OutputMeta {
  DType dtype;
  Ints sizes, strides;
  int64_t offset = 0;  // elements, views only
  bool alias = false;  // shares the storage of operand 0 (a view, or the in-place result itself)
  friend bool operator==(const OutputMeta&, const OutputMeta&) = default;
};

/// A function of the user's own as an op (custom_op): its body runs as it is. It gives the tensors that it made.
struct OpaqueCall {
  const std::string& name;
  Location location;
  const std::function<std::vector<Tensor>()>& body;
};

/// What a call meets on its way to being executed, in this order: who will run it again, changes dtypes, knows of
/// slices of a vmap, writes a tape, looks on, records. A thread's chain holds at most one of each; where it holds none,
/// a call costs one branch.
enum class Stage : uint8_t { checkpoint, autocast, batch, autograd, observe, record, count_ };

/// Stands in the chain of a thread.
class Interceptor {
 public:
  constexpr explicit Interceptor(Stage stage) : stage_(stage) {}
  virtual ~Interceptor() = default;
  Stage stage() const { return stage_; }
  /// Does the call: hands it on by proceed(), before or after what it does itself, or does it in another way.
  virtual void call(const OpCall& call, std::span<Tensor> outputs) = 0;
  virtual std::vector<Tensor> call(const OpaqueCall& call);
  /// A pending tensor's data, or any storage that recorded calls will write, is needed now: compute what was recorded.
  virtual void flush(const char* /*reason*/, Location) {}
  /// A pointer to a tensor's memory is given to the user, after a flush: what is done through it is not seen.
  virtual void hand_out(const detail::TensorImpl&, bool /*writable*/) {}
  /// Number of writes that the memory of a tensor has seen, with those that were recorded and not done yet.
  virtual uint64_t writes_to(const detail::TensorImpl& tensor) const;
  /// Something outside of all tensors has followed from what was called so far (a gradient's place, an optimizer's
  /// state): `undo` takes it back if one of these calls is refused when it is computed.
  virtual void on_refusal(std::function<void()> /*undo*/) {}
  /// Another handle of a tensor that is pending here, off the tape, without a call of its own; undefined: it is not.
  virtual Tensor another_handle(const detail::TensorImpl&) { return {}; }
  /// Whether a tensor that is pending here will have memory that no other tensor sees.
  virtual bool will_own_memory(const detail::TensorImpl&) const { return false; }

 protected:
  /// To the stages that stand behind this one, then to execute().
  void proceed(const OpCall& call, std::span<Tensor> outputs) const;
  std::vector<Tensor> proceed(const OpaqueCall& call) const;

 private:
  Stage stage_;
};

/// Who stands in this place of this thread's chain, or null.
Interceptor* interceptor(Stage stage);
/// Puts another one there, or none; returns the one before.
Interceptor* set_interceptor(Stage stage, Interceptor* interceptor);
/// True if this thread's calls are recorded, or somebody looks on, or will run them again, or they stand for more than
/// one each: which ops are called must not hang on values, nor on whether they are recorded.
bool intercepted();
/// Number of writes that the memory of a tensor has seen, with those that this thread has recorded and not done yet.
uint64_t writes_to(const detail::TensorImpl& tensor);
/// To all who stand in the chain, in order.
void flush(const char* reason, Location location);
void hand_out(const detail::TensorImpl& tensor, bool writable);

/// The chain of this thread, with who stands in each place.
struct Chain {
  uint32_t stages = 0;  // bit i: someone stands at stage i
  Interceptor* at[static_cast<size_t>(Stage::count_)] = {};
};
/// A chain without this stage and those behind it while it lives, on this thread: from all of them, calls are executed.
class WithoutInterceptors {
 public:
  explicit WithoutInterceptors(Stage from = Stage::checkpoint);
  ~WithoutInterceptors();
  WithoutInterceptors(const WithoutInterceptors&) = delete;

 private:
  Chain chain_;
};

/// Another one in a place of this thread's chain, or none, while it lives.
class InterceptorScope {
 public:
  InterceptorScope(Stage stage, Interceptor* interceptor)
      : stage_(stage), outer_(set_interceptor(stage, interceptor)) {}
  ~InterceptorScope() { set_interceptor(stage_, outer_); }
  InterceptorScope(const InterceptorScope&) = delete;

 private:
  const Stage stage_;
  Interceptor* const outer_;
};

/// The door: through the chain of this thread.
void dispatch(const OpCall& call, std::span<Tensor> outputs);
std::vector<Tensor> dispatch(const OpaqueCall& call);

}  // namespace ingot::eager
