// Every op of the table at sizes around nothing, the vector and the block, and beyond the threading grain: the cases of
// the conformance files and the samples themselves are small.
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <string>

#include "eager/call/call.h"
#include "eager/execute/numerics.h"
#include "eager/ops/functions.h"
#include "eager/sample_sizes.h"
#include "eager/tensor.h"
#include "runtime/cpu.h"
#include "runtime/thread_pool.h"

namespace ingot {
namespace {

constexpr int kShards = 4;

class OpSizes : public testing::TestWithParam<int> {
 protected:
  void SetUp() override { threads_ = num_threads(); }
  void TearDown() override {
    set_num_threads(threads_);
    runtime::set_host_target(std::nullopt);
  }
  /// Calls f with the samples of every kShards-th op.
  void for_each_op(const std::function<void(const std::vector<ir::Sample>&)>& f) {
    std::vector<std::vector<ir::Sample>> ops;
    for (const ir::Sample& sample : ir::samples()) {
      if (ops.empty() || ops.back()[0].op != sample.op) ops.emplace_back();
      ops.back().push_back(sample);
    }
    for (size_t i = static_cast<size_t>(GetParam()); i < ops.size() && !HasFatalFailure(); i += kShards) f(ops[i]);
  }

 private:
  int threads_ = 1;
};
INSTANTIATE_TEST_SUITE_P(Ops, OpSizes, testing::Range(0, kShards));

/// Roundings of what an op computes on its way, as they arrive in its result: near a pole polygamma is a power; n
/// numbers that are scattered into one place are added one after the other, which rounds n times a sum of about
/// sqrt(n), up or down.
double condition_of(const ir::Graph& graph, double root_n) {
  const ir::Node& node = graph.nodes.back();
  if (node.op == OpId::polygamma) return 2 * static_cast<double>(node.attrs[0].integer + 1);
  for (OpId scattering : {OpId::scatter, OpId::scatter_add, OpId::scatter_reduce, OpId::index_add})
    if (node.op == scattering) return root_n / 4;
  // The values of such matrices are about 1 / n apart (ir::make_regular), and vectors turn by an error over that.
  if (ir::info(node.op).has(ir::kMatrices))
    return 4 * static_cast<double>(graph.dims.hint(graph.type(graph.inputs[0].value).shape.back()));
  return 0;
}

/// Eager against the interpreter, an error included; false if both refuse (an index out of range).
bool agree(const ir::Sample& sample, const ir::Graph& graph, const std::vector<ReferenceTensor>& inputs,
           std::vector<Tensor>* got) {
  SCOPED_TRACE(ir::print(graph));
  std::vector<ReferenceTensor> expected;
  const std::vector<Tensor> tensors = eager_tensors(inputs);
  try {
    expected = ir::interpret(graph, inputs);
  } catch (const Error&) {
    EXPECT_THROW(run(graph, tensors), Error);
    return false;
  }
  EXPECT_NO_THROW(*got = run(graph, tensors));
  int64_t largest = 1;
  for (const ReferenceTensor& r : inputs) largest = std::max(largest, r.size());
  const double root = std::sqrt(static_cast<double>(largest));
  if (sample.op->kind == ir::OpKind::elementwise)
    expect_close(inputs, *got, expected, 4);
  else  // a sum of n numbers of either sign is about sqrt(n), and its rounding errors are relative to that
    expect_close(inputs, *got, expected, 32 + condition_of(graph, root), root);
  return true;
}

// 4,097 is left out where that makes more than 128 Ki elements.
TEST_P(OpSizes, AgreeWithTheReference) {
  for_each_op([&](const std::vector<ir::Sample>& samples) {
    std::set<int64_t> checked;
    for (const ir::Sample& sample : samples)
      for (int64_t from : sizes_of(sample.text))
        for (int64_t to : {0, 1, 15, 16, 17, 63, 64, 65, 4097}) {
          std::optional<ir::Graph> graph = resized(sample.text, from, to);
          if (!graph || most_elements(*graph) > 1 << 17) continue;
          std::vector<Tensor> got;
          if (agree(sample, *graph, random_inputs(*graph, sample.op->name, static_cast<unsigned>(to)), &got))
            checked.insert(to);
        }
    EXPECT_GE(checked.size(), 8) << samples[0].op->name;
  });
}

// At more than 32 Ki elements the scalar executor would take its time.
TEST_P(OpSizes, InstructionSetAndLayoutChangeNoBit) {
  const int64_t fallbacks = eager::eager_statistics().fallbacks;
  for_each_op([&](const std::vector<ir::Sample>& samples) {
    for (const ir::Sample& sample : samples)
      for (int64_t from : sizes_of(sample.text))
        for (int64_t to : {17, 67, 4097}) {
          std::optional<ir::Graph> graph = resized(sample.text, from, to);
          if (!graph || most_elements(*graph) > 1 << 15) continue;
          SCOPED_TRACE(ir::print(*graph));
          runtime::set_host_target(std::nullopt);
          const std::vector<Tensor> inputs = eager_tensors(random_inputs(*graph, sample.op->name, 9));
          std::vector<Tensor> expected;
          try {
            expected = run(*graph, inputs);
          } catch (const Error&) {
            continue;  // an index out of range, of which AgreeWithTheReference asks
          }
          auto expect_same = [&](const std::vector<Tensor>& got, const std::string& what) {
            for (size_t o = 0; o < got.size(); ++o) EXPECT_EQ(bytes_of(got[o]), bytes_of(expected[o])) << what;
          };
          if (sample.op->kind != ir::OpKind::view) {  // whether there is a view depends on the layout
            std::vector<Tensor> other;
            for (const Tensor& t : inputs) other.push_back(scattered(t));
            expect_same(run(*graph, other), "scattered");
          }
          // (But for products of bf16, where the processor has an instruction of its own for them.)
          const eager::NumericsScope strict(Numerics::strict);
          expected = run(*graph, inputs);
          for (Isa isa : {Isa::none, Isa::avx2}) {
            if (isa >= runtime::detected_target().isa) continue;
            runtime::set_host_target(runtime::target_of(isa));
            expect_same(run(*graph, inputs), runtime::target_of(isa).str());
          }
        }
  });
  EXPECT_EQ(eager::eager_statistics().fallbacks, fallbacks);
}

// Sizes are run-time values: those from 16 on share their code. One more program may be made where a dim is broadcast
// or divided, for each width of bins below 16, of which these sizes give up to five, and for what the last window of a
// padded pooling hangs over the end, which a stride of three gives three of; a transposed convolution unrolls its
// kernel, and rounding up asks for remainders.
TEST_P(OpSizes, ShareTheirPrograms) {
  for_each_op([&](const std::vector<ir::Sample>& samples) {
    for (const ir::Sample& sample : samples) {
      if (sample.op->name.starts_with("conv_transpose") || sample.text.find("ceil_mode") != std::string::npos) continue;
      for (int64_t from : sizes_of(sample.text, false)) {
        const eager::EagerStatistics before = eager::eager_statistics();
        for (int64_t to : {20, 24, 37, 61, 66, 131, 137}) {
          std::optional<ir::Graph> graph = resized(sample.text, from, to);
          if (!graph || most_elements(*graph) > 1 << 17) continue;
          try {
            run(*graph, eager_tensors(random_inputs(*graph, sample.op->name, 9)));
          } catch (const Error&) {
            continue;  // an index out of range
          }
        }
        const eager::EagerStatistics after = eager::eager_statistics();
        const int64_t most = sample.op->name.starts_with("adaptive_")  ? 6
                             : sample.op->name.starts_with("max_pool") ? 3
                                                                       : 2;
        EXPECT_LE(after.programs - before.programs, most) << "size " << from << " of\n" << sample.text;
        EXPECT_LE(after.pointwise_kernels - before.pointwise_kernels, 2) << "size " << from << " of\n" << sample.text;
      }
    }
  });
}

/// The sample with sizes `from` such that its largest tensor has about this many elements; nothing if that cannot be.
std::optional<ir::Graph> resized_about(const ir::Sample& sample, int64_t from, int64_t elements, int64_t multiple,
                                       int64_t rest) {
  std::optional<ir::Graph> small = resized(sample.text, from, multiple + rest);
  if (!small) return std::nullopt;
  int64_t to = elements / std::max<int64_t>(most_elements(*small) / (multiple + rest), 1);
  for (; to > multiple; to = to * 3 / 4) {
    std::optional<ir::Graph> graph = resized(sample.text, from, to / multiple * multiple + rest);
    if (!graph) return std::nullopt;
    if (most_elements(*graph) < elements * 5 / 4) return graph;
  }
  return std::nullopt;
}

/// Whether the results along the dims of this size depend on nothing else along them: the interpreter's answer for
/// inputs that repeat repeats.
bool independent(const ir::Graph& graph, const std::vector<ReferenceTensor>& inputs, const ir::Graph& longer) {
  std::vector<ReferenceTensor> wide;
  for (size_t i = 0; i < inputs.size(); ++i)
    wide.push_back(reference_of(tiled(eager_tensor(inputs[i]), shape_of(longer, longer.inputs[i].value))));
  const std::vector<ReferenceTensor> once = ir::interpret(graph, inputs), more = ir::interpret(longer, wide);
  bool grows = false;
  for (size_t o = 0; o < once.size(); ++o) {
    grows = grows || !(once[o].shape == more[o].shape);
    if (bytes_of(tiled(eager_tensor(once[o]), more[o].shape)) != bytes_of(eager_tensor(more[o]))) return false;
  }
  return grows;
}

bool same_bits(const Tensor& a, const Tensor& b) {
  const Tensor x = a.contiguous(), y = b.contiguous();
  return std::memcmp(x.data_ptr(), y.data_ptr(), static_cast<size_t>(x.nbytes())) == 0 || bytes_of(x) == bytes_of(y);
}

void expect_equal_on_threads(const std::vector<int>& counts, const ir::Graph& graph, const std::vector<Tensor>& inputs,
                             const std::vector<Tensor>& expected) {
  SCOPED_TRACE(ir::print(graph));
  for (int threads : counts) {
    set_num_threads(threads);
    const std::vector<Tensor> got = run(graph, inputs);
    for (size_t o = 0; o < got.size(); ++o)
      ASSERT_TRUE(same_bits(got[o], expected[o])) << "output " << o << " with " << threads << " threads";
  }
}

// Where results along a dim do not depend on each other, a small result that the interpreter confirms must come out
// again and again, to the bit: among 1 Mi elements for one dim of each op, 128 Ki for the others. Elsewhere the
// interpreter judges the large result itself: 1 Mi elements for reductions, 128 Ki for the others. All of that runs
// with 1 and with 7 threads, one dim of each op with 2 and 3 as well.
TEST_P(OpSizes, BeyondTheThreadingGrain) {
  for_each_op([&](const std::vector<ir::Sample>& samples) {
    int checked = 0;
    // Not of large matrices, whose interpreter would take its time.
    const int64_t elements = samples[0].op->has(ir::kMatrices)              ? 1 << 13
                             : samples[0].op->kind == ir::OpKind::reduction ? 1 << 20
                                                                            : 1 << 17;
    for (const ir::Sample& sample : samples)
      for (int64_t from : sizes_of(sample.text))
        for (bool odd : {true, false}) {  // some take but multiples: of groups, of two
          const int64_t multiple = odd ? 67 : 60;
          std::optional<ir::Graph> small = resized(sample.text, from, multiple),
                                   longer = resized(sample.text, from, 2 * multiple + (odd ? 5 : 12)),
                                   large = resized_about(sample, from, elements, multiple, odd ? 3 : 12);
          if (!small || !longer || !large) continue;
          std::vector<ReferenceTensor> inputs = random_inputs(*small, sample.op->name, 7);
          std::vector<Tensor> results;
          set_num_threads(1);
          if (!agree(sample, *small, inputs, &results)) continue;
          const bool first = ++checked == 1;
          const std::vector<int> threads = first ? std::vector<int>{2, 3, 7} : std::vector<int>{7};
          if (independent(*small, inputs, *longer)) {
            large = resized_about(sample, from, first ? 1 << 20 : 1 << 17, multiple, odd ? 3 : 12);
            std::vector<Tensor> wide, expected;
            for (size_t i = 0; i < inputs.size(); ++i)
              wide.push_back(tiled(eager_tensor(inputs[i]), shape_of(*large, large->inputs[i].value)));
            for (size_t o = 0; o < results.size(); ++o)
              expected.push_back(tiled(results[o], shape_of(*large, large->outputs[o])));
            expect_equal_on_threads(threads, *large, wide, expected);
          } else {
            inputs = random_inputs(*large, sample.op->name, 8);
            if (agree(sample, *large, inputs, &results))
              expect_equal_on_threads(threads, *large, eager_tensors(inputs), results);
          }
          break;
        }
    EXPECT_GE(checked, 1) << samples[0].op->name;
  });
}

TEST(EmptyDims, HaveADistanceWhereOneIsDefined) {
  const Tensor none = zeros({2, 0});
  EXPECT_TRUE(equal(pairwise_distance(none, none), zeros({2})));
  EXPECT_TRUE(equal(cdist(none, none, INFINITY), zeros({2, 2})));
  EXPECT_EQ(cross_entropy(none, none).item<float>(), 0);
  try {
    pairwise_distance(none, none, INFINITY);
    FAIL() << "the largest of no differences";
  } catch (const Error& e) {
    EXPECT_NE(std::string(e.what()).find("pairwise_distance: x1: got shape [2, 0], expected at least one element along "
                                         "dim 1"),
              std::string::npos)
        << e.what();
  }
}

}  // namespace
}  // namespace ingot
