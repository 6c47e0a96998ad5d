// Applies a macro to each of its further arguments, comma-separated. The rescanning is that of David Mazieres,
// "Recursive macros with C++20 __VA_OPT__".
#pragma once

#define INGOT_FOR_EACH(macro, ...) __VA_OPT__(INGOT_EXPAND(INGOT_FOR_EACH_STEP(macro, __VA_ARGS__)))
#define INGOT_FOR_EACH_STEP(macro, first, ...) \
  macro(first) __VA_OPT__(, INGOT_FOR_EACH_AGAIN INGOT_PARENS(macro, __VA_ARGS__))
#define INGOT_FOR_EACH_AGAIN() INGOT_FOR_EACH_STEP
#define INGOT_PARENS ()
#define INGOT_EXPAND(...) INGOT_EXPAND3(INGOT_EXPAND3(INGOT_EXPAND3(INGOT_EXPAND3(__VA_ARGS__))))
#define INGOT_EXPAND3(...) INGOT_EXPAND2(INGOT_EXPAND2(INGOT_EXPAND2(INGOT_EXPAND2(__VA_ARGS__))))
#define INGOT_EXPAND2(...) INGOT_EXPAND1(INGOT_EXPAND1(INGOT_EXPAND1(INGOT_EXPAND1(__VA_ARGS__))))
#define INGOT_EXPAND1(...) __VA_ARGS__
