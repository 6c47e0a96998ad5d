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
          const int64_t p = w.position(at, tap), of = o * in_group * taps + tap_number++;
          if (p < 0 || in_group == 0) return;
          const int64_t from = (n * channels + group * in_group) * plane + p;
          if (x.floating()) {
            const double *a = x.real.data() + from, *b = weight.real.data() + of;
            for (int64_t k = 0; k < in_group; ++k) sum += static_cast<long double>(a[k * plane]) * b[k * taps];
          } else {
            const int64_t *a = x.integer.data() + from, *b = weight.integer.data() + of;
            for (int64_t k = 0; k < in_group; ++k) whole = plus(whole, times(a[k * plane], b[k * taps]));
          }
        });
        if (out.floating())
          out.real[target++] = static_cast<double>(sum);
        else
          out.integer[target++] = whole;
      });
    }
}

/// Each element of the weight meets each position of the result once.
void convolve_weight(ReferenceContext& c) {
  const ReferenceTensor &x = c.tensor("input"), &slope = c.tensor("grad_output");
  ReferenceTensor& out = c.out();
  Windows w{last(x.shape, 2),    last(slope.shape, 2), last(out.shape, 2),
            c.list("stride", 2), c.list("padding", 2), c.list("dilation", 2)};
  const int64_t plane = product(w.input), out_plane = product(w.output);
  const int64_t in_group = out.shape[1], out_channels = out.shape[0], channels = x.shape[1];
  int64_t target = 0;
  for (int64_t o = 0; o < out_channels; ++o)
    for (int64_t k = 0; k < in_group; ++k)
      for_each_index(w.kernel, [&](const Ints& tap) {
        const int64_t channel = o / (out_channels / c.integer("groups")) * in_group + k;
        long double sum = 0;
        for (int64_t n = 0; n < x.shape[0]; ++n) {
          int64_t from = (n * out_channels + o) * out_plane;
          for_each_index(w.output, [&](const Ints& at) {
            if (int64_t p = w.position(at, tap); p >= 0)
              sum += static_cast<long double>(x.real[(n * channels + channel) * plane + p]) * slope.real[from];
            ++from;
          });
        }
        out.real[target++] = static_cast<double>(sum);
      });
}

Windows pool_windows(const ReferenceContext& c, size_t rank, bool dilated) {
  Ints kernel = c.list("kernel_size", rank);
  return {last(c.tensor("self").shape, rank),
          last(c.out().shape, rank),
          kernel,
          c.has("stride") && !c.list("stride").empty() ? c.list("stride", rank) : kernel,
          c.list("padding", rank),
          dilated ? c.list("dilation", rank) : Ints(rank, 1)};
}

/// Calls f(output position, offset of the channel's plane, window index) for every window of every channel.
template <class F>
void for_each_window(const ReferenceContext& c, const Windows& w, F f) {
  int64_t plane = product(w.input), target = 0;
  int64_t channels = product(c.out().shape) ? c.out().size() / product(w.output) : 0;
  for (int64_t channel = 0; channel < channels; ++channel)
    for_each_index(w.output, [&](const Ints& at) { f(target++, channel * plane, at); });
}

/// NaN wins; padding never does.
void max_pool(ReferenceContext& c, size_t rank) {
  const ReferenceTensor& x = c.tensor("self");
  Windows w = pool_windows(c, rank, true);
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
void avg_pool(ReferenceContext& c, size_t rank) {
  const ReferenceTensor& x = c.tensor("self");
  Windows w = pool_windows(c, rank, false);
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

/// Calls f(output position, values) with the elements of every bin: from floor(i * in / out) to
/// ceil((i + 1) * in / out).
template <class F>
void for_each_bin(ReferenceContext& c, size_t rank, F f) {
  const ReferenceTensor& x = c.tensor("self");
  Ints input = last(x.shape, rank), output = last(c.out().shape, rank), strides = strides_of(input);
  int64_t planes = c.out().size() ? c.out().size() / product(output) : 0, target = 0;
  for (int64_t plane = 0; plane < planes; ++plane)
    for_each_index(output, [&](const Ints& at) {
      Ints sizes(rank);
      int64_t start = plane * product(input);
      for (size_t d = 0; d < rank; ++d) {
        int64_t begin = at[d] * input[d] / output[d];
        sizes[d] = ((at[d] + 1) * input[d] + output[d] - 1) / output[d] - begin;
        start += begin * strides[d];
      }
      std::vector<double> values;
      for (int64_t p : positions(sizes, strides, start)) values.push_back(x.real[p]);
      f(target++, values);
    });
}

void adaptive_avg_pool(ReferenceContext& c, size_t rank) {
  for_each_bin(c, rank, [&](int64_t target, const std::vector<double>& values) {
    long double sum = 0;
    for (double v : values) sum += v;
    c.out().real[target] = static_cast<double>(sum / static_cast<long double>(values.size()));
  });
}

void adaptive_max_pool(ReferenceContext& c, size_t rank) {
  for_each_bin(c, rank, [&](int64_t target, const std::vector<double>& values) {
    double best = -kInfinity;
    for (double v : values) best = greatest(best, v);
    c.out().real[target] = best;
  });
}

/// Every element of the input times the kernel, added at the place of the output that it reaches.
void convolve_transposed(ReferenceContext& c, size_t rank) {
  const ReferenceTensor &x = c.tensor("input"), &weight = c.tensor("weight");
  const ReferenceTensor* bias = c.optional("bias");
  ReferenceTensor& out = c.out();
  // The output slides over what the input is to the convolution whose transpose this is.
  Windows w{last(out.shape, rank),  last(x.shape, rank),     last(weight.shape, rank),
            c.list("stride", rank), c.list("padding", rank), c.list("dilation", rank)};
  int64_t plane = product(w.output), out_plane = product(w.input), taps = product(w.kernel);
  int64_t channels = weight.shape[0], groups = c.integer("groups"), out_group = weight.shape[1];
  int64_t batch = x.shape.size() == rank + 2 ? x.shape[0] : 1;
  std::vector<long double> real(out.size());
  std::vector<int64_t> whole(out.size());
  for (int64_t n = 0; n < batch; ++n)
    for (int64_t k = 0; k < channels; ++k)
      for (int64_t o = 0; o < out_group; ++o) {
        int64_t group = k / (channels / groups), target = (n * out_group * groups + group * out_group + o) * out_plane;
        int64_t from = (n * channels + k) * plane;
        for_each_index(w.output, [&](const Ints& at) {
          int64_t tap_number = (k * out_group + o) * taps;
          for_each_index(w.kernel, [&](const Ints& tap) {
            int64_t p = w.position(at, tap);
            if (p >= 0 && x.floating())
              real[target + p] += static_cast<long double>(x.real[from]) * weight.real[tap_number];
            if (p >= 0 && !x.floating())
              whole[target + p] = plus(whole[target + p], times(x.integer[from], weight.integer[tap_number]));
            ++tap_number;
          });
          ++from;
        });
      }
  for (int64_t i = 0; i < out.size(); ++i) {
    int64_t channel = i / out_plane % (out_group * groups);
    if (out.floating())
      out.real[i] = static_cast<double>(real[i] + (bias ? bias->real[channel] : 0));
    else
      out.integer[i] = plus(whole[i], bias ? bias->integer[channel] : 0);
  }
}

/// The windows of im2col and col2im over an image; output: how many positions each dim has.
Windows patches(const ReferenceContext& c, const Ints& image) {
  Windows w{image, Ints(2), c.list("kernel_size", 2), c.list("stride", 2), c.list("padding", 2), c.list("dilation", 2)};
  for (size_t d = 0; d < 2; ++d)
    w.output[d] = (image[d] + 2 * w.padding[d] - w.dilation[d] * (w.kernel[d] - 1) - 1) / w.stride[d] + 1;
  return w;
}

/// Calls f(position in the planes of all channels or -1, position in the columns) for every element of every patch.
template <class F>
void for_each_patch(const Windows& w, int64_t planes, F f) {
  int64_t column = 0;
  for (int64_t plane = 0; plane < planes; ++plane)
    for_each_index(w.kernel, [&](const Ints& tap) {
      for_each_index(w.output, [&](const Ints& at) {
        int64_t p = w.position(at, tap);
        f(p < 0 ? p : plane * product(w.input) + p, column++);
      });
    });
}

}  // namespace

void conv1d(ReferenceContext& c) { convolve(c, 1); }
void conv2d(ReferenceContext& c) { convolve(c, 2); }
void conv3d(ReferenceContext& c) { convolve(c, 3); }
void conv2d_weight_backward(ReferenceContext& c) { convolve_weight(c); }
void conv_transpose1d(ReferenceContext& c) { convolve_transposed(c, 1); }
void conv_transpose2d(ReferenceContext& c) { convolve_transposed(c, 2); }
void conv_transpose3d(ReferenceContext& c) { convolve_transposed(c, 3); }
void max_pool1d(ReferenceContext& c) { max_pool(c, 1); }
void max_pool2d(ReferenceContext& c) { max_pool(c, 2); }
void max_pool3d(ReferenceContext& c) { max_pool(c, 3); }
void avg_pool1d(ReferenceContext& c) { avg_pool(c, 1); }
void avg_pool2d(ReferenceContext& c) { avg_pool(c, 2); }
void avg_pool3d(ReferenceContext& c) { avg_pool(c, 3); }
void adaptive_avg_pool1d(ReferenceContext& c) { adaptive_avg_pool(c, 1); }
void adaptive_avg_pool2d(ReferenceContext& c) { adaptive_avg_pool(c, 2); }
void adaptive_avg_pool3d(ReferenceContext& c) { adaptive_avg_pool(c, 3); }
void adaptive_max_pool1d(ReferenceContext& c) { adaptive_max_pool(c, 1); }
void adaptive_max_pool2d(ReferenceContext& c) { adaptive_max_pool(c, 2); }
void adaptive_max_pool3d(ReferenceContext& c) { adaptive_max_pool(c, 3); }

void im2col(ReferenceContext& c) {
  const ReferenceTensor& x = c.tensor("input");
  Windows w = patches(c, last(x.shape, 2));
  int64_t planes = c.out().size() / std::max<int64_t>(product(w.kernel) * product(w.output), 1);
  for_each_patch(w, planes, [&](int64_t p, int64_t column) {
    if (p >= 0) assign(c.out(), column, x, p);
  });
}
void col2im(ReferenceContext& c) {
  const ReferenceTensor& x = c.tensor("input");
  Windows w = patches(c, c.list("output_size"));
  int64_t planes = x.size() / std::max<int64_t>(product(w.kernel) * product(w.output), 1);
  for_each_patch(w, planes, [&](int64_t p, int64_t column) {
    if (p < 0) return;
    if (x.floating())
      c.out().real[p] += x.real[column];
    else
      c.out().integer[p] = plus(c.out().integer[p], x.integer[column]);
  });
}

}  // namespace ingot::ir::reference
