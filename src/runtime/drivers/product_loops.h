// What ProductDriver does with one part of a batch, loop by loop; product_driver.h cuts the parts and blocks the loops.
#pragma once
#include <array>

#include "runtime/drivers/product_driver.h"

namespace ingot::runtime {

class ProductDriver::Loops {
 public:
  /// `packed`: all panels of the batch, or null where this part packs its own. Takes the thread's scratch.
  Loops(const ProductDriver& driver, const StepState& state, int64_t batch, const Part& part, const char* packed);
  void run();

 private:
  /// Where the sums of one panel and block of rows are, and which panel.
  struct Sums {
    int64_t panel = 0;
    char* c = nullptr;
    int64_t stride = 0;
  };
  struct BlockOfB {
    const char* at;
    Ahead next;         // what is read after it
    int64_t lines = 0;  // that a tile which reads it fetches meanwhile
  };
  struct SeveralPanels {
    int64_t first, count;
    KernelCall call;
  };

  void begin_rows(Range tiles);
  void find_next_rows(Range tiles);
  void fetch_next_rows(int64_t tiles);
  const char* own_rows(int64_t row, int64_t rows, int64_t k_begin, int64_t k_size) const;
  void stretch_of_panel();
  void no_sums(const Sums& sums);
  void block_of_k(const Sums& sums, Range k);
  Ahead next_rows() const;
  BlockOfB packed_block(int64_t panel, Range k) const;
  BlockOfB own_block(int64_t panel, Range k) const;
  TileFrame frame_of(const Sums& sums, Range k, const char* b) const;
  void tiles_of_rows(const Sums& sums, Range k, const std::vector<KernelCall>& tiles, const BlockOfB& b);
  void few_rows() const;
  SeveralPanels panels_at_once(int64_t rows, Range left) const;
  /// Panels are counted in the order in which they are taken.
  int64_t panel_at(int64_t at) const { return backwards_ ? part_.panels.end - 1 - at : part_.panels.begin + at; }

  const ProductDriver& driver_;
  const Product& product_;
  const ProductResult& result_;
  const int64_t batch_;
  const Part part_;
  const Blocking blocking_;
  const ProductRun run_;
  const char* const packed_;
  const bool backwards_;
  const char *const a_, *const b_;
  int64_t a_row_, a_step_;  // of A as tiles read it: from row to row, and along k

  Range group_{}, span_{}, stretch_{};  // of panels; of k, twice
  int64_t at_ = 0;                      // the panel
  bool first_rows_ = true;
  struct {
    int64_t tiles, row, rows;
    PieceWalk walk;
    const char* a;
  } rows_{};
  /// Of what the next rows read and write: lines that are still to be fetched, and how many by each tile.
  struct Stretch {
    const char* from;
    int64_t lines, each;
  };
  std::array<Stretch, 1 + ProductResult::kAlike> next_{};
};

}  // namespace ingot::runtime
