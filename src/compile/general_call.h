// A call of a frozen function that can be repeated at other sizes, by its script.
#pragma once
#include <atomic>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "compile/frozen_call.h"
#include "eager/call/script.h"
#include "trace/recorder.h"

namespace ingot::detail {

/// A call with its script, which can be repeated at other sizes of the free dims: those in which calls differed that
/// the script foretold. None is free as long as there was no such call.
struct GeneralCall {
  CallKey key;
  std::shared_ptr<const ModuleWatch> watch;
  std::vector<LeafGuard> guards;
  std::vector<std::vector<bool>> free;  // the dims of each leaf
  bool any_free = false;
  eager::Script script;
  std::vector<eager::ScriptTensor> result;
  ResultForm form;
  mutable std::atomic<uint64_t> latest{0};  // when it was of use
  mutable std::atomic<int> wrong{0};        // times that it foretold something else than what the callable did

  GeneralCall() = default;
  GeneralCall(const GeneralCall& other);
  /// True if it differs from what was seen in sizes of free dims only, and there are some.
  bool holds(const LeafList& arguments, const CallKey& key) const;
  /// True if it differs in sizes and identities only: the script may foretell it.
  bool is_like(const LeafList& arguments, const CallKey& key) const;
  /// Repeats the script with the recorder. False, with nothing computed, where it would go another way.
  bool repeat(const Arguments& arguments, trace::Recorder& recorder, std::vector<Tensor>& results) const;
  /// The same after the callable, to see what the script does: it may write just what the callable wrote, which is put
  /// back.
  bool try_out(const Arguments& arguments, trace::Recorder& recorder, std::span<const Tensor> writes,
               std::vector<Tensor>& results) const;
  /// Sizes that are others in a call which the script foretold are free from now on; identities as many as both saw.
  void free_sizes(const std::vector<LeafGuard>& foretold);
  /// What the script has foretold holds for as many tensors as the script does; but an argument that is captured as
  /// well may stand in `call` for what is captured.
  void give_identities(FrozenCall& call, const Arguments& arguments) const;
  /// True if the callable used this very tensor without being given it.
  bool captures(const Tensor& tensor) const;
};

}  // namespace ingot::detail
