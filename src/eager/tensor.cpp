#include "eager/tensor.h"

#include <new>
#include <ostream>

#include "base/free_list.h"
#include "base/hot.h"
#include "eager/autograd/node.h"
#include "eager/call/call.h"
#include "eager/call/script.h"
#include "eager/data.h"

namespace ingot {

namespace detail {

namespace {

constinit thread_local FreeList<sizeof(TensorImpl), 256> free_list;

}  // namespace

INGOT_HOT TensorImpl* new_impl() { return new (free_list.take()) TensorImpl; }

INGOT_HOT void delete_impl(TensorImpl* impl) {
  impl->~TensorImpl();
  free_list.give(impl);
}

TensorImpl::~TensorImpl() {
  if (node || autograd) drop_autograd(*this);
  if (storage) storage->release();
}

TensorImpl& checked_impl(TensorImpl* impl, const char* op, Location location) {
  if (impl) return *impl;
  eager::fail(op, "self", "an undefined tensor", "a tensor", location);
}

Size size_of_dim(const TensorImpl& impl, int64_t dim) {
  eager::ScriptWriter* writer = eager::ScriptWriter::current();
  return writer ? writer->size(impl, dim) : Size::of(impl.sizes[static_cast<size_t>(dim)]);
}
void pin_sizes(const TensorImpl& impl) {
  if (!eager::ScriptWriter::current()) return;
  for (size_t d = 0; d < impl.sizes.size(); ++d)
    static_cast<void>(static_cast<int64_t>(size_of_dim(impl, static_cast<int64_t>(d))));
}
void pin_layout(const TensorImpl& impl) {
  eager::ScriptWriter* writer = eager::ScriptWriter::current();
  if (!writer) return;
  pin_sizes(impl);
  writer->only_here("it looks at strides");
}

}  // namespace detail

namespace {

int64_t checked_dim(const char* op, int64_t d, int64_t rank, Location location) {
  if (d >= -rank && d < rank) return d < 0 ? d + rank : d;
  eager::fail(op, "dim", std::to_string(d), "a dim of a tensor with " + std::to_string(rank) + " dims", location);
}

}  // namespace

const Tensor& Tensor::operator=(const OperandArg& value) && {
  if (!defined())
    eager::fail("operator=", "self", "an undefined temporary",
                "a tensor to write to (set_grad or mutable_grad gives a first gradient)", value.location);
  return value.tensor ? copy_(value, value.location) : fill_(value, value.location);  // which the dtype has to hold
}

Size Tensor::size(int64_t d, Location location) const {
  const auto& impl = get("size", location);
  return detail::size_of_dim(impl, checked_dim("size", d, static_cast<int64_t>(impl.sizes.size()), location));
}
int64_t Tensor::stride(int64_t d, Location location) const {
  const auto& impl = get("stride", location);
  detail::pin_layout(impl);
  return impl.strides[checked_dim("stride", d, static_cast<int64_t>(impl.sizes.size()), location)];
}
int64_t Tensor::numel(Location location) const {
  const auto& impl = get("numel", location);
  detail::pin_sizes(impl);
  return eager::count(impl.sizes);
}

bool Tensor::is_contiguous(Location location) const {
  const auto& impl = get("is_contiguous", location);
  detail::pin_layout(impl);
  int64_t step = 1;
  for (size_t d = impl.sizes.size(); d-- > 0;) {
    if (impl.sizes[d] == 0) return true;
    if (impl.sizes[d] != 1 && impl.strides[d] != step) {
      return eager::count(impl.sizes) == 0;  // an empty tensor is contiguous whatever its strides are
    }
    step *= impl.sizes[d];
  }
  return true;
}

bool Tensor::is_signed(Location location) const {
  const DType type = dtype(location);
  return type != kBool && type != kUInt8;
}
bool Tensor::is_same_size(const Tensor& other, Location location) const {
  return sizes(location) == other.sizes(location);
}
bool Tensor::is_nonzero(Location location) const { return scalar(location).to<bool>(); }

void Tensor::check_dims(size_t expected, Location location) const {
  const size_t rank = get("accessor", location).sizes.size();
  if (rank != expected)
    eager::fail("accessor", "self", "a tensor with " + std::to_string(rank) + " dims",
                "one with " + std::to_string(expected), location);
}

TensorOptions Tensor::options(Location location) const { return dtype(location); }

bool Tensor::shares_storage(const Tensor& other) const {
  if (!impl_ || !other.impl_) return false;
  for (const Tensor* t : {this, &other})
    if (!t->impl_->storage) eager::materialize(*t, "shares_storage", Location::none());
  return impl_->storage == other.impl_->storage;
}

Tensor Tensor::data(Location location) const { return detach(location); }

// Who records tells memory from memory by tensors of one dtype: ops that reach these bytes are computed as they come.
Tensor Tensor::bytes_as(DType wanted, Location location) const {
  const DType own = dtype(location);
  const auto refuse = [&](const std::string& got, const std::string& expected) {
    eager::fail("view", "dtype", std::string(name_of(wanted)) + " of " + std::string(name_of(own)) + " with " + got,
                expected, location);
  };
  if (category_of(wanted) == Category::complex)
    eager::fail("view", "dtype", std::string(name_of(wanted)), "a dtype that holds data", location);
  if (wanted == kBool && own != kBool)
    eager::fail("view", "dtype", "bool of " + std::string(name_of(own)), "another dtype; x.ne(0) gives truth values",
                location);
  if (wanted == own) return detach(location);
  eager::materialize(*this, "view", location);
  eager::hand_out(*impl_, true);
  Ints shape = impl_->sizes, steps = impl_->strides;
  int64_t offset = impl_->offset;
  const int64_t from = size_of(own), to = size_of(wanted);
  if (from != to) {
    if (shape.empty()) refuse("no dims", "a dtype of as many bytes, or a last dim");
    const size_t last = shape.size() - 1;
    if (steps[last] != 1)
      refuse("stride " + std::to_string(steps[last]) + " in its last dim", "a last dim without gaps");
    const int64_t ratio = std::max(from, to) / std::min(from, to);
    if (to < from) {
      for (size_t d = 0; d < last; ++d) steps[d] *= ratio;
      shape[last] *= ratio;
      offset *= ratio;
    } else {
      const auto divide = [&](int64_t& number, const std::string& what) {
        if (number % ratio)
          refuse(what + " " + std::to_string(number), "a multiple of " + std::to_string(ratio) + " there");
        number /= ratio;
      };
      divide(shape[last], "a last dim of");
      divide(offset, "a first element at");
      for (size_t d = 0; d < last; ++d) divide(steps[d], "stride");
    }
    steps[last] = 1;
  }
  return eager::make_tensor(wanted, shape, steps, offset, impl_->storage);
}

uint64_t Tensor::version(Location location) const {
  eager::materialize(*this, "version", location);
  return impl_->storage->version();
}

const void* Tensor::data_ptr(Location location) const {
  eager::materialize(*this, "data_ptr", location);
  eager::hand_out(*impl_, false);
  return eager::data_of(*impl_);
}
void* Tensor::mutable_data_ptr(Location location) const {
  eager::materialize(*this, "mutable_data_ptr", location);
  eager::hand_out(*impl_, true);
  impl_->storage->bump_version();
  return eager::data_of(*impl_);
}

static void check_type(const char* op, const detail::TensorImpl& impl, int cpp_type, Location location) {
  if (cpp_type < 0 ? is_half(impl.dtype) : static_cast<int>(impl.dtype) == cpp_type) return;
  std::string asked = cpp_type < 0 ? "a 16-bit float" : std::string(name_of(static_cast<DType>(cpp_type)));
  eager::fail(op, "", "a pointer to " + asked, "one to " + std::string(name_of(impl.dtype)) + ", the tensor's dtype",
              location);
}

const void* Tensor::typed(int cpp_type, Location location) const {
  check_type("data_ptr", get("data_ptr", location), cpp_type, location);
  return data_ptr(location);
}
void* Tensor::typed_mutable(int cpp_type, Location location) const {
  check_type("mutable_data_ptr", get("mutable_data_ptr", location), cpp_type, location);
  return mutable_data_ptr(location);
}

Scalar Tensor::scalar(Location location) const {
  const auto& impl = get("item", location);
  if (int64_t n = eager::count(impl.sizes); n != 1)
    eager::fail("item", "self", "a tensor with " + std::to_string(n) + " elements", "exactly one element", location);
  eager::materialize(*this, "item", location);
  return eager::read_element(impl.dtype, eager::data_of(impl));
}

std::ostream& operator<<(std::ostream& out, const Tensor& tensor) {
  const std::string elements = tensor.str(Location::none());
  out << elements;
  if (!tensor.defined()) return out;
  return out << (elements.find('\n') == std::string::npos ? ' ' : '\n') << tensor.dtype() << tensor.sizes();
}

}  // namespace ingot
