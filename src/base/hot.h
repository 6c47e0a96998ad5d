// Marks what each call of a compiled function passes through: it lies together in the library, so that a short call
// touches few lines and pages of code, wherever other code grows.
#pragma once

#define INGOT_HOT __attribute__((hot))
