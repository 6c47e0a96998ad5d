// Graphs made by hand, by a builder or from text: what compile(ir::Graph) takes. Includes nothing of the compiler
// behind.
#pragma once
#include "ir/builder.h"
#include "ir/graph.h"
