// One thread that compiles while calls run eagerly.
#pragma once
#include <functional>

namespace ingot::trace {

/// Runs the task on the compiling thread, after those before it. Tasks that have not ended when the process ends are
/// dropped; the thread uses only what is never destroyed.
void compile_in_background(std::function<void()> task);
/// In a child made by fork(), where the thread is missing, starts it again if tasks are left.
void resume_background();

}  // namespace ingot::trace
