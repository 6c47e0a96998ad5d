// Tensor: a handle to a strided view of a storage. Copies share.
#pragma once
#include <atomic>
#include <concepts>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <iosfwd>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "eager/accessor.h"
#include "eager/autograd/grad_fn.h"
#include "eager/ops/arguments.h"

namespace ingot {

class Tensor;
struct TensorIndex;
namespace runtime {
class Storage;
}
namespace autograd {
struct Meta;
using Hook = std::function<Tensor(const Tensor& gradient)>;
}  // namespace autograd

namespace detail {

/// What a Tensor refers to. `trace` and `value` are the tracer's: the recording that produced the tensor, and its
/// number there.
struct INGOT_API TensorImpl {
  std::atomic<int32_t> references{0};
  DType dtype = DType::f32;
  bool requires_grad = false;
  std::atomic<bool> saved{false};  // a node of the tape may hold it, or a view of it
  Ints sizes, strides;
  int64_t offset = 0;                   // elements
  runtime::Storage* storage = nullptr;  // owned; null while the tensor is pending
  uint64_t trace = 0;                   // 0: not part of a recording
  uint32_t value = 0;
  uint32_t output = 0;                 // of `node`: which one this tensor is
  autograd::Node* node = nullptr;      // owned; that made the tensor, on the tape. None: a leaf
  autograd::Meta* autograd = nullptr;  // owned; most tensors have none
  ~TensorImpl();
};
INGOT_API TensorImpl* new_impl();              // from a free list of this thread
INGOT_API void delete_impl(TensorImpl* impl);  // nobody refers to it any more
INGOT_API TensorImpl& checked_impl(TensorImpl* impl, const char* op, Location location);
INGOT_API Size size_of_dim(const TensorImpl& impl, int64_t dim);
/// Told where the sizes, or the strides, of a tensor become plain numbers.
INGOT_API void pin_sizes(const TensorImpl& impl);
INGOT_API void pin_layout(const TensorImpl& impl);

}  // namespace detail

/// A tensor, or nothing (`defined()` is false). Methods that compute are those of the op table; the rest is here. The
/// result of an op that is not a view is always row-major, whatever the strides of its operands.
class INGOT_API Tensor {
 public:
  Tensor() = default;
  Tensor(const Tensor& other) : impl_(other.impl_) {
    if (impl_) impl_->references.fetch_add(1, std::memory_order_relaxed);
  }
  Tensor(Tensor&& other) noexcept : impl_(std::exchange(other.impl_, nullptr)) {}
  Tensor& operator=(const Tensor& other) & {
    Tensor copy(other);
    std::swap(impl_, copy.impl_);
    return *this;
  }
  Tensor& operator=(Tensor&& other) & noexcept {
    Tensor moved(std::move(other));  // lets go of what this one held at once: the tracer counts living handles
    std::swap(impl_, moved.impl_);
    return *this;
  }
  /// To a temporary, writes as copy_ does: x[0] = y, x.index({Slice(), 0}) = 1.
  const Tensor& operator=(const OperandArg& value) &&;
  ~Tensor() {
    // Who holds the only reference need not count it down: nobody else can take one.
    if (impl_ && (impl_->references.load(std::memory_order_acquire) == 1 ||
                  impl_->references.fetch_sub(1, std::memory_order_acq_rel) == 1))
      detail::delete_impl(impl_);
  }
  /// Takes one reference more.
  static Tensor of(detail::TensorImpl* impl) {
    Tensor t;
    t.impl_ = impl;
    if (impl) impl->references.fetch_add(1, std::memory_order_relaxed);
    return t;
  }
  /// Takes the first reference to what nobody else knows yet.
  static Tensor first(detail::TensorImpl* impl) {
    impl->references.store(1, std::memory_order_relaxed);
    return adopt(impl);
  }
  /// Takes over a reference that has been counted.
  static Tensor adopt(detail::TensorImpl* impl) {
    Tensor t;
    t.impl_ = impl;
    return t;
  }
  detail::TensorImpl* impl() const { return impl_; }
  bool defined() const { return impl_ != nullptr; }
  bool is_same(const Tensor& other) const { return impl_ == other.impl_; }

  DType dtype(Location location = Location()) const { return get("dtype", location).dtype; }
  DType scalar_type(Location location = Location()) const { return dtype(location); }
  int64_t dim(Location location = Location()) const { return static_cast<int64_t>(get("dim", location).sizes.size()); }
  /// All sizes, as plain numbers.
  IntArrayRef sizes(Location location = Location()) const {
    detail::pin_sizes(get("sizes", location));
    return impl_->sizes;
  }
  IntArrayRef strides(Location location = Location()) const {
    detail::pin_layout(get("strides", location));
    return impl_->strides;
  }
  /// One size, which remembers where it comes from.
  Size size(int64_t d, Location location = Location()) const;
  int64_t stride(int64_t d, Location location = Location()) const;
  int64_t storage_offset(Location location = Location()) const {
    detail::pin_layout(get("storage_offset", location));
    return impl_->offset;
  }
  int64_t numel(Location location = Location()) const;
  int64_t itemsize(Location location = Location()) const { return size_of(dtype(location)); }
  int64_t element_size(Location location = Location()) const { return itemsize(location); }
  int64_t nbytes(Location location = Location()) const { return numel(location) * itemsize(location); }
  bool is_contiguous(Location location = Location()) const;
  int64_t ndimension(Location location = Location()) const { return dim(location); }
  bool is_floating_point(Location location = Location()) const { return is_floating(dtype(location)); }
  bool is_complex(Location location = Location()) const { return category_of(dtype(location)) == Category::complex; }
  /// Of a dtype with negative numbers.
  bool is_signed(Location location = Location()) const;
  bool is_same_size(const Tensor& other, Location location = Location()) const;
  /// The truth of a tensor with one element.
  bool is_nonzero(Location location = Location()) const;

  // Gradients (eager/autograd/autograd.h).
  /// Whether gradients go to this tensor: a leaf that asks for them, or made from one.
  bool requires_grad() const;
  /// Of a leaf of a floating-point dtype.
  const Tensor& requires_grad_(bool on = true, Location location = Location()) const;
  const Tensor& set_requires_grad(bool on, Location location = Location()) const {
    return requires_grad_(on, location);
  }
  /// True unless an op that is on the tape made it.
  bool is_leaf() const;
  /// The sum of all gradients that backward() gave; undefined before. Of a tensor that is no leaf, after retain_grad().
  Tensor grad() const;
  Tensor& mutable_grad(Location location = Location()) const;
  /// Its dtype and sizes must be the tensor's; an undefined one removes it.
  void set_grad(const Tensor& gradient, Location location = Location()) const;
  autograd::GradFn grad_fn() const;
  /// autograd::backward of this tensor.
  void backward(const TensorArg& gradient = {}, std::optional<bool> retain_graph = {}, bool create_graph = false,
                const std::vector<Tensor>& inputs = {}, Location location = Location()) const;
  void retain_grad(Location location = Location()) const;
  bool retains_grad() const;
  /// Calls `hook` with the gradient of this tensor once it is complete; a tensor that it returns takes its place. Gives
  /// a number for remove_hook().
  template <class F>
  int64_t register_hook(F hook, Location location = Location()) const {
    if constexpr (std::is_void_v<std::invoke_result_t<F, const Tensor&>>)
      return add_hook([hook](const Tensor& g) { return hook(g), Tensor(); }, location);
    else
      return add_hook(hook, location);
  }
  /// Calls `hook` with this leaf after a gradient was added to grad().
  int64_t register_post_accumulate_grad_hook(std::function<void(const Tensor&)> hook,
                                             Location location = Location()) const;
  void remove_hook(int64_t id, Location location = Location()) const;
  /// As detach(): what is written to it counts as a write to this tensor.
  Tensor data(Location location = Location()) const;
  /// Makes this tensor a leaf without a history.
  const Tensor& detach_(Location location = Location()) const;
  /// True if both look at the same storage.
  bool shares_storage(const Tensor& other) const;
  /// Number of writes that the storage has seen.
  uint64_t version(Location location = Location()) const;

  /// The value of a tensor with one element. Throws Error if it is beyond what a T holds (NaN beyond integers); a
  /// fraction is cut.
  template <class T>
  T item(Location location = Location()) const {
    const Scalar value = scalar(location);
    if (!detail::holds<T>(value))
      detail::fail_item(value, static_cast<double>(std::numeric_limits<T>::lowest()),
                        static_cast<double>(std::numeric_limits<T>::max()), location);
    return value.template to<T>();
  }
  Scalar item(Location location = Location()) const { return scalar(location); }
  /// The truth of a tensor with one element.
  explicit operator bool() const { return item<bool>(Location::none()); }

  /// The first element, in the caller's C++ type, which must be the dtype's (uint16_t for 16-bit floats). To write, ask
  /// for mutable_data_ptr: compiled code keeps what it derives from a tensor until the tensor's version changes.
  template <class T>
  const T* data_ptr(Location location = Location()) const {
    return static_cast<const T*>(typed(cpp_type<T>(), location));
  }
  template <class T>
  const T* const_data_ptr(Location location = Location()) const {
    return data_ptr<T>(location);
  }
  template <class T>
  T* mutable_data_ptr(Location location = Location()) const {
    return static_cast<T*>(typed_mutable(cpp_type<T>(), location));
  }
  const void* data_ptr(Location location = Location()) const;
  void* mutable_data_ptr(Location location = Location()) const;

  /// a[i][j] of an accessor is an element. T is as for data_ptr; one that is not const counts as a write, at once.
  template <class T, size_t N>
  TensorAccessor<T, N> accessor(Location location = Location()) const {
    check_dims(N, location);
    T* data = nullptr;
    if constexpr (std::is_const_v<T>)
      data = data_ptr<std::remove_const_t<T>>(location);
    else
      data = mutable_data_ptr<T>(location);
    return {data, sizes(location).data(), strides(location).data()};
  }

  /// Of this tensor's dtype, if `options` has none.
  Tensor new_empty(const IntList& size, TensorOptions options = {}, Location location = Location()) const;
  Tensor new_zeros(const IntList& size, TensorOptions options = {}, Location location = Location()) const;
  Tensor new_ones(const IntList& size, TensorOptions options = {}, Location location = Location()) const;
  Tensor new_full(const IntList& size, Scalar fill_value, TensorOptions options = {},
                  Location location = Location()) const;
  TensorOptions options(Location location = Location()) const;
  /// As the functions of these names.
  bool equal(const TensorArg& other, Location location = Location()) const;
  bool allclose(const TensorArg& other, double rtol = 1e-5, double atol = 1e-8, bool equal_nan = false,
                Location location = Location()) const;

  /// NumPy's way of writing arrays; more than 1,000 elements are abridged.
  std::string str(Location location = Location()) const;

  /// x.index({Slice(0, 3), None, 1, Ellipsis, tensor}): a view, unless there is a tensor among the indices.
  Tensor index(std::initializer_list<TensorIndex> indices, Location location = Location()) const;
  Tensor index(const std::vector<TensorIndex>& indices, Location location = Location()) const;
  /// Writes to the chosen elements; with `accumulate`, adds. Where a position occurs again, in the order of the
  /// indices.
  const Tensor& index_put_(std::initializer_list<TensorIndex> indices, const OperandArg& value, bool accumulate = false,
                           Location location = Location()) const;
  const Tensor& index_put_(const std::vector<TensorIndex>& indices, const OperandArg& value, bool accumulate = false,
                           Location location = Location()) const;
  Tensor index_put(std::initializer_list<TensorIndex> indices, const OperandArg& value, bool accumulate = false,
                   Location location = Location()) const;
  Tensor index_put(const std::vector<TensorIndex>& indices, const OperandArg& value, bool accumulate = false,
                   Location location = Location()) const;
  Tensor operator[](PositionArg i) const;

#include "eager/ops_methods.inc"

  /// The same bytes as numbers of another dtype, off the tape; a write to either is one to both. Where sizes of
  /// elements differ, the last dim, which has no gaps, becomes longer or shorter. Computes what was recorded. Bytes of
  /// numbers are no bool.
  template <std::same_as<DType> Type>
  Tensor view(Type dtype, Location location = Location()) const {
    return bytes_as(dtype, location);
  }
  /// A view where the strides permit it, else a copy. One size may be -1.
  Tensor reshape(const IntList& shape, Location location = Location()) const;
  Tensor reshape_as(const Tensor& other, Location location = Location()) const;
  Tensor view_as(const Tensor& other, Location location = Location()) const;
  Tensor expand_as(const Tensor& other, Location location = Location()) const;
  Tensor flatten(int64_t start_dim = 0, int64_t end_dim = -1, Location location = Location()) const;
  Tensor unflatten(int64_t dim, const IntList& sizes, Location location = Location()) const;
  Tensor transpose(int64_t dim0, int64_t dim1, Location location = Location()) const;
  Tensor t(Location location = Location()) const;
  Tensor mT(Location location = Location()) const;
  /// As mT: there are no complex numbers.
  Tensor mH(Location location = Location()) const;
  Tensor adjoint(Location location = Location()) const;
  /// This handle becomes that view of the tensor; other handles of it stay as they are. A leaf that requires grad is an
  /// Error: nothing would give its gradient to the view.
  Tensor& squeeze_(const IntList& dim = {}, Location location = Location()) &;
  Tensor& unsqueeze_(int64_t dim, Location location = Location()) &;
  Tensor& t_(Location location = Location()) &;
  Tensor& transpose_(int64_t dim0, int64_t dim1, Location location = Location()) &;
  Tensor& swapaxes_(int64_t axis0, int64_t axis1, Location location = Location()) &;
  Tensor& swapdims_(int64_t dim0, int64_t dim1, Location location = Location()) &;
  Tensor movedim(const IntList& source, const IntList& destination, Location location = Location()) const;
  Tensor narrow(int64_t dim, const SizeArg& start, const SizeArg& length, Location location = Location()) const;
  std::vector<Tensor> unbind(int64_t dim = 0, Location location = Location()) const;
  /// Pieces of `split_size` (the last may be shorter), or of the given sizes.
  std::vector<Tensor> split(int64_t split_size, int64_t dim = 0, Location location = Location()) const;
  std::vector<Tensor> split(const std::vector<int64_t>& split_sizes, int64_t dim = 0,
                            Location location = Location()) const;
  std::vector<Tensor> split_with_sizes(const IntList& split_sizes, int64_t dim = 0,
                                       Location location = Location()) const;
  std::vector<Tensor> chunk(int64_t chunks, int64_t dim = 0, Location location = Location()) const;
  /// Functions of eager/ops/lists.h and shapes.h.
  std::vector<Tensor> tensor_split(int64_t sections, int64_t dim = 0, Location location = Location()) const;
  std::vector<Tensor> tensor_split(const std::vector<int64_t>& indices, int64_t dim = 0,
                                   Location location = Location()) const;
  std::vector<Tensor> tensor_split(const TensorArg& indices_or_sections, int64_t dim = 0,
                                   Location location = Location()) const;
  std::vector<Tensor> hsplit(int64_t sections, Location location = Location()) const;
  std::vector<Tensor> hsplit(const std::vector<int64_t>& indices, Location location = Location()) const;
  std::vector<Tensor> vsplit(int64_t sections, Location location = Location()) const;
  std::vector<Tensor> vsplit(const std::vector<int64_t>& indices, Location location = Location()) const;
  std::vector<Tensor> dsplit(int64_t sections, Location location = Location()) const;
  std::vector<Tensor> dsplit(const std::vector<int64_t>& indices, Location location = Location()) const;
  /// The sum over what these sizes were broadcast from: the gradient of expand.
  Tensor sum_to_size(const IntList& size, Location location = Location()) const;
  Tensor repeat(const IntList& repeats, Location location = Location()) const;
  Tensor tile(const IntList& repeats, Location location = Location()) const;
  /// This tensor if it is row-major, else a row-major copy.
  Tensor contiguous(Location location = Location()) const;
  /// This tensor if it has the dtype, else a converted copy.
  Tensor to(DType dtype, Location location = Location()) const;
  Tensor to(const TensorOptions& options, Location location = Location()) const;
  Tensor toType(DType dtype, Location location = Location()) const { return to(dtype, location); }
  Tensor type_as(const Tensor& other, Location location = Location()) const;
  const Tensor& zero_(Location location = Location()) const;
  /// One with probability p, else zero.
  const Tensor& bernoulli_(const OperandArg& p = 0.5, const std::optional<Generator>& generator = {},
                           Location location = Location()) const;
  /// exp of a normal number, of a floating dtype.
  const Tensor& log_normal_(double mean = 1, double std = 2, const std::optional<Generator>& generator = {},
                            Location location = Location()) const;
  const Tensor& cauchy_(double median = 0, double sigma = 1, const std::optional<Generator>& generator = {},
                        Location location = Location()) const;
  /// How many trials there are up to the first success, each with probability p in (0, 1).
  const Tensor& geometric_(double p, const std::optional<Generator>& generator = {},
                           Location location = Location()) const;
  /// Uniform integers in [from, to); in [0, to); from 0 to the largest up to which the dtype holds all.
  const Tensor& random_(int64_t from, int64_t to, const std::optional<Generator>& generator = {},
                        Location location = Location()) const;
  const Tensor& random_(int64_t to, const std::optional<Generator>& generator = {},
                        Location location = Location()) const;
  const Tensor& random_(const std::optional<Generator>& generator = {}, Location location = Location()) const;
  /// Writes to the diagonal of a tensor with two dims, or more of one size; with `wrap` of a tall one again after each
  /// block.
  const Tensor& fill_diagonal_(const ScalarArg& fill_value, bool wrap = false, Location location = Location()) const;
  /// Functions of eager/ops/functions.h, contractions.h and sets.h; vdot as dot.
  Tensor diff(int64_t n = 1, int64_t dim = -1, const TensorArg& prepend = {}, const TensorArg& append = {},
              Location location = Location()) const;
  Tensor isreal(Location location = Location()) const;
  Tensor inner(const TensorArg& other, Location location = Location()) const;
  Tensor vdot(const TensorArg& other, Location location = Location()) const;
  std::tuple<Tensor, Tensor, Tensor> unique_dim(int64_t dim, bool sorted = true, bool return_inverse = false,
                                                bool return_counts = false, Location location = Location()) const;
  std::tuple<Tensor, Tensor, Tensor> unique_consecutive(bool return_inverse = false, bool return_counts = false,
                                                        std::optional<int64_t> dim = {},
                                                        Location location = Location()) const;
  /// Functions of eager/ops/special.h; polygamma is that of the op table.
  Tensor i0(Location location = Location()) const;
  Tensor igamma(const TensorArg& other, Location location = Location()) const;
  Tensor igammac(const TensorArg& other, Location location = Location()) const;
  Tensor mvlgamma(int64_t p, Location location = Location()) const;
  Tensor polygamma(int64_t n, Location location = Location()) const;
  const Tensor& i0_(Location location = Location()) const;
  const Tensor& igamma_(const TensorArg& other, Location location = Location()) const;
  const Tensor& igammac_(const TensorArg& other, Location location = Location()) const;
  const Tensor& mvlgamma_(int64_t p, Location location = Location()) const;
  const Tensor& polygamma_(int64_t n, Location location = Location()) const;
  /// Functions of eager/ops/selection.h.
  Tensor nonzero(Location location = Location()) const;
  std::vector<Tensor> nonzero(AsTuple, Location location = Location()) const;
  Tensor masked_select(const TensorArg& mask, Location location = Location()) const;
  Tensor masked_scatter(const TensorArg& mask, const TensorArg& source, Location location = Location()) const;
  const Tensor& masked_scatter_(const TensorArg& mask, const TensorArg& source, Location location = Location()) const;
  Tensor take(const TensorArg& index, Location location = Location()) const;
  Tensor repeat_interleave(int64_t repeats, std::optional<int64_t> dim = {}, Location location = Location()) const;
  /// Functions of eager/ops/statistics.h, products.h, shapes.h, replacements.h and linalg.h.
  Tensor median(Location location = Location()) const;
  Tensor nanmedian(Location location = Location()) const;
  std::tuple<Tensor, Tensor> median(int64_t dim, bool keepdim = false, Location location = Location()) const;
  std::tuple<Tensor, Tensor> nanmedian(int64_t dim, bool keepdim = false, Location location = Location()) const;
  Tensor quantile(const OperandArg& q, std::optional<int64_t> dim = {}, bool keepdim = false,
                  Word interpolation = "linear", Location location = Location()) const;
  Tensor nanquantile(const OperandArg& q, std::optional<int64_t> dim = {}, bool keepdim = false,
                     Word interpolation = "linear", Location location = Location()) const;
  Tensor bincount(const TensorArg& weights = {}, int64_t minlength = 0, Location location = Location()) const;
  Tensor histc(int64_t bins = 100, double min = 0, double max = 0, Location location = Location()) const;
  std::tuple<Tensor, Tensor> histogram(int64_t bins = 100, const std::vector<double>& range = {},
                                       const TensorArg& weight = {}, bool density = false,
                                       Location location = Location()) const;
  std::tuple<Tensor, Tensor> histogram(const TensorArg& bins, const TensorArg& weight = {}, bool density = false,
                                       Location location = Location()) const;
  Tensor cov(int64_t correction = 1, const TensorArg& fweights = {}, const TensorArg& aweights = {},
             Location location = Location()) const;
  Tensor corrcoef(Location location = Location()) const;
  Tensor kron(const TensorArg& other, Location location = Location()) const;
  Tensor cross(const TensorArg& other, std::optional<int64_t> dim = {}, Location location = Location()) const;
  Tensor matrix_power(int64_t n, Location location = Location()) const;
  Tensor dist(const TensorArg& other, double p = 2, Location location = Location()) const;
  Tensor renorm(double p, int64_t dim, double maxnorm, Location location = Location()) const;
  const Tensor& renorm_(double p, int64_t dim, double maxnorm, Location location = Location()) const;
  Tensor ravel(Location location = Location()) const;
  Tensor diagflat(int64_t offset = 0, Location location = Location()) const;
  Tensor argwhere(Location location = Location()) const;
  Tensor swapaxes(int64_t axis0, int64_t axis1, Location location = Location()) const;
  Tensor swapdims(int64_t dim0, int64_t dim1, Location location = Location()) const;
  Tensor moveaxis(const IntList& source, const IntList& destination, Location location = Location()) const;
  Tensor select_scatter(const TensorArg& src, int64_t dim, const SizeArg& index, Location location = Location()) const;
  Tensor slice_scatter(const TensorArg& src, int64_t dim = 0, const SizeArg& start = 0, std::optional<SizeArg> end = {},
                       int64_t step = 1, Location location = Location()) const;
  Tensor diagonal_scatter(const TensorArg& src, int64_t offset = 0, int64_t dim1 = 0, int64_t dim2 = 1,
                          Location location = Location()) const;
  Tensor put(const TensorArg& index, const TensorArg& source, bool accumulate = false,
             Location location = Location()) const;
  const Tensor& put_(const TensorArg& index, const TensorArg& source, bool accumulate = false,
                     Location location = Location()) const;
  Tensor index_reduce(int64_t dim, const TensorArg& index, const TensorArg& source, Word reduce,
                      bool include_self = true, Location location = Location()) const;
  const Tensor& index_reduce_(int64_t dim, const TensorArg& index, const TensorArg& source, Word reduce,
                              bool include_self = true, Location location = Location()) const;
  Tensor det(Location location = Location()) const;
  Tensor logdet(Location location = Location()) const;
  std::tuple<Tensor, Tensor> slogdet(Location location = Location()) const;
  Tensor inverse(Location location = Location()) const;
  Tensor pinverse(double rcond = 1e-15, Location location = Location()) const;
  Tensor matrix_exp(Location location = Location()) const;
  Tensor cholesky(bool upper = false, Location location = Location()) const;
  Tensor cholesky_inverse(bool upper = false, Location location = Location()) const;
  Tensor cholesky_solve(const TensorArg& L, bool upper = false, Location location = Location()) const;
  Tensor lu_solve(const TensorArg& LU, const TensorArg& pivots, Location location = Location()) const;
  std::tuple<Tensor, Tensor> qr(bool some = true, Location location = Location()) const;
  std::tuple<Tensor, Tensor, Tensor> svd(bool some = true, bool compute_uv = true,
                                         Location location = Location()) const;
  /// The largest element; element by element the larger of two.
  Tensor max(Location location = Location()) const;
  Tensor max(const TensorArg& other, Location location = Location()) const;
  Tensor min(Location location = Location()) const;
  Tensor min(const TensorArg& other, Location location = Location()) const;
  /// LibTorch's order: whether equal elements keep their order comes first.
  template <detail::Flag Stable>
  std::tuple<Tensor, Tensor> sort(Stable stable, int64_t dim = -1, bool descending = false,
                                  Location location = Location()) const {
    return sort(dim, descending, std::optional<bool>(stable).value_or(false), location);
  }
  template <detail::Flag Stable>
  Tensor argsort(Stable stable, int64_t dim = -1, bool descending = false, Location location = Location()) const {
    return argsort(dim, descending, std::optional<bool>(stable).value_or(false), location);
  }
  /// Over all dims; unbiased: with n - 1.
  template <detail::Flag Unbiased>
  Tensor var(Unbiased unbiased, Location location = Location()) const {
    return var({}, std::optional<bool>(unbiased).value_or(true), false, location);
  }
  template <detail::Flag Unbiased>
  Tensor std(Unbiased unbiased, Location location = Location()) const {
    return std({}, std::optional<bool>(unbiased).value_or(true), false, location);
  }
  /// Elements of this tensor where the condition holds, else of `other`.
  Tensor where(const TensorArg& condition, const OperandArg& other, Location location = Location()) const;

  const Tensor& operator+=(const OperandArg& other) const { return add_(other, 1, other.location); }
  const Tensor& operator-=(const OperandArg& other) const { return sub_(other, 1, other.location); }
  const Tensor& operator*=(const OperandArg& other) const { return mul_(other, other.location); }
  const Tensor& operator/=(const OperandArg& other) const { return div_(other, "none", other.location); }

 private:
  // Two bytes without a sign stand for either 16-bit float.
  template <class T>
  static constexpr int cpp_type() {
    if constexpr (std::is_same_v<T, uint16_t>)
      return -1;
    else
      return static_cast<int>(dtype_of<T>());
  }
  const detail::TensorImpl& get(const char* op, Location location) const {
    return impl_ ? *impl_ : detail::checked_impl(impl_, op, location);
  }
  void check_dims(size_t expected, Location location) const;
  int64_t add_hook(autograd::Hook hook, Location location) const;
  Scalar scalar(Location location) const;
  Tensor bytes_as(DType dtype, Location location) const;
  const void* typed(int cpp_type, Location location) const;
  void* typed_mutable(int cpp_type, Location location) const;

  detail::TensorImpl* impl_ = nullptr;
};

/// Its elements as str() gives them, then dtype and sizes: "[1. 2. 3.] f32[3]", on a line of their own below several.
INGOT_API std::ostream& operator<<(std::ostream& out, const Tensor& tensor);

inline TensorList::TensorList(const std::vector<Tensor>& items, Location l)
    : data(items.data()), size(items.size()), location(l) {}
inline TensorList::TensorList(std::span<const Tensor> items, Location l)
    : data(items.data()), size(items.size()), location(l) {}

}  // namespace ingot
