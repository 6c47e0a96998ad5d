#include "runtime/control_group.h"

#include <fstream>

namespace ingot::runtime {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string line;
  std::getline(file, line);
  return line;
}

void each_control_group(const std::string& controller,
                        const std::function<void(const std::string& folder, bool version2)>& visit) {
  std::ifstream groups("/proc/self/cgroup");
  std::string line;
  while (std::getline(groups, line)) {
    const size_t first = line.find(':'), second = line.find(':', first + 1);
    if (second == std::string::npos) continue;
    const std::string controllers = line.substr(first + 1, second - first - 1);
    const bool version2 = controllers.empty();
    if (!version2 && (',' + controllers + ',').find(',' + controller + ',') == std::string::npos) continue;
    const std::string root = version2 ? "/sys/fs/cgroup" : "/sys/fs/cgroup/" + controller;
    for (std::string path = line.substr(second + 1);; path = path.substr(0, path.rfind('/'))) {
      visit(root + path, version2);
      if (path.empty() || path == "/") break;
    }
  }
}

}  // namespace ingot::runtime
