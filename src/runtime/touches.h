// What steps have touched since threads last waited for one another, and whether a further step must wait for them.
#pragma once
#include <cstdint>
#include <vector>

#include "base/program.h"

namespace ingot::runtime {

/// A piece of memory that a step touches.
struct Touched {
  Place place;
  bool read_only = false;
  uint32_t number = 0;         // output, kept
  int64_t begin = 0, end = 0;  // arena
};

/// Two pieces are in conflict where one of them is written and they may be the same memory: pieces of the arena that
/// meet, the same output, the same kept buffer; and an output may be the memory of any input.
class Touches {
 public:
  void add(const Touched& piece);
  bool conflicts_with(const Touched& piece) const;
  void clear();
  /// Steps of searches since it was made.
  uint64_t work() const { return work_; }

 private:
  /// Pieces of the arena as their union, from which who meets one of them is found by bisection.
  class Union {
   public:
    uint64_t add(int64_t begin, int64_t end);
    bool meets(int64_t begin, int64_t end) const;
    void clear() { parts_.clear(); }

   private:
    struct Part {
      int64_t begin, end;
    };
    std::vector<Part> parts_;  // in order, with gaps between them
  };
  /// Numbers, forgotten all at once.
  class Numbers {
   public:
    void add(uint32_t number);
    bool has(uint32_t number) const { return number < times_.size() && times_[number] == time_; }
    bool any() const { return any_; }
    void clear() { ++time_, any_ = false; }

   private:
    std::vector<uint32_t> times_;
    uint32_t time_ = 1;
    bool any_ = false;
  };
  template <class Set>
  struct Kinds {
    Set touched, written;
    const Set& against(const Touched& piece) const { return piece.read_only ? written : touched; }
    void clear() { touched.clear(), written.clear(); }
  };

  Kinds<Union> arena_;
  Kinds<Numbers> outputs_, kept_;
  bool inputs_ = false;
  uint64_t work_ = 0;
};

}  // namespace ingot::runtime
