// Limits that a container or a service puts on this process.
#pragma once
#include <functional>
#include <string>

namespace ingot::runtime {

/// The first line of a file; empty if it cannot be read.
std::string first_line(const std::string& path);

/// Gives the folder of our control group for "cpu" or "memory" and those of all groups above, of cgroup version 2 or 1.
/// A limit on any of them holds. In a container the inner folders may not exist: its root then has the limit.
void each_control_group(const std::string& controller,
                        const std::function<void(const std::string& folder, bool version2)>& visit);

}  // namespace ingot::runtime
