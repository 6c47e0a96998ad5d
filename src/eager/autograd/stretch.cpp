#include "eager/autograd/stretch.h"

#include <vector>

namespace ingot::autograd {

void join(Node* node, uint64_t first, const StretchPtr& stretch) {
  std::vector<Node*> open{node};
  while (!open.empty()) {
    Node* next = open.back();
    open.pop_back();
    if (!next || next->sequence < first || next->stretch == stretch) continue;
    next->stretch = stretch;
    for (const Edge& edge : next->edges) open.push_back(edge.node.get());
  }
}

}  // namespace ingot::autograd
