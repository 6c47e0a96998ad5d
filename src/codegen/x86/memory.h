// Loads and stores of a kernel's buffers and locals. None touches a byte outside of the columns that exist.
#pragma once
#include <vector>

#include "codegen/x86/streams.h"

namespace ingot::codegen::x86 {

class Memory {
 public:
  Memory(const Analysis& analysis, Vectors& vectors, Frame& frame, Streams& streams)
      : analysis_(analysis),
        k_(analysis.kernel()),
        v_(vectors),
        code_(vectors.code()),
        frame_(frame),
        streams_(streams) {}

  /// Once a call: what gathers multiply and add.
  void prepare_gathers();
  /// `index`: where there is one that its stream does not have. `one_reader`: it may be given as it lies in memory.
  Vector load(Value v, Vector* index, bool one_reader);
  Vector load_local(Value v, bool one_reader);
  void store(const Store& store, Vector& x);
  void store_local(uint32_t local, Vector& x);
  /// One element, at column 0 of the row.
  void store_row(uint32_t buffer, Vector& x);
  /// The step's 16 elements side by side, or those of the tail.
  Vector load_dense(DType d, const Mem& from);
  void store_dense(DType d, Vector& x, const Mem& to);

 private:
  Vector as_it_lies(Type type, const Mem& from);
  template <class Address>
  Vector from_lanes(Type type, Address address);
  Vector every_other(Type type);
  Vector load_strided(const Node& n, const Buffer& b, Stream& s);
  Vector load_by_lane(const Node& n, Stream& s, Vector* index);
  void spread_strided(const Buffer& b, Vector& x, const Stream& to);
  Vector pick_strided(const Node& n, const Buffer& b, Stream& s);
  Vector load_backwards(const Buffer& b, Stream& s);
  Vector gather(const Node& n, Stream& s, Vector* index);
  void copy_lanes(int64_t bytes, const Mem& area, bool to_memory, const Mem& step = {});
  void next_lane(const Loop& loop);

  const Analysis& analysis_;
  const Kernel& k_;
  Vectors& v_;
  VCode& code_;
  Frame& frame_;
  Streams& streams_;
  std::vector<Vector> lane_offsets_, index_scale_;  // by buffer
};

}  // namespace ingot::codegen::x86
