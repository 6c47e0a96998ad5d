// Padding as layers, in every mode of functional::pad and for one to three spatial dims.
#pragma once
#include "eager/nn/module.h"

namespace ingot::nn {

/// What is put around the last dims of an input: one number for both sides of all of them, or pairs (before, after)
/// from the last dim inwards; a negative number cuts. All but constants are for [N, C, ...] or [C, ...].
struct INGOT_API PadImpl : Layer {
  Ints padding;  // pairs
  double value;
  Tensor forward(const TensorArg& x) const;

 protected:
  PadImpl(const char* layer, int64_t spatial, const char* mode, const IntList& around, double fill = 0);

 private:
  const char *layer_, *mode_;
};

#define INGOT_PAD(NAME, spatial, mode)                                                     \
  struct INGOT_API NAME##Impl : PadImpl {                                                  \
    explicit NAME##Impl(const IntList& around) : PadImpl(#NAME, spatial, mode, around) {}  \
  };                                                                                       \
  class NAME : public HandleFrom<NAME, NAME##Impl, From<std::initializer_list<SizeArg>>> { \
   public:                                                                                 \
    using HandleFrom::HandleFrom;                                                          \
    INGOT_MODULE_FIELDS(NAME)                                                              \
  }
INGOT_PAD(ZeroPad1d, 1, "constant");
INGOT_PAD(ZeroPad2d, 2, "constant");
INGOT_PAD(ZeroPad3d, 3, "constant");
INGOT_PAD(ReflectionPad1d, 1, "reflect");
INGOT_PAD(ReflectionPad2d, 2, "reflect");
INGOT_PAD(ReflectionPad3d, 3, "reflect");
INGOT_PAD(ReplicationPad1d, 1, "replicate");
INGOT_PAD(ReplicationPad2d, 2, "replicate");
INGOT_PAD(ReplicationPad3d, 3, "replicate");
INGOT_PAD(CircularPad1d, 1, "circular");
INGOT_PAD(CircularPad2d, 2, "circular");
INGOT_PAD(CircularPad3d, 3, "circular");
#undef INGOT_PAD

#define INGOT_CONSTANT_PAD(NAME, spatial)                                                                 \
  struct INGOT_API NAME##Impl : PadImpl {                                                                 \
    NAME##Impl(const IntList& around, double fill) : PadImpl(#NAME, spatial, "constant", around, fill) {} \
  };                                                                                                      \
  class NAME : public HandleFrom<NAME, NAME##Impl, From<const IntList&, double>> {                        \
   public:                                                                                                \
    using HandleFrom::HandleFrom;                                                                         \
    INGOT_MODULE_FIELDS(NAME)                                                                             \
  }
INGOT_CONSTANT_PAD(ConstantPad1d, 1);
INGOT_CONSTANT_PAD(ConstantPad2d, 2);
INGOT_CONSTANT_PAD(ConstantPad3d, 3);
#undef INGOT_CONSTANT_PAD

}  // namespace ingot::nn
