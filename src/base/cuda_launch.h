// How a CUDA kernel meets its data: the shape of its launches and the words of its argument struct. Both halves of the
// compiler share it: codegen writes the text that reads this, a runtime fills it in. Plain integers, no CUDA header.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace ingot {

inline constexpr int64_t kCudaTile = 64;  // rows and columns of a tile of turned operands

/// How a kernel's text divides its work; see docs/lowering.md, "CUDA".
struct CudaMapping {
  /// loop: a thread takes pieces of rows. rows: a warp takes a row of up to a chunk, a block takes a longer one.
  /// columns: a block takes a tile of columns and a chunk of the reduced rows.
  enum class Form : uint8_t { loop, rows, columns } form = Form::loop;
  int vector = 1;          // neighbouring columns that a thread takes at once
  int unroll = 1;          // form loop: such vectors whose loads are in flight together
  int outer = 0;           // dims of the space outside of rows and columns
  int64_t kept_bytes = 0;  // form rows: of a column in local row buffers and of loads that several phases read
  int64_t slot_bytes = 0;  // forms rows and columns: of one partial result of each reduction, 16 for each
  int64_t tile_bytes = 0;  // form columns: shared memory of a block; form loop: that of tiles of `turning` buffers
  int stages = 0;          // form rows: launches of a row that is divided over blocks; 0 if it cannot be
  bool finishes = false;   // form rows: the last of the stages has no elements, only row stores
  /// Form loop: a buffer that is strided along the columns, and may be dense along the rows.
  struct Turning {
    size_t buffer;
    int64_t element_bytes;
  };
  std::vector<Turning> turning;
};

/// A kernel as CUDA C++: its argument struct and entry function. A translation unit begins with codegen's prelude.
struct CudaText {
  std::string entry;
  std::string source;
  CudaMapping mapping;
};

/// What of a device shapes a launch. No result depends on it.
struct CudaDevice {
  int multiprocessors = 108;
  int64_t shared_bytes = 99 * 1024;  // that one block may have
  // Most blocks of a launch for each multiprocessor, which go on to further pieces: with few, some have one piece more
  // than others for which these wait.
  int64_t blocks = 1024;
};

struct CudaLaunch {
  uint32_t grid[3] = {1, 1, 1};
  uint32_t block[3] = {1, 1, 1};
  int64_t shared_bytes = 0;
  // Words of the argument struct that differ from launch to launch; addresses are offsets into the scratch memory.
  int64_t count = 0;  // form columns: rows that this launch reduces; form rows: most slots of the level it begins at
  // form rows: 0 whole rows; i phase i - 1, from partial results of those before and leaving its own; -i: folds a level
  // of these; form loop: 1 tiles
  int64_t stage = 0;
  int64_t keep = 0;     // form rows: 1 if shared memory has room for what rows keep; else it is read and computed again
  int64_t memory = -1;  // form columns: partial results to read; -1: null
  int64_t slots = -1;   // partial results to write (rows: and to read back); -1: null
  int64_t slot_count = 0;  // form rows: slots a row
};

/// The launches of one kernel over a space, in order, and the device memory that they share.
struct CudaPlan {
  std::vector<CudaLaunch> launches;
  int64_t scratch_bytes = 0;
};
/// `turned`: a buffer of mapping.turning is dense along the rows.
CudaPlan plan_launches(const CudaMapping& mapping, int64_t planes, int64_t rows, int64_t columns,
                       const CudaDevice& device = {}, bool turned = false);

/// A buffer, or a result of form columns, as the argument struct has it. Strides in bytes.
struct CudaOperand {
  void* at = nullptr;  // its first element
  int64_t row = 0, column = 0, index = 0;
  std::vector<int64_t> outer;  // outermost first; CudaMapping::outer of them
};

/// What a kernel is called with. The struct is made of 64-bit words alone and passed by value.
struct CudaArguments {
  int64_t rows = 0, columns = 0;
  std::vector<int64_t> outer;  // sizes, outermost first
  std::vector<CudaOperand> buffers, results;
  std::vector<uint64_t> scalars;
  /// planes, rows, columns, count, stage, keep, memory, slots, slot_count; outer; buffers; results (each: at, row,
  /// column, index, outer); scalars. Lists that are empty take no word.
  std::vector<uint64_t> words(const CudaLaunch& launch, char* scratch) const;
};

}  // namespace ingot
