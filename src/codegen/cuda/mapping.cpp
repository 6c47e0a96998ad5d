#include "codegen/cuda/mapping.h"

#include <algorithm>
#include <bit>

namespace ingot::codegen::cuda {
namespace {

constexpr int kPieceBytes = 16;                      // of one access
constexpr int kLoadRegisters = 64;                   // what loads in flight and their results may take
constexpr int kPartRegisters = 24, kPartNodes = 10;  // of two parts at a time; form rows: what is worth text of its own
constexpr int64_t kTileMemory = 64 << 10;

class Mapper {
 public:
  Mapper(const Kernel& kernel, int outer) : k_(kernel) {
    m_.launch.outer = outer;
    for (const Node& n : k_.nodes)
      if (n.op == Op::index && n.imm >= 2) m_.launch.outer = std::max(m_.launch.outer, static_cast<int>(n.imm) - 1);
    using Form = CudaMapping::Form;
    bool plain = k_.phases.size() == 1 && k_.reductions.empty() && k_.locals.empty() && k_.phases[0].row_stores.empty();
    m_.launch.form = k_.form == codegen::Form::columns ? Form::columns : plain ? Form::loop : Form::rows;
  }

  Mapping run() {
    find_scopes();
    std::vector<bool> made(k_.nodes.size());
    for (const Phase& phase : k_.phases) m_.phases.push_back(map_phase(phase, made));
    for (size_t i = 0; i < k_.phases.size(); ++i) m_.again.push_back(compute_again(i));
    keep_loads();
    for (Value v = 0; v < k_.nodes.size(); ++v)
      if (called_[v]) m_.call.push_back(v);
    choose_vector();
    for (size_t r = 0; r < k_.reductions.size(); ++r) m_.launch.slot_bytes += 16;
    if (m_.launch.form == CudaMapping::Form::rows && !k_.reductions.empty()) {
      const Phase& last = k_.phases.back();
      m_.launch.finishes = !last.reductions.empty() || !last.row_stores.empty();
      m_.launch.stages = static_cast<int>(k_.phases.size()) + m_.launch.finishes;
    }
    return std::move(m_);
  }

 private:
  bool columns() const { return m_.launch.form == CudaMapping::Form::columns; }

  /// A thread goes through planes, and in form columns through the rows of each as through its columns.
  Scope scope_of(Level level) const {
    switch (level) {
      case Level::call:
        return Scope::thread;
      case Level::plane:
        return Scope::line;
      case Level::row:
        return columns() ? Scope::element : Scope::line;
      case Level::column:
        break;
    }
    return Scope::element;
  }

  void find_scopes() {
    for (Level level : find_levels(k_)) m_.scopes.push_back(scope_of(level));
    size_t region_begin = 0;
    for (Value v = 0; v < k_.nodes.size(); ++v) {
      const Node& n = k_.nodes[v];
      if (n.region && (v == 0 || k_.nodes[v - 1].region != n.region)) region_begin = v;
      if (n.op != Op::rare) continue;
      // A region runs where its result is made, as a whole.
      for (size_t r = region_begin; r < v; ++r) m_.scopes[r] = m_.scopes[v];
    }
  }

  PhaseMapping map_phase(const Phase& phase, std::vector<bool>& made) {
    PhaseMapping out;
    called_.resize(k_.nodes.size());
    auto sort_out = [&](const std::vector<bool>& live, std::vector<Value>& line, bool elements) {
      for (Value v = 0; v < k_.nodes.size(); ++v) {
        const Node& n = k_.nodes[v];
        if (!live[v] || n.op == Op::constant) continue;
        if (m_.scopes[v] == Scope::thread) {
          called_[v] = true;
        } else if (m_.scopes[v] == Scope::line) {
          if (!made[v]) line.push_back(v);
          made[v] = true;
        } else if (elements) {
          add_element(out, v);
        }
      }
    };
    sort_out(find_live(k_, column_roots(k_, phase)), out.before, true);
    sort_out(find_live(k_, row_roots(phase)), out.after, false);
    return out;
  }

  void add_element(PhaseMapping& out, Value v) const {
    const Node& n = k_.nodes[v];
    if (n.op == Op::load && (n.a == kNone || m_.scopes[n.a] != Scope::element)) out.staged.push_back(v);
    if (n.op == Op::local) out.locals.push_back(v);
    out.elements.push_back(v);
  }

  PhaseMapping compute_again(size_t phase) const {
    PhaseMapping out;
    if (m_.phases[phase].locals.empty()) return out;
    std::vector<bool> done(k_.nodes.size());
    add_again(out, column_roots(k_, k_.phases[phase]), done);
    out.again = true;
    return out;
  }

  /// In front of those that read a local row buffer, the elements of what it holds. Each group stands in order, so that
  /// rare regions stay together.
  void add_again(PhaseMapping& out, const std::vector<Value>& roots, std::vector<bool>& done) const {
    const std::vector<bool> live = find_live(k_, roots);
    auto wanted = [&](Value v) {
      return live[v] && !done[v] && m_.scopes[v] == Scope::element && k_.nodes[v].op != Op::constant;
    };
    for (Value v = 0; v < k_.nodes.size(); ++v)
      if (wanted(v) && k_.nodes[v].op == Op::local) add_again(out, {Mapping::stored_in(k_, k_.nodes[v].imm)}, done);
    for (Value v = 0; v < k_.nodes.size(); ++v) {
      if (!wanted(v)) continue;
      add_element(out, v);
      done[v] = true;
    }
  }

  void keep_loads() {
    if (m_.launch.form != CudaMapping::Form::rows) return;
    std::vector<int> uses(k_.nodes.size());
    for (const PhaseMapping& p : m_.phases)
      for (Value v : p.staged)
        if (++uses[v] == 2) m_.kept.push_back(v);
    for (Type t : k_.locals) m_.launch.kept_bytes += codegen::size_of(t);
    for (Value v : m_.kept) {
      const int64_t bytes = ingot::size_of(k_.buffers[k_.nodes[v].imm].dtype);
      if (const auto local = successor(v, bytes))
        m_.overwritten.emplace_back(v, *local);
      else
        m_.launch.kept_bytes += bytes;
    }
  }

  /// A local row buffer of elements of as many bytes that nobody has taken over and that is not written before the last
  /// phase that reads v: a thread reads an element before it writes it.
  std::optional<uint32_t> successor(Value v, int64_t bytes) const {
    size_t last = 0;
    for (size_t i = 0; i < m_.phases.size(); ++i)
      if (std::count(m_.phases[i].staged.begin(), m_.phases[i].staged.end(), v)) last = i;
    for (uint32_t l = 0; l < k_.locals.size(); ++l) {
      bool free = codegen::size_of(k_.locals[l]) == bytes;
      for (auto& [other, local] : m_.overwritten) free = free && local != l;
      for (size_t i = 0; i < last; ++i)
        for (const Store& s : k_.phases[i].local_stores) free = free && s.buffer != l;
      if (free) return l;
    }
    return std::nullopt;
  }

  /// Registers that an element of what the phase loads and stores takes.
  int registers(const PhaseMapping& p, const Phase& phase) const {
    int words = 0;
    auto add = [&](int64_t bytes) { words += static_cast<int>((bytes + 3) / 4); };
    for (Value v : p.staged) add(ingot::size_of(k_.buffers[k_.nodes[v].imm].dtype));
    for (Value v : p.locals) add(codegen::size_of(k_.nodes[v].type));
    for (const Store& s : phase.stores) add(ingot::size_of(k_.buffers[s.buffer].dtype));
    for (const Store& s : phase.local_stores) add(codegen::size_of(k_.locals[s.buffer]));
    return std::max(words, 1);
  }

  void choose_vector() {
    CudaMapping& l = m_.launch;
    const int words = registers(m_.phases[0], k_.phases[0]);
    switch (l.form) {
      case CudaMapping::Form::rows:
        // Pieces of a warp lie side by side, so that it moves whole lines; those of the widest elements have 16 bytes.
        l.vector = kThreadElements;
        for (size_t b = 0; b < k_.buffers.size(); ++b)
          if (k_.buffers[b].access == Access::dense && m_.moves(k_, b))
            l.vector = std::min(l.vector, kPieceBytes / static_cast<int>(ingot::size_of(k_.buffers[b].dtype)));
        for (Type t : k_.locals) l.vector = std::min(l.vector, kPieceBytes / static_cast<int>(codegen::size_of(t)));
        for (size_t i = 0; i < m_.phases.size(); ++i) {
          PhaseMapping& p = m_.phases[i];
          m_.again[i].parts = 0;
          // Long expressions stand in the text once: compiling it a second time takes longer than it gains.
          p.parts = p.elements.size() > kPartNodes                                   ? 0
                    : registers(p, k_.phases[i]) * kThreadElements <= kPartRegisters ? 2
                                                                                     : 1;
        }
        break;
      case CudaMapping::Form::columns:
        // Sixteen loads of a buffer are in flight, eight or four where there are many.
        m_.phases[0].unroll = words * kThreadElements > kLoadRegisters ? kThreadElements / 2 : kThreadElements;
        m_.phases[0].parts = words * kThreadElements <= kPartRegisters ? 2 : 1;
        for (const Reduction& r : k_.reductions)
          l.tile_bytes = std::max(l.tile_bytes, 16 * 33 * accumulator_bytes(k_, r));
        break;
      case CudaMapping::Form::loop: {
        for (const Buffer& b : k_.buffers)
          if (b.access == Access::dense)
            l.vector = std::max(l.vector, kPieceBytes / static_cast<int>(ingot::size_of(b.dtype)));
        l.vector = std::min(l.vector, kThreadElements);
        while (l.vector > 1 && l.vector * words > kLoadRegisters) l.vector /= 2;
        l.unroll = std::clamp(kLoadRegisters / (l.vector * words), 1, kThreadElements / l.vector);
        l.unroll = static_cast<int>(std::bit_floor(static_cast<unsigned>(l.unroll)));
        choose_tiles();
        break;
      }
    }
  }

  /// Form loop: loads that are strided along the columns, if tiles of all of them have room.
  void choose_tiles() {
    int64_t bytes = 0;
    for (Value v : m_.phases[0].staged) {
      const Node& n = k_.nodes[v];
      if (k_.buffers[n.imm].access != Access::strided || n.a != kNone) continue;
      const int64_t element = ingot::size_of(k_.buffers[n.imm].dtype);
      m_.tiles.push_back({v, bytes});
      m_.launch.turning.push_back({n.imm, element});
      bytes += kCudaTile * (kCudaTile + std::max<int64_t>(4 / element, 1)) * element;  // as tile_place has it
    }
    m_.launch.tile_bytes = bytes;
    if (bytes <= kTileMemory) return;
    m_.tiles.clear();
    m_.launch.turning.clear();
    m_.launch.tile_bytes = 0;
  }

  const Kernel& k_;
  Mapping m_;
  std::vector<bool> called_;
};

}  // namespace

bool is_index(Combiner combiner) { return combiner == Combiner::argmax || combiner == Combiner::argmin; }

int64_t accumulator_bytes(const Kernel& kernel, const Reduction& reduction) {
  return is_index(reduction.combiner) ? 16 : codegen::size_of(kernel.nodes[reduction.value].type);
}

Value Mapping::stored_in(const Kernel& kernel, uint64_t local) {
  for (const Phase& phase : kernel.phases)
    for (const Store& s : phase.local_stores)
      if (s.buffer == local) return s.value;
  INGOT_CHECK(!"a local row buffer that is read is written");
}

bool Mapping::moves(const Kernel& kernel, size_t phase, size_t buffer) const {
  for (const Store& s : kernel.phases[phase].stores)
    if (s.buffer == buffer) return true;
  for (Value v : phases[phase].staged)
    if (kernel.nodes[v].imm == buffer) return true;
  return false;
}

bool Mapping::moves(const Kernel& kernel, size_t buffer) const {
  for (size_t i = 0; i < phases.size(); ++i)
    if (moves(kernel, i, buffer)) return true;
  return false;
}

Mapping map_kernel(const Kernel& kernel, int outer) { return Mapper(kernel, outer).run(); }

}  // namespace ingot::codegen::cuda
