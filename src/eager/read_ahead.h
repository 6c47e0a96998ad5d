// Numbered values that threads make ahead of who takes them, in their order.
#pragma once
#include <cstdint>
#include <functional>
#include <memory>

#include "base/export.h"

namespace ingot::detail {

class INGOT_API ReadAhead {
 public:
  using Make = std::function<std::shared_ptr<void>(int64_t number)>;
  /// Values 0 to count - 1, each made once, at most `ahead` of them before they are taken. `make` is called by several
  /// threads at once; they record gradients if this one does, and leave the thread pool to others.
  ReadAhead(int64_t count, int64_t threads, int64_t ahead, Make make);
  /// Waits for what is being made.
  ~ReadAhead();
  ReadAhead(const ReadAhead&) = delete;
  ReadAhead& operator=(const ReadAhead&) = delete;
  /// Waits for a value, and gives it away; throws what making it threw. Numbers rise; null for one that was given away.
  std::shared_ptr<void> take(int64_t number);

 private:
  struct State;
  const std::shared_ptr<State> state_;
};

}  // namespace ingot::detail
