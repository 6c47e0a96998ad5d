// Positions by value: places in sorted sequences, and where a tensor is true.
#include <algorithm>
#include <cstring>
#include <optional>
#include <vector>

#include "base/error.h"
#include "runtime/steps/host_steps.h"
#include "runtime/steps/lines.h"

namespace ingot::runtime {
namespace {

/// One sequence for all values, or one for each line of the last dim. With a sorter, element i of a sequence is the one
/// at the sorter's position i.
template <class T>
class SearchDriver final : public StepDriver {
  static constexpr int kLanes = 8;

 public:
  SearchDriver(const HostStep& step, const BindContext& context)
      : out_(step.results[0], context),
        sequence_(step.operand("sorted_sequence"), context),
        values_(step.operand("self"), context) {
    if (const HostStep::Tensor* sorter = step.find("sorter")) sorter_.emplace(*sorter, context);
    enum Side { none, left, right };
    right_ = context.value(step.attribute("right")) != 0 || context.value(step.attribute("side")) == Side::right;
    last_ = static_cast<int64_t>(values_.sizes.size()) - 1;
    lines_ = Lines(values_.sizes, {last_});
    one_sequence_ = sequence_.sizes.size() == 1;
    n_ = sequence_.sizes.back();
    narrow_ = out_.dtype == DType::i32;
    const int64_t elements = values_.elements();
    const int pay = threads_for(elements * 8, saturating_product(elements, 40));
    useful_threads = static_cast<int>(std::min<int64_t>(pay, std::max<int64_t>(elements, 1)));
  }

  void run(const StepState& state, int, int share, int shares) const override {
    const int64_t width = values_.sizes[last_];
    Range range = runtime::share(values_.elements(), share, shares);
    for (int64_t i = range.begin; i < range.end;) {
      const int64_t line = i / width, end = std::min(range.end, (line + 1) * width);
      const char* value = values_.place.at(state) + lines_.offset(line, values_.place.strides);
      char* out = out_.place.at(state) + lines_.offset(line, out_.place.strides);
      const char* sequence = line_of(state, sequence_, line);
      const char* sorter = sorter_ ? line_of(state, *sorter_, line) : nullptr;
      for (; i < end; i += kLanes) {
        const int64_t k = i - line * width, lanes = std::min<int64_t>(kLanes, end - i);
        T x[kLanes] = {};
        int64_t places[kLanes];
        const int64_t step = values_.place.strides[last_], to = out_.place.strides[last_];
        for (int64_t l = 0; l < lanes; ++l) x[l] = read<T>(value + (k + l) * step);
        search(sequence, sorter, x, places);
        for (int64_t l = 0; l < lanes; ++l) write(out + (k + l) * to, places[l]);
      }
      i = end;
    }
  }

 private:
  template <class V>
  static V read(const char* at) {
    V v;
    std::memcpy(&v, at, sizeof v);
    return v;
  }
  const char* line_of(const StepState& state, const BoundTensor& t, int64_t line) const {
    return t.place.at(state) + (one_sequence_ ? 0 : lines_.offset(line, t.place.strides));
  }
  void write(char* to, int64_t place) const {
    const int32_t narrow = static_cast<int32_t>(place);
    if (narrow_)
      std::memcpy(to, &narrow, sizeof narrow);
    else
      std::memcpy(to, &place, sizeof place);
  }

  // The first place whose element is not below x (right: above x); NaN is above all. Several values take the same steps
  // side by side, without branches.
  void search(const char* sequence, const char* sorter, const T (&x)[kLanes], int64_t (&places)[kLanes]) const {
    std::fill_n(places, kLanes, 0);
    auto passes = [&](int64_t place, T value) -> int64_t {
      const int64_t from = sorter ? read<int64_t>(sorter + place * sorter_->place.strides.back()) : place;
      const T y = read<T>(sequence + from * sequence_.place.strides.back());
      return right_ ? !(y > value) : !(y >= value);
    };
    int64_t left = n_;
    for (; left > 1; left -= left / 2)
      for (int l = 0; l < kLanes; ++l) places[l] += left / 2 * passes(places[l] + left / 2 - 1, x[l]);
    if (left)
      for (int l = 0; l < kLanes; ++l) places[l] += passes(places[l], x[l]);
  }

  BoundTensor out_, sequence_, values_;
  std::optional<BoundTensor> sorter_;
  bool right_ = false, one_sequence_ = true, narrow_ = false;
  int64_t last_ = 0, n_ = 0;
  Lines lines_;
};

constexpr int64_t kNone = -1;

/// Coordinates of true elements, in row-major order, in a result of a given number of rows; the rows left are kNone.
class NonzeroDriver final : public StepDriver {
  static constexpr int64_t kStretch = 512;

 public:
  NonzeroDriver(const HostStep& step, const BindContext& context)
      : out_(context.argument(step.results[0].place)),
        rows_(context.value(step.attribute("size"))),
        rank_(step.operand("self").shape.size()),
        in_(step.operand("self"), context),
        last_(static_cast<int64_t>(in_.sizes.size()) - 1),
        lines_(in_.sizes, {last_}) {
    useful_threads = threads_for(in_.elements() + rows_ * 8 * static_cast<int64_t>(rank_), in_.elements());
    phases = 2;
    shared_bytes = kMostThreads * static_cast<int64_t>(sizeof(int64_t));
  }

  // Phase 0 counts what each share will write, phase 1 writes.
  void run(const StepState& state, int phase, int share, int shares) const override {
    int64_t* counts = reinterpret_cast<int64_t*>(shared(state));
    Range range = runtime::share(in_.elements(), share, shares);
    if (phase == 0) {
      int64_t count = 0;
      for_each_stretch(state, range, [&](const char* x, int64_t, int64_t, int64_t size) {
        uint32_t found = 0;
        with_stride([&](int64_t stride) {
          for (int64_t i = 0; i < size; ++i) found += x[i * stride] != 0;
        });
        count += found;
      });
      counts[share] = count;
      return;
    }
    int64_t row = 0;
    for (int i = 0; i < share; ++i) row += counts[i];
    char* out = out_.at(state);
    for_each_stretch(state, range, [&](const char* x, int64_t line, int64_t column, int64_t size) {
      // Which elements are true is not foreseen: every place is noted, and written over unless there was one.
      int64_t places[kStretch], found = 0;
      with_stride([&](int64_t stride) {
        constexpr int64_t kWord = sizeof(uint64_t);
        const auto note = [&](int64_t begin, int64_t end) {
          for (int64_t i = begin; i < end; ++i) {
            places[found] = column + i;
            found += x[i * stride] != 0;
          }
        };
        int64_t i = 0;
        for (uint64_t word; stride == 1 && i + kWord <= size; i += kWord)
          if (std::memcpy(&word, x + i, sizeof word); word != 0) note(i, i + kWord);
        note(i, size);
      });
      found = std::min(found, rows_ - row);
      for (int64_t d = static_cast<int64_t>(rank_); d-- > 0;) {
        char* to = out + row * out_.strides[0] + d * out_.strides[1];
        if (d == last_) {
          write(to, found, [&](int64_t i) { return places[i]; });
        } else {
          write(to, found, [place = line % in_.sizes[d]](int64_t) { return place; });
          line /= in_.sizes[d];
        }
      }
      row += found;
    });
    if (share + 1 < shares) return;
    for (size_t d = 0; d < rank_ && row < rows_; ++d)
      write(out + row * out_.strides[0] + static_cast<int64_t>(d) * out_.strides[1], rows_ - row,
            [](int64_t) { return kNone; });
  }

 private:
  /// One coordinate of neighbouring rows; with its own code for those that lie side by side.
  template <class F>
  void write(char* to, int64_t rows, F coordinate) const {
    const auto write_at = [&](int64_t stride) {
      for (int64_t i = 0; i < rows; ++i) {
        const int64_t x = coordinate(i);
        std::memcpy(to + i * stride, &x, sizeof x);
      }
    };
    const int64_t stride = out_.strides[0];
    stride == sizeof(int64_t) ? write_at(sizeof(int64_t)) : write_at(stride);
  }
  /// f(the stride of a line's elements), with its own code for those that lie side by side.
  template <class F>
  void with_stride(F f) const {
    const int64_t stride = in_.place.strides[last_];
    stride == 1 ? f(1) : f(stride);
  }
  /// f(where they lie, their line, the column of the first, how many): elements of one line, up to kStretch.
  template <class F>
  void for_each_stretch(const StepState& state, Range range, F f) const {
    const int64_t width = in_.sizes[last_], stride = in_.place.strides[last_];
    for (int64_t i = range.begin; i < range.end;) {
      const int64_t line = i / width, end = std::min(range.end, (line + 1) * width);
      const char* x = in_.place.at(state) + lines_.offset(line, in_.place.strides);
      for (int64_t size; i < end; i += size) {
        const int64_t column = i - line * width;
        size = std::min(end - i, kStretch);
        f(x + column * stride, line, column, size);
      }
    }
  }

  BoundArgument out_;
  int64_t rows_;
  size_t rank_;
  BoundTensor in_;
  int64_t last_;
  Lines lines_;
};

}  // namespace

StepDriver* bind_searchsorted(const HostStep& step, const BindContext& context) {
  switch (const DType dtype = step.operand("sorted_sequence").dtype) {
    case DType::f32:
      return context.make<SearchDriver<float>>(step, context);
    case DType::f64:
      return context.make<SearchDriver<double>>(step, context);
    default:
      INGOT_CHECK(dtype == DType::i64, step.op);
      return context.make<SearchDriver<int64_t>>(step, context);
  }
}
StepDriver* bind_nonzero_static(const HostStep& step, const BindContext& context) {
  return context.make<NonzeroDriver>(step, context);
}

}  // namespace ingot::runtime
