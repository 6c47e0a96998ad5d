// Convolution and pooling over any number of spatial dims, window by window.
#include <algorithm>

#include "ir/reference/elementwise.h"

namespace ingot::ir::reference {
namespace {

/// Visits every index of a box, last dim fastest.
template <class F>
void for_each_index(const Ints& sizes, F f) {
  Ints index(sizes.size(), 0);
  for (int64_t left = product(sizes); left > 0; --left) {
    f(index);
    for (size_t d = sizes.size(); d-- > 0;) {
      if (++index[d] < sizes[d]) break;
      index[d] = 0;
    }
  }
}

/// The sizes of the last dims of a shape.
Ints last(const Ints& shape, size_t count) { return Ints(shape.end() - count, shape.end()); }

struct Windows {
  Ints input, output, kernel, stride, padding, dilation;
  size_t rank() const { return kernel.size(); }
  /// Position in a channel's plane that tap `tap` of window `at` reads, or -1 in the padding.
  int64_t position(const Ints& at, const Ints& tap) const {
    int64_t p = 0;
    for (size_t d = 0; d < rank(); ++d) {
      int64_t i = at[d] * stride[d] - padding[d] + tap[d] * dilation[d];
      if (i < 0 || i >= input[d]) return -1;
      p = p * input[d] + i;
    }
    return p;
  }
};

void convolve(ReferenceContext& c, size_t rank) {
  const ReferenceTensor &x = c.tensor("input"), &weight = c.tensor("weight");
  const ReferenceTensor* bias = c.optional("bias");
  ReferenceTensor& out = c.out();
  Windows w{last(x.shape, rank),    last(out.shape, rank),   last(weight.shape, rank),
            c.list("stride", rank), c.list("padding", rank), c.list("dilation", rank)};
  int64_t plane = product(w.input), out_plane = product(w.output), taps = product(w.kernel);
  int64_t in_group = weight.shape[1], out_channels = weight.shape[0], groups = c.integer("groups");
  int64_t channels = in_group * groups, batch = x.shape.size() == rank + 2 ? x.shape[0] : 1;
  for (int64_t n = 0; n < batch; ++n)
    for (int64_t o = 0; o < out_channels; ++o) {
      int64_t group = o / (out_channels / groups), target = (n * out_channels + o) * out_plane;
      for_each_index(w.output, [&](const Ints& at) {
        long double sum = bias ? bias->at(o) : 0;
        int64_t whole = bias && !bias->floating() ? bias->integer[o] : 0, tap_number = 0;
        for_each_index(w.kernel, [&](const Ints& tap) {
          int64_t p = w.position(at, tap);
          for (int64_t k = 0; k < in_group && p >= 0; ++k) {
            int64_t from = (n * channels + group * in_group + k) * plane + p;
            int64_t of = (o * in_group + k) * taps + tap_number;
            if (x.floating())
              sum += static_cast<long double>(x.real[from]) * weight.real[of];
            else
              whole = plus(whole, times(x.integer[from], weight.integer[of]));
          }
          ++tap_number;
        });
        if (out.floating())
          out.real[target++] = static_cast<double>(sum);
        else
          out.integer[target++] = whole;
      });
    }
}

Windows pool_windows(const ReferenceContext& c, bool dilated) {
  const ReferenceTensor& x = c.tensor("self");
  Ints kernel = c.list("kernel_size", 2);
  return {last(x.shape, 2),
          last(c.out().shape, 2),
          kernel,
          c.has("stride") && !c.list("stride").empty() ? c.list("stride", 2) : kernel,
          c.list("padding", 2),
          dilated ? c.list("dilation", 2) : Ints(2, 1)};
}

/// Calls f(output position, offset of the channel's plane, window index) for every window of every channel.
template <class F>
void for_each_window(const ReferenceContext& c, const Windows& w, F f) {
  int64_t plane = product(w.input), target = 0;
  int64_t channels = product(c.out().shape) ? c.out().size() / product(w.output) : 0;
  for (int64_t channel = 0; channel < channels; ++channel)
    for_each_index(w.output, [&](const Ints& at) { f(target++, channel * plane, at); });
}

}  // namespace

void conv1d(ReferenceContext& c) { convolve(c, 1); }
void conv2d(ReferenceContext& c) { convolve(c, 2); }

/// NaN wins; padding never does.
void max_pool2d(ReferenceContext& c) {
  const ReferenceTensor& x = c.tensor("self");
  Windows w = pool_windows(c, true);
  for_each_window(c, w, [&](int64_t target, int64_t base, const Ints& at) {
    int64_t best = -1;
    for_each_index(w.kernel, [&](const Ints& tap) {
      int64_t p = w.position(at, tap);
      if (p < 0) return;
      p += base;
      bool wins = best < 0 ||
                  (x.floating() ? std::isnan(x.real[p]) || x.real[p] > x.real[best] : x.integer[p] > x.integer[best]);
      if (wins) best = p;
    });
    if (best >= 0)
      assign(c.out(), target, x, best);
    else
      reference::put(c.out(), target, -kInfinity);
  });
}

/// The divisor counts padding where asked, but not what a window reaches beyond the padding.
void avg_pool2d(ReferenceContext& c) {
  const ReferenceTensor& x = c.tensor("self");
  Windows w = pool_windows(c, false);
  bool include_padding = c.flag("count_include_pad");
  for_each_window(c, w, [&](int64_t target, int64_t base, const Ints& at) {
    long double sum = 0;
    int64_t whole = 0, inside = 0, divisor = 1;
    for_each_index(w.kernel, [&](const Ints& tap) {
      int64_t p = w.position(at, tap);
      if (p < 0) return;
      ++inside;
      sum += x.at(base + p);
      if (!x.floating()) whole = plus(whole, x.integer[base + p]);
    });
    for (size_t d = 0; d < w.rank(); ++d) {
      int64_t start = at[d] * w.stride[d] - w.padding[d];
      divisor *= std::min(start + w.kernel[d], w.input[d] + w.padding[d]) - start;
    }
    if (!include_padding) divisor = inside;
    if (c.has("divisor_override")) divisor = c.integer("divisor_override");
    if (inside == 0) return;
    if (x.floating())
      c.out().real[target] = static_cast<double>(sum / divisor);
    else
      c.out().integer[target] = whole / divisor;
  });
}

/// Windows from floor(i * in / out) to ceil((i + 1) * in / out).
void adaptive_avg_pool2d(ReferenceContext& c) {
  const ReferenceTensor& x = c.tensor("self");
  Ints input = last(x.shape, 2), output = last(c.out().shape, 2);
  int64_t planes = c.out().size() ? c.out().size() / product(output) : 0, target = 0;
  for (int64_t plane = 0; plane < planes; ++plane)
    for_each_index(output, [&](const Ints& at) {
      Ints start(2), sizes(2);
      for (int d = 0; d < 2; ++d) {
        start[d] = at[d] * input[d] / output[d];
        sizes[d] = ((at[d] + 1) * input[d] + output[d] - 1) / output[d] - start[d];
      }
      long double sum = 0;
      for_each_index(sizes, [&](const Ints& tap) {
        sum += x.at((plane * input[0] + start[0] + tap[0]) * input[1] + start[1] + tap[1]);
      });
      c.out().real[target++] = static_cast<double>(sum / product(sizes));
    });
}

}  // namespace ingot::ir::reference
