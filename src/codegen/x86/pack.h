// Code that packs the panels which matrix-product tiles read.
#pragma once
#include "codegen/kernel_ir.h"
#include "codegen/x86/vcode.h"

namespace ingot::codegen::x86 {

void emit_pack(const PackSpec& spec, VCode& code);

}  // namespace ingot::codegen::x86
