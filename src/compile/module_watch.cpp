#include "compile/module_watch.h"

#include <algorithm>
#include <span>

namespace ingot::detail {

class ModuleWatch::Taker : public nn::Fields {
 public:
  explicit Taker(ModuleWatch& watch) : watch_(watch) {}
  void child(const std::string&, nn::Module& module) override {
    watch_.known_.insert(&module);
    watch_.fields_.push_back(
        {Field::Kind::module, &module, module.hooks().get(), nullptr, {nullptr, module.is_training()}});
    if (module.hooks()) watch_.hooks_.push_back(module.hooks());
    module.visit(*this);
  }

 protected:
  void parameter(const std::string&, Tensor& tensor) override {
    watch_.fields_.push_back({Field::Kind::tensor, &tensor, tensor.impl()});
    watch_.tensors_.push_back(tensor);
  }
  void buffer(const std::string& name, Tensor& tensor, nn::BufferKind) override { parameter(name, tensor); }
  void handle(nn::HandleBase& handle) override {
    watch_.fields_.push_back({Field::Kind::handle, &handle, handle.module().get()});
    watch_.modules_.push_back(handle.module());
  }
  void holder(const void* field, nn::ExtentOf extent_of) override {
    if (!extent_of) watch_.walks_ = true;
    watch_.fields_.push_back(
        {Field::Kind::holder, field, nullptr, extent_of, extent_of ? extent_of(field) : nn::Extent()});
  }

 private:
  ModuleWatch& watch_;
};

ModuleWatch::ModuleWatch(WatchedFunction function, const Modules& called) : function_(function) {
  Taker taker(*this);
  if (function_.show) function_.show(function_.object, taker);
  ends_.push_back(fields_.size());
  for (const std::weak_ptr<nn::Module>& one : called)
    if (const std::shared_ptr<nn::Module> module = one.lock(); module && !watches(module.get())) {
      called_.push_back(one);
      taker.child(std::string(), *module);
      ends_.push_back(fields_.size());
    }
}

bool ModuleWatch::unchanged() const {
  if (walks_) return ModuleWatch(function_, called_).fields_ == fields_;
  const std::span<const Field> fields(fields_);
  if (!std::all_of(fields.begin(), fields.begin() + static_cast<ptrdiff_t>(ends_[0]), holds)) return false;
  for (size_t i = 0; i < called_.size(); ++i) {
    const std::shared_ptr<nn::Module> alive = called_[i].lock();
    const std::span<const Field> its = fields.subspan(ends_[i], ends_[i + 1] - ends_[i]);
    if (!alive || !std::all_of(its.begin(), its.end(), holds)) return false;
  }
  return true;
}

bool ModuleWatch::holds(const Field& field) {
  switch (field.kind) {
    case Field::Kind::tensor:
      return static_cast<const Tensor*>(field.at)->impl() == field.held;
    case Field::Kind::handle:
      return static_cast<const nn::HandleBase*>(field.at)->module().get() == field.held;
    case Field::Kind::holder:
      return field.extent_of(field.at) == field.extent;
    case Field::Kind::module: {
      const nn::Module& module = *static_cast<const nn::Module*>(field.at);
      return module.is_training() == (field.extent.size != 0) && module.hooks().get() == field.held;
    }
  }
  return false;
}

}  // namespace ingot::detail
