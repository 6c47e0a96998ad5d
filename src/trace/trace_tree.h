// The tree of one recorder: it grows where a call does what none before it did.
#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

#include "eager/call/dispatch.h"
#include "trace/call_memory.h"
#include "trace/function.h"
#include "trace/node.h"
#include "trace/segment.h"

namespace ingot::trace {

class TraceTree {
 public:
  explicit TraceTree(Function& function);
  ~TraceTree();
  TraceTree(const TraceTree&) = delete;

  Node& root() { return root_; }
  const Node& root() const { return root_; }
  /// Number of nodes.
  size_t size() const { return size_; }

  /// A new child of the segment's cursor for a call that is none of them. Throws what the user did wrong, with nothing
  /// recorded.
  Node* record(const eager::OpCall& call, Segment& segment, const CallMemory& memory);
  /// The flush that ends the segment, new where no call ended here before.
  Node* flush_node(const Segment& segment, const char* reason, Location location);
  /// Before a node is taken: where sizes reach it or belong to it, those of this call become its own, and where its
  /// outputs follow from others than before, they are inferred again. What refuses the call throws, with nothing
  /// recorded.
  void refresh(Node& node, const eager::OpCall& call, Segment& segment) {
    if (node.shapes_in != segment.shapes() || brings_others(node, call, segment)) take_sizes(node, call, segment);
  }

  /// Cuts off the branches that hold no flush which a second call has reached, the latest not before call `since`.
  /// Nobody may hold a pointer into the tree.
  void prune(int64_t since);
  /// The call in the middle of the latest uses of all flushes.
  int64_t median_use() const;

 private:
  /// Whether sizes that belong to the node are other ones than in the latest call. Here, since each op of each call
  /// asks.
  static bool brings_others(const Node& node, const eager::OpCall& call, Segment& segment) {
    for (const SlotRecord& slot : node.slots) {
      const detail::TensorImpl& impl = *segment.bound()[slot.slot];
      if (slot.offset != impl.offset || !slot.same_layout(impl)) return true;
    }
    for (size_t i = 0; i < node.attrs.size() && node.size_attrs >> i; ++i)
      if (node.size_attrs >> i & 1 && !(node.attrs[i].list == call.attrs[i].list)) return true;
    return false;
  }
  Node* add(std::unique_ptr<Node> node, Node& parent);
  void take_sizes(Node& node, const eager::OpCall& call, Segment& segment);
  void infer_again(Node& node, const eager::OpCall& call);

  Function& function_;
  Node root_;
  size_t size_ = 1;
  uint64_t next_shapes_ = 0, changes_ = 1;  // see Node
  std::vector<eager::OutputMeta> metas_;
};

}  // namespace ingot::trace
