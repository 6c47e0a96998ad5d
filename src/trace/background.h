// One thread that compiles while calls run eagerly.
#pragma once
#include <functional>

namespace ingot::trace {

/// Runs the task on the compiling thread, after those before it. Tasks that have not begun when the process ends are
/// dropped.
void run_in_background(std::function<void()> task);

}  // namespace ingot::trace
