#include "base/program.h"

#include <algorithm>
#include <cstdio>

#include "base/error.h"

namespace ingot {
namespace {

/// The entry with this name, or null.
template <class Entries>
auto* named(const Entries& entries, std::string_view name) {
  const auto at = std::find_if(entries.begin(), entries.end(), [&](const auto& e) { return e.name == name; });
  return at == entries.end() ? nullptr : &*at;
}

/// Writes values as their fields say, but for those that stand for something else.
struct Writer {
  const DimTable& dims;
  std::string text;

  void write(Dim d) { text += dims.str(d); }
  void write(const KernelPtr& kernel) {
    char key[20];
    std::snprintf(key, sizeof key, "#%08x", kernel ? static_cast<uint32_t>(hash_text(kernel->key)) : 0);
    text += kernel ? kernel->name + key : "none";
  }
  void write(const DimTable& table) {
    for (int64_t i = 0; i < table.symbol_count(); ++i)
      text += (i ? ", " : "") + table.str(table.symbol_dim(i)) + " as " + std::to_string(table.symbol_hint(i));
    for (const DimGuard& guard : table.guards()) text += ", " + table.str(guard);
  }
  void write(bool x) { text += x ? "true" : "false"; }
  template <class T>
  void write(const T& x) {
    if constexpr (requires { x.kName; }) text += x.kName;
    if constexpr (Described<T>) {
      write_fields(x);
    } else if constexpr (is_variant<T>) {
      std::visit([&](const auto& one) { write(one); }, x);
    } else if constexpr (Text<T>) {
      text += x;
    } else if constexpr (Range<T>) {
      list("[", x, "]");
    } else if constexpr (MaybeOne<T>) {
      x ? write(*x) : static_cast<void>(text += "none");
    } else if constexpr (requires { name_of(x); }) {
      text += name_of(x);
    } else {
      text += std::to_string(static_cast<int64_t>(x));
    }
  }

 private:
  template <class T>
  void write_fields(const T& x) {
    const T usual{};
    const char* before = "(";
    std::apply(
        [&](const auto&... field) {
          auto one = [&](const auto& f) {
            if (same_fields(x.*f.member, usual.*f.member)) return;
            (text += before).append(f.name) += "=";
            write(x.*f.member);
            before = ", ";
          };
          (one(field), ...);
        },
        T::fields());
    text += *before == '(' ? "()" : ")";
  }
  template <class T>
  void list(const char* before, const T& x, const char* end) {
    if (x.size() == 0) text += before;
    for (const auto& element : x) {
      text += before;
      write(element);
      before = ", ";
    }
    text += end;
  }
};

bool same_elements(const Argument& a, const Argument& b) {
  return a.offset == b.offset && a.strides == b.strides && a.index_stride == Dim(0) && b.index_stride == Dim(0);
}

/// A kernel that does one element after the other stores each after it has loaded what it needs of it
/// (codegen/x86/body.cpp, codegen/scalar/executor.cpp). One that reduces, keeps rows or transposes tiles reads ahead.
bool element_by_element(const LoopStep& loop) {
  return !loop.rows_whole && loop.local_bytes.empty() && loop.split.reductions.empty() &&
         loop.transposing.kernels.empty();
}

bool touches(const LoopStep& loop, uint32_t buffer) {
  return std::any_of(loop.arguments.begin(), loop.arguments.end(),
                     [&](const Argument& a) { return a.buffer == buffer; });
}

}  // namespace

std::string Target::str() const {
  if (cuda_arch) return "sm_" + std::to_string(cuda_arch);
  constexpr const char* names[] = {"none", "avx2", "avx512"};
  return std::string(names[static_cast<int>(isa)]) + (bf16_dot ? "+bf16" : "");
}

const char* name_of(Combiner combiner) {
  constexpr const char* names[] = {"sum", "prod", "max", "min", "any", "all", "argmax", "argmin"};
  return names[static_cast<int>(combiner)];
}
const char* name_of(OneRow one_row) {
  constexpr const char* names[] = {"tiles", "rows of B", "columns of B"};
  return names[static_cast<int>(one_row)];
}
const char* name_of(ConvolutionForm form) {
  switch (form) {
    case ConvolutionForm::patches:
      return "patches";
    case ConvolutionForm::pixels:
      return "pixels";
    case ConvolutionForm::depthwise:
      return "depthwise";
  }
  return "?";
}

void for_each_kernel(const Step& step, FunctionRef<void(const KernelPtr&)> visit) {
  for_each_part<KernelPtr>(step, [&](const KernelPtr& kernel) {
    if (kernel) visit(kernel);
  });
}
void for_each_argument(const Step& step, FunctionRef<void(const Argument&)> visit) {
  for_each_part<Argument>(step, visit);
}
void for_each_argument(Step& step, FunctionRef<void(Argument&)> visit) { for_each_part<Argument>(step, visit); }
void for_each_scalar(const Step& step, FunctionRef<void(const ScalarSource&)> visit) {
  for_each_part<ScalarSource>(step, visit);
}
void for_each_scalar(Step& step, FunctionRef<void(ScalarSource&)> visit) { for_each_part<ScalarSource>(step, visit); }
void for_each_dim(const Step& step, FunctionRef<void(const Dim&)> visit) { for_each_part<Dim>(step, visit); }

bool may_write_over(const Step& step, uint32_t to, uint32_t from) {
  const Argument* writes = nullptr;
  int writers = 0, readers = 0;
  bool same = true;
  for_each_argument(step, [&](const Argument& a) {
    if (a.buffer == to && !a.read_only) writes = &a, ++writers;
    readers += a.buffer == from;
  });
  if (!writes || !readers) return writes != nullptr;
  if (writers > 1) return false;
  for_each_argument(step, [&](const Argument& a) {
    if (a.buffer == from) same = same && same_elements(a, *writes);
  });
  if (!same) return false;
  if (const auto* loop = std::get_if<LoopStep>(&step.work)) return element_by_element(*loop);
  // An epilogue runs over pieces of the product that lie apart, once over each element; a prologue over whole rows,
  // whose results may stand by then.
  if (const auto* product = std::get_if<MatmulStep>(&step.work))
    return !product->epilogue.kernels.empty() && product->a.buffer != from && product->b.buffer != from &&
           !(product->prologue && touches(*product->prologue, from));
  const auto* host = std::get_if<HostStep>(&step.work);
  return host && !host->overwrites.empty() && readers == 1 && host->operand(host->overwrites).place.buffer == from;
}

const HostStep::Tensor* HostStep::find(std::string_view operand) const { return named(operands, operand); }
const HostStep::Tensor& HostStep::operand(std::string_view name) const {
  const Tensor* tensor = find(name);
  INGOT_CHECK(tensor, op + " has no operand " + std::string(name));
  return *tensor;
}
Dim HostStep::attribute(std::string_view name) const {
  const Attribute* attribute = named(attributes, name);
  INGOT_CHECK(attribute, op + " has no attribute " + std::string(name));
  return attribute->value;
}

const char* Step::kind_name() const {
  return std::visit([](const auto& one) { return one.kName; }, work);
}

Dim Program::Segment::moved(uint32_t buffer) const {
  for (const Move& move : moves)
    if (move.buffer == buffer) return move.bytes;
  return 0;
}
const Program::Segment* segment_of(const Program& program, uint32_t step) {
  const auto after = std::ranges::upper_bound(program.segments, step, {}, &Program::Segment::first_step);
  if (after == program.segments.begin() || !std::prev(after)->holds(step)) return nullptr;
  return &*std::prev(after);
}
Dim slices_of(const Program& program, uint32_t step) {
  const Program::Segment* segment = segment_of(program, step);
  return segment ? segment->slices : Dim(1);
}

bool operator==(const Step& a, const Step& b) { return same_fields(a, b); }
bool operator==(const Program& a, const Program& b) { return same_fields(a, b); }
uint64_t hash_of(const Step& step) { return hash_fields(step); }
uint64_t hash_of(const Program& program) { return hash_fields(program); }

std::string str(const Step& step, const DimTable& dims) {
  Writer writer{dims, {}};
  writer.write(step);
  return std::move(writer.text);
}
std::string str(const Program& program) {
  Writer writer{program.dims, {}};
  for_each_field(program, [&](std::string_view name, const auto& field) {
    if constexpr (requires { field.begin()->fields(); }) {
      for (size_t i = 0; i < field.size(); ++i) {
        writer.text.append(name).append(" ") += std::to_string(i) + " ";
        writer.write(field[i]);
        writer.text += "\n";
      }
    } else {
      writer.text.append(name).append(" ");
      writer.write(field);
      writer.text += "\n";
    }
  });
  return std::move(writer.text);
}

}  // namespace ingot
