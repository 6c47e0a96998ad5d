// A recorder that goes back to its pool.
#pragma once
#include <memory>

namespace ingot::trace {

class Recorder;
class RecorderPool;

struct GiveBack {
  RecorderPool* pool = nullptr;
  void operator()(Recorder* recorder) const;
};
using LentRecorder = std::unique_ptr<Recorder, GiveBack>;

}  // namespace ingot::trace
