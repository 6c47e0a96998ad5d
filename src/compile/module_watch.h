// Whether the tensors and modules that modules hold are still those of before, whatever way they were assigned.
#pragma once
#include <memory>
#include <unordered_set>
#include <vector>

#include "compile/compile.h"
#include "eager/nn/module.h"

namespace ingot::detail {

/// What the fields of some modules and of those below them held when it was made: parameters, buffers, modules, lengths
/// of lists, each module's hooks, and whether it was training. It holds on to what they hold, so that no address comes
/// again.
class ModuleWatch {
 public:
  using Modules = std::vector<std::weak_ptr<nn::Module>>;
  /// Of the function, if it is a module, and of those `called` that are not below it or one before them.
  ModuleWatch(WatchedFunction function, const Modules& called);
  /// True if these modules live and all fields hold what they held. No field of a module is looked at that is not held
  /// any more.
  bool unchanged() const;
  bool watches(const nn::Module* module) const { return known_.count(module) != 0; }
  /// Those called that are watched for themselves.
  const Modules& called() const { return called_; }

 private:
  class Taker;
  struct Field {
    enum class Kind : uint8_t { tensor, handle, holder, module } kind;
    const void* at;
    const void* held;  // tensor, handle, a module's hooks: its address
    nn::ExtentOf extent_of = nullptr;
    nn::Extent extent = {};  // of a holder; size: whether a module is training
    friend bool operator==(const Field&, const Field&) = default;
  };

  static bool holds(const Field& field);

  WatchedFunction function_;
  Modules called_;
  std::vector<size_t> ends_;  // of fields_: of those of the function, then of each of called_
  std::unordered_set<const nn::Module*> known_;
  std::vector<Field> fields_;  // in the order of visits: what a module holds follows it
  bool walks_ = false;         // elements of some list may be anywhere: fields are visited anew
  std::vector<Tensor> tensors_;
  std::vector<std::shared_ptr<nn::Module>> modules_;
  std::vector<std::shared_ptr<const nn::detail::Hooks>> hooks_;
};

}  // namespace ingot::detail
