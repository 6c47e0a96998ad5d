// The threads that the library starts.
#pragma once
#include <functional>
#include <string>

namespace ingot {

/// Starts a thread that runs `body` and is never joined; it may sleep on while the process ends, so it uses only what
/// is never destroyed. It leaves signals to the user's threads, but for those that its own instructions raise and the
/// profiler's, and computes in the default environment whatever the modes of the thread that starts it. Throws
/// std::system_error.
void start_thread(const std::string& name, std::function<void()> body);

}  // namespace ingot
