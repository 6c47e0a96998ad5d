// The tensors and modules of a tree of modules, under their names. Not in the API.
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "eager/nn/module.h"

namespace ingot::nn::detail {

/// A tensor of a module that is there.
struct Slot {
  std::string name;
  Tensor* tensor;
  bool buffer;
  BufferKind kind = BufferKind::plain;
};

/// The whole tree under full names.
class Gather : public Fields {
 public:
  std::vector<Slot> slots;
  Module::NamedModules modules, children;

  explicit Gather(Module& root) {
    modules.emplace_back("", &root);
    root.visit(*this);
  }

 protected:
  void parameter(const std::string& name, Tensor& tensor) override {
    add({name, &tensor, tensor.defined() && !tensor.is_floating_point()});
  }
  void buffer(const std::string& name, Tensor& tensor, BufferKind kind) override { add({name, &tensor, true, kind}); }
  // As deep as the user's types and vectors nest.
  void child(const std::string& name, Module& module) override {
    if (prefix_.empty()) children.emplace_back(name, &module);
    modules.emplace_back(prefix_ + name, &module);
    size_t length = prefix_.size();
    prefix_ += name + ".";
    module.visit(*this);
    prefix_.resize(length);
  }

 private:
  void add(Slot slot) {
    if (!slot.tensor->defined()) return;
    slot.name.insert(0, prefix_);
    slots.push_back(std::move(slot));
  }
  std::string prefix_;
};

}  // namespace ingot::nn::detail
