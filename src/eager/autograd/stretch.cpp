#include "eager/autograd/stretch.h"

namespace ingot::autograd {

void join(Node* node, uint64_t first, const StretchPtr& stretch, std::vector<Node*>& joined) {
  std::vector<Node*> open{node};
  while (!open.empty()) {
    Node* next = open.back();
    open.pop_back();
    if (!next || next->sequence < first || next->stretch == stretch) continue;
    next->stretch = stretch;
    joined.push_back(next);
    for (const Edge& edge : next->edges) open.push_back(edge.node.get());
  }
}

}  // namespace ingot::autograd
