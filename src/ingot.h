// Ingot: eager tensors and compile(). The one header to include.
#pragma once
#include "compile/compare.h"
#include "compile/compile.h"
#include "eager/factories.h"
#include "eager/functions.h"
#include "eager/linalg.h"
#include "eager/nn/layers.h"
#include "eager/nn/windows.h"
#include "eager/random.h"
#include "eager/selection.h"
#include "eager/serialization.h"
#include "runtime/thread_pool.h"
