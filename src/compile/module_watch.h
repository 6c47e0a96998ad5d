// Whether the tensors and modules that a module holds are still those of before, whatever way they were assigned.
#pragma once
#include <memory>
#include <vector>

#include "compile/compile.h"
#include "eager/nn/module.h"

namespace ingot::detail {

/// What the fields of a module and of those below it held when it was made: parameters, buffers, modules, lengths of
/// lists, and whether each module was training. It holds on to all of them, so that no address comes again.
class ModuleWatch {
 public:
  explicit ModuleWatch(WatchedFunction function);
  /// True if all fields hold what they held. No field of a module is looked at that is not held any more.
  bool unchanged() const;

 private:
  class Taker;
  struct Field {
    enum class Kind : uint8_t { tensor, handle, holder, training } kind;
    const void* at;
    const void* held;  // tensor, handle: its address
    nn::ExtentOf extent_of = nullptr;
    nn::Extent extent = {};  // of a holder; training: size
    friend bool operator==(const Field&, const Field&) = default;
  };

  WatchedFunction function_;
  std::vector<Field> fields_;  // in the order of visits: what a module holds follows it
  bool walks_ = false;         // elements of some list may be anywhere: fields are visited anew
  std::vector<Tensor> tensors_;
  std::vector<std::shared_ptr<nn::Module>> modules_;
};

}  // namespace ingot::detail
