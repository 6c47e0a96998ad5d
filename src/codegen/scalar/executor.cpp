#include "codegen/scalar/executor.h"

#include <algorithm>
#include <cstring>
#include <type_traits>
#include <vector>

#include "codegen/generate.h"
#include "codegen/kernel_analysis.h"
#include "codegen/scalar/lanes.h"
#include "codegen/scalar/reduce.h"

namespace ingot::codegen::scalar {
namespace {

/// A node to evaluate; or, where `target` is set, a jump there if no lane of the mask is true.
struct NodeStep {
  Value node;
  uint32_t target = 0;
};

/// What one phase evaluates, in order.
struct Schedule {
  std::vector<NodeStep> columns, row;
};

/// A kernel with its order of evaluation worked out.
struct Prepared {
  Kernel kernel;
  bool in_registers = false;  // sums_in_registers()
  std::vector<Schedule> phases;
};

std::vector<NodeStep> schedule(const Kernel& k, const std::vector<Value>& roots) {
  const std::vector<bool> live = find_live(k, roots);
  std::vector<NodeStep> steps;
  size_t jump = 0;
  uint16_t region = 0;
  for (Value v = 0; v < k.nodes.size(); ++v) {
    const Node& n = k.nodes[v];
    if (!live[v] || n.op == Op::constant || n.op == Op::scalar) continue;
    if (n.region && n.region != region) {
      jump = steps.size();
      steps.push_back({});
    }
    region = n.region;
    // A region whose result is a constant has no steps to jump over.
    if (n.op == Op::rare && k.nodes[n.c].op != Op::constant && k.nodes[n.c].op != Op::scalar)
      steps[jump] = {n.a, static_cast<uint32_t>(steps.size())};
    steps.push_back({v});
  }
  return steps;
}

Prepared prepare(const Kernel& kernel) {
  Prepared p{kernel, sums_in_registers(kernel), {}};
  for (const Phase& phase : kernel.phases)
    p.phases.push_back({schedule(kernel, column_roots(kernel, phase)), schedule(kernel, row_roots(phase))});
  return p;
}

template <class T>
T read(const char* p) {
  T x;
  std::memcpy(&x, p, sizeof x);
  return x;
}
template <class T>
void write(char* p, T x) {
  std::memcpy(p, &x, sizeof x);
}

/// Runs one call of a kernel.
class Execution {
 public:
  Execution(const Prepared& prepared, const KernelFrame& frame)
      : p_(prepared),
        k_(prepared.kernel),
        f_(frame),
        lanes_(prepared.in_registers ? kLanes : frame.lanes),
        values_(k_.nodes.size()) {
    for (Value v = 0; v < k_.nodes.size(); ++v) {
      const Node& n = k_.nodes[v];
      if (n.op == Op::constant) values_[v] = broadcast(n.type, n.imm);
      if (n.op == Op::scalar) values_[v] = broadcast(n.type, f_.scalars[n.imm]);
    }
    char* scratch = f_.scratch;
    if (k_.form == Form::rows) {
      int64_t padded = (f_.columns + kLanes - 1) / kLanes * kLanes;
      for (Type t : k_.locals) {
        locals_.push_back(scratch);
        scratch += padded * codegen::size_of(t);
      }
      for (const Reduction& r : k_.reductions) reductions_.emplace_back(r.combiner, k_.nodes[r.value].type);
      reduced_.resize(k_.reductions.size());
    } else {
      for (const Reduction& r : k_.reductions) {
        accumulators_.push_back(scratch);
        scratch += lane_elements() * codegen::size_of(k_.nodes[r.value].type);
        if (!is_index(r.combiner)) continue;
        scratch += lane_elements() * codegen::size_of(Type::i64);
      }
    }
  }

  void run() {
    if (k_.form == Form::columns) begin_accumulators();
    const auto last = static_cast<size_t>(f_.last_phase);
    for (row_ = 0; row_ < f_.rows; ++row_)
      for (size_t i = 0; i < k_.phases.size() && i <= last; ++i) run_phase(i);
    if (lanes_ > f_.lanes) join_lanes();
  }

 private:
  void run_phase(size_t number) {
    const Phase& phase = k_.phases[number];
    const Schedule& s = p_.phases[number];
    if (k_.form == Form::rows)
      for (uint32_t r : phase.reductions) reductions_[r].begin();
    if (static_cast<int64_t>(number) < f_.first_phase) {
      for (uint32_t r : phase.reductions) reductions_[r].take(read_accumulator(r));
    } else {
      run_columns(phase, s);
    }
    if (static_cast<int64_t>(number) == f_.last_phase) {
      for (uint32_t r : phase.reductions) leave_accumulator(r, reductions_[r].lanes());
      return;
    }
    if (k_.form == Form::rows)
      for (uint32_t r : phase.reductions) reduced_[r] = reductions_[r].finish();
    if (f_.last_phase != KernelFrame::kToTheEnd) return;
    column_ = 0;
    count_ = 1;
    run_steps(s.row);
    for (const Store& st : phase.row_stores) store(st.buffer, values_[st.value]);
  }

  void run_columns(const Phase& phase, const Schedule& s) {
    for (column_ = 0; column_ < f_.columns; column_ += kLanes) {
      count_ = static_cast<int>(std::min<int64_t>(kLanes, f_.columns - column_));
      run_steps(s.columns);
      for (const Store& st : phase.stores) store(st.buffer, values_[st.value]);
      for (const Store& st : phase.local_stores) {
        int64_t bytes = codegen::size_of(k_.locals[st.buffer]);
        std::memcpy(locals_[st.buffer] + column_ * bytes, &values_[st.value], static_cast<size_t>(count_ * bytes));
      }
      for (uint32_t r : phase.reductions) {
        const Lanes& value = values_[k_.reductions[r].value];
        if (k_.form == Form::rows) {
          reductions_[r].add(value, f_.column_index + column_, count_);
        } else {
          accumulate(r, value);
        }
      }
    }
  }

  void run_steps(const std::vector<NodeStep>& steps) {
    for (size_t i = 0; i < steps.size();) {
      const NodeStep& s = steps[i];
      if (s.target) {
        const uint8_t* mask = values_[s.node].mask;
        i = std::any_of(mask, mask + count_, [](uint8_t x) { return x; }) ? i + 1 : s.target;
      } else {
        run_node(s.node);
        ++i;
      }
    }
  }

  void run_node(Value v) {
    const Node& n = k_.nodes[v];
    Lanes& out = values_[v];
    switch (n.op) {
      case Op::load:
        load(static_cast<uint32_t>(n.imm), n.a == kNone ? nullptr : &values_[n.a], out);
        break;
      case Op::local: {
        int64_t bytes = codegen::size_of(n.type);
        std::memset(&out, 0, sizeof out);
        std::memcpy(&out, locals_[n.imm] + column_ * bytes, static_cast<size_t>(count_ * bytes));
        break;
      }
      case Op::index:
        for (int l = 0; l < kLanes; ++l) out.i64[l] = n.imm == 0 ? f_.column_index + column_ + l : outer(n.imm);
        break;
      case Op::reduced:
        out = reduced_[n.imm];
        break;
      default: {
        auto at = [&](Value operand) { return operand == kNone ? nullptr : &values_[operand]; };
        evaluate(n, k_.nodes[n.a].type, at(n.a), at(n.b), at(n.c), &out);
      }
    }
  }

  int64_t outer(uint64_t dim) const { return dim == 1 ? f_.row_index + row_ : f_.outer_index[dim - 2]; }

  int64_t column_stride(uint32_t buffer) const {
    switch (k_.buffers[buffer].access) {
      case Access::dense:
        return ingot::size_of(k_.buffers[buffer].dtype);
      case Access::uniform:
        return 0;
      case Access::strided:
        break;
    }
    return f_.column_strides[buffer];
  }

  char* address(uint32_t buffer) const {
    return f_.buffers[buffer] + row_ * f_.row_strides[buffer] + column_ * column_stride(buffer);
  }

  void load(uint32_t buffer, const Lanes* index, Lanes& out) const {
    const char* base = address(buffer);
    int64_t stride = column_stride(buffer);
    auto each = [&](auto* to, auto read_one) {
      for (int l = 0; l < count_; ++l)
        to[l] = read_one(base + l * stride + (index ? index->i64[l] * f_.index_strides[buffer] : 0));
      for (int l = count_; l < kLanes; ++l) to[l] = {};
    };
    DType d = k_.buffers[buffer].dtype;
    switch (d) {
      case DType::f64:
        return each(out.f64, read<double>);
      case DType::f32:
        return each(out.f32, read<float>);
      case DType::f16:
      case DType::bf16:
        return each(out.f32, [d](const char* p) { return from_half(d, read<uint16_t>(p)); });
      case DType::i64:
        return each(out.i64, read<int64_t>);
      case DType::i32:
        return each(out.i32, read<int32_t>);
      case DType::i16:
        return each(out.i32, read<int16_t>);
      case DType::i8:
        return each(out.i32, read<int8_t>);
      case DType::u8:
        return each(out.i32, read<uint8_t>);
      case DType::bool_:
        return each(out.mask, [](const char* p) { return static_cast<uint8_t>(*p != 0); });
      case DType::c64:
      case DType::c128:
        break;
    }
  }

  void store(uint32_t buffer, const Lanes& value) const {
    char* base = address(buffer);
    int64_t stride = column_stride(buffer);
    auto each = [&](const auto* from, auto write_one) {
      for (int l = 0; l < count_; ++l) write_one(base + l * stride, from[l]);
    };
    DType d = k_.buffers[buffer].dtype;
    switch (d) {
      case DType::f64:
        return each(value.f64, write<double>);
      case DType::f32:
        return each(value.f32, write<float>);
      case DType::f16:
      case DType::bf16:
        return each(value.f32, [d](char* p, float x) { write(p, to_half(d, x)); });
      case DType::i64:
        return each(value.i64, write<int64_t>);
      case DType::i32:
        return each(value.i32, write<int32_t>);
      case DType::i16:
        return each(value.i32, [](char* p, int32_t x) { write(p, static_cast<int16_t>(x)); });
      case DType::i8:
      case DType::u8:
        return each(value.i32, [](char* p, int32_t x) { write(p, static_cast<uint8_t>(x)); });
      case DType::bool_:
        return each(value.mask, write<uint8_t>);
      case DType::c64:
      case DType::c128:
        break;
    }
  }

  void begin_accumulators() {
    for (uint32_t r = 0; r < k_.reductions.size(); ++r) {
      Type type = k_.nodes[k_.reductions[r].value].type;
      Accumulator none = identity(k_.reductions[r].combiner, type);
      for (int lane = 0; lane < lanes_; ++lane)
        for (column_ = 0; column_ < f_.columns; column_ += kLanes) {
          count_ = static_cast<int>(std::min<int64_t>(kLanes, f_.columns - column_));
          write_accumulator(r, lane, none);
        }
    }
  }

  void accumulate(uint32_t r, const Lanes& value) {
    const Reduction& reduction = k_.reductions[r];
    Type type = k_.nodes[reduction.value].type;
    int lane = static_cast<int>(row_ % lanes_);
    Accumulator sum = accumulator(r, lane),
                next{value, broadcast(Type::i64, static_cast<uint64_t>(f_.row_index + row_))};
    combine(reduction.combiner, type, sum, next);
    write_accumulator(r, lane, sum);
  }

  /// Lane 0 is left with the results.
  void join_lanes() {
    for (uint32_t r = 0; r < k_.reductions.size(); ++r)
      for (int half = kLanes / 2; half; half /= 2)
        for (int lane = 0; lane < half; ++lane)
          for (column_ = 0; column_ < f_.columns; column_ += kLanes) {
            count_ = static_cast<int>(std::min<int64_t>(kLanes, f_.columns - column_));
            Accumulator sum = accumulator(r, lane);
            combine(k_.reductions[r].combiner, k_.nodes[k_.reductions[r].value].type, sum, accumulator(r, lane + half));
            write_accumulator(r, lane, sum);
          }
  }

  Accumulator accumulator(uint32_t r, int lane) const {
    const Reduction& reduction = k_.reductions[r];
    const Type type = k_.nodes[reduction.value].type;
    Accumulator sum = identity(reduction.combiner, type);
    std::memcpy(&sum.value, accumulator_values(r, lane), static_cast<size_t>(count_ * codegen::size_of(type)));
    if (is_index(reduction.combiner))
      std::memcpy(&sum.index, accumulator_indices(r, lane), static_cast<size_t>(count_) * 8);
    return sum;
  }

  void write_accumulator(uint32_t r, int lane, const Accumulator& p) {
    int64_t bytes = codegen::size_of(k_.nodes[k_.reductions[r].value].type);
    std::memcpy(accumulator_values(r, lane), &p.value, static_cast<size_t>(count_ * bytes));
    if (is_index(k_.reductions[r].combiner))
      std::memcpy(accumulator_indices(r, lane), &p.index, static_cast<size_t>(count_) * 8);
  }

  int64_t lane_elements() const { return (lanes_ * f_.columns + kLanes - 1) / kLanes * kLanes; }
  char* accumulator_values(uint32_t r, int lane) const {
    return accumulators_[r] + (lane * f_.columns + column_) * codegen::size_of(k_.nodes[k_.reductions[r].value].type);
  }
  char* accumulator_indices(uint32_t r, int lane) const {
    int64_t values = lane_elements() * codegen::size_of(k_.nodes[k_.reductions[r].value].type);
    return accumulators_[r] + values + (lane * f_.columns + column_) * codegen::size_of(Type::i64);
  }

  // A reduction's lanes in KernelFrame::accumulators.
  char* accumulator_at(uint32_t r, bool index) const {
    char* at = f_.accumulators;
    auto bytes = [&](uint32_t i) { return kLanes * codegen::size_of(k_.nodes[k_.reductions[i].value].type); };
    for (uint32_t i = 0; i < r; ++i) at += bytes(i) + (is_index(k_.reductions[i].combiner) ? kLanes * 8 : 0);
    return at + (index ? bytes(r) : 0);
  }
  Accumulator read_accumulator(uint32_t r) const {
    const Reduction& reduction = k_.reductions[r];
    const Type type = k_.nodes[reduction.value].type;
    Accumulator p = identity(reduction.combiner, type);
    std::memcpy(&p.value, accumulator_at(r, false), static_cast<size_t>(kLanes * codegen::size_of(type)));
    if (is_index(reduction.combiner)) std::memcpy(&p.index, accumulator_at(r, true), kLanes * 8);
    return p;
  }
  void leave_accumulator(uint32_t r, const Accumulator& p) const {
    const Reduction& reduction = k_.reductions[r];
    const Type type = k_.nodes[reduction.value].type;
    std::memcpy(accumulator_at(r, false), &p.value, static_cast<size_t>(kLanes * codegen::size_of(type)));
    if (is_index(reduction.combiner)) std::memcpy(accumulator_at(r, true), &p.index, kLanes * 8);
  }

  const Prepared& p_;
  const Kernel& k_;
  const KernelFrame& f_;
  const int64_t lanes_;  // of form columns: that rows go to
  std::vector<Lanes> values_;
  std::vector<char*> locals_, accumulators_;
  std::vector<RowReduction> reductions_;
  std::vector<Lanes> reduced_;
  int64_t row_ = 0, column_ = 0;
  int count_ = 0;  // lanes in use
};

void run_kernel(const void* frame) {
  const auto& f = *static_cast<const KernelFrame*>(frame);
  Execution(*static_cast<const Prepared*>(f.context), f).run();
}

}  // namespace

KernelPtr interpret(const Kernel& kernel, const std::string& name) {
  auto source = std::make_shared<KernelSource>();
  source->text = print(kernel);
  source->key = kernel_key(source->text, {.isa = Isa::none});
  source->name = name;
  source->interpret = run_kernel;
  source->context = std::make_shared<const Prepared>(prepare(kernel));
  return source;
}

}  // namespace ingot::codegen::scalar
