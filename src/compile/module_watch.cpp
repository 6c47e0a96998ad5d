#include "compile/module_watch.h"

#include <algorithm>

namespace ingot::detail {

class ModuleWatch::Taker : public nn::Fields {
 public:
  explicit Taker(ModuleWatch& watch) : watch_(watch) {}

 protected:
  void parameter(const std::string&, Tensor& tensor) override {
    watch_.fields_.push_back({Field::Kind::tensor, &tensor, tensor.impl()});
    watch_.tensors_.push_back(tensor);
  }
  void buffer(const std::string& name, Tensor& tensor, nn::BufferKind) override { parameter(name, tensor); }
  void child(const std::string&, nn::Module& module) override {
    watch_.fields_.push_back({Field::Kind::training, &module, nullptr, nullptr, {nullptr, module.is_training()}});
    module.visit(*this);
  }
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

ModuleWatch::ModuleWatch(WatchedFunction function) : function_(function) {
  Taker taker(*this);
  function_.show(function_.object, taker);
}

bool ModuleWatch::unchanged() const {
  if (walks_) return ModuleWatch(function_).fields_ == fields_;
  for (const Field& field : fields_) {
    switch (field.kind) {
      case Field::Kind::tensor:
        if (static_cast<const Tensor*>(field.at)->impl() != field.held) return false;
        break;
      case Field::Kind::handle:
        if (static_cast<const nn::HandleBase*>(field.at)->module().get() != field.held) return false;
        break;
      case Field::Kind::holder:
        if (!(field.extent_of(field.at) == field.extent)) return false;
        break;
      case Field::Kind::training:
        if (static_cast<const nn::Module*>(field.at)->is_training() != (field.extent.size != 0)) return false;
        break;
    }
  }
  return true;
}

}  // namespace ingot::detail
