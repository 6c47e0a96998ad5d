// Batches of vmap: tensors that are slices of a whole, and what becomes of calls of them.
#pragma once
#include "eager/call/dispatch.h"

namespace ingot::eager {

/// What random ops draw for the slices of a batch.
enum class Randomness : uint8_t { error, different, same };

/// One vmap, or a part of its batch: stands in the chain of its thread while it lives, before the one around it. Its
/// tensors, the slices, have dtype and sizes of one slice and no memory: behind each stands its whole, dim 0 of which
/// is the batch. A call of slices becomes one of wholes where the op's row tells how (batch_rules.cpp); a composite is
/// else called as the ops that it is made of, and what is left once for each slice. These calls go on along the chain:
/// a tape, or a recorder, sees no slices. Where no batch stands that could tell what is behind a slice, it has no value
/// (eager/data.h, materialize).
class Batch final : public Interceptor {
 public:
  Batch(int64_t size, Randomness randomness);
  ~Batch() override;
  static Batch* current() { return static_cast<Batch*>(interceptor(Stage::batch)); }
  Batch* outer() const { return outer_; }
  int64_t size() const { return size_; }

  bool holds(const Tensor& tensor) const;
  /// A whole as a slice.
  Tensor slice_of(const Tensor& whole) const;
  /// What stands behind a slice; of any other tensor, which is the same for all slices, a view expanded to the batch.
  Tensor whole_of(const Tensor& tensor) const;
  /// How many draws a random call takes for each that one slice takes, in all batches of the thread. Throws Error where
  /// one of them has no random numbers.
  static int64_t draws(const OpCall& call);

  void call(const OpCall& call, std::span<Tensor> outputs) override;
  std::vector<Tensor> call(const OpaqueCall& call) override;

 private:
  // Each of these is run with the batch around this one in the chain.
  /// One call of wholes, where the row has a rule; gives wholes.
  bool call_wholes(const OpCall& call, std::span<const OutputMeta> metas, std::span<Tensor> outputs) const;
  /// A composite as the calls that it is made of; gives slices.
  bool call_parts(const OpCall& call, std::span<Tensor> outputs);
  /// One call after another; gives wholes. `draws`: that a slice takes more than the one before it.
  void call_slices(const OpCall& call, std::span<const OutputMeta> metas, std::span<Tensor> outputs,
                   int64_t draws = 0) const;
  /// Gives wholes, or false: the call has nothing to do with the batch.
  bool call_random(const OpCall& call, std::span<const OutputMeta> metas, std::span<Tensor> outputs) const;

  const uint64_t id_;
  const int64_t size_;
  const Randomness randomness_;
  Batch* const outer_;
};

/// Whether a tensor is a slice, of any batch.
bool is_slice(const detail::TensorImpl& tensor);
/// The tensor as a slice of all batches of this thread.
Tensor sliced(const Tensor& tensor);
/// A tensor that was just made, as a slice of those batches that `like` is a slice of: what is written to it may be.
Tensor sliced_like(const Tensor& made, const Tensor& like);
/// Throws Error where a value, or something else that each slice has one of, is asked for.
[[noreturn]] void fail_slice(std::string_view op, Location location);

}  // namespace ingot::eager
