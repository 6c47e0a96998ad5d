// The models of examples/models, one row each: made at full size, or at the size that a file's tensors have. Listed,
// benchmarked, checked and tested by way of this table.
#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "ingot.h"

namespace ingot::cli {

using Inputs = std::vector<Tensor>;

/// What a safetensors file says of a model: parameters and buffers (all its tensors but the inputs, or those under
/// `weight/` of a file with expected results), inputs, and a description, `about` in the file's header.
struct ModelFile {
  StateDict tensors, weights;
  Inputs inputs;
  std::string about;

  ModelFile() = default;
  /// Throws Error for what load() refuses.
  explicit ModelFile(const std::string& path);
  /// Those whose names begin with the prefix, without it.
  StateDict named(const std::string& prefix) const;

  bool has(const std::string& weight) const { return weights.contains(weight); }
  /// A size of a weight, counted from the back where negative. Throws Error where there is none or it is zero.
  int64_t size(const std::string& weight, int64_t dim) const;
  /// How many of `prefix`0`suffix`, `prefix`1`suffix`, ... there are.
  int64_t count(const std::string& prefix, const std::string& suffix) const;
  /// The number that stands before, or after, the first such words of the description.
  std::optional<double> number_before(const std::string& words) const;
  std::optional<double> number_after(const std::string& words) const;
  /// A whole number above 0 that stands before the words; Error if it is none, `otherwise` if the words are not there.
  int64_t positive_before(const std::string& words, int64_t otherwise) const;
};

/// A model, its type forgotten.
struct ZooModel {
  std::shared_ptr<nn::Module> module;
  /// Throws Error for too few inputs.
  std::function<Tensor(const Inputs&)> forward;
  /// Random inputs for a batch; `length` is that of sequences, 0 the row's.
  std::function<Inputs(int64_t batch, int64_t length)> example;
  bool sequences = false;  // whether a length says something
};

struct ZooRow {
  std::string name, title, input;
  /// At full size with random weights, or at the size that the file says (without dropout), the file's weights not yet
  /// loaded. Throws Error where the file does not describe such a model.
  std::function<ZooModel(const ModelFile* file)> make = nullptr;
  /// A published file's tensors under the names of the model: those of a file that holds the model without its head, or
  /// with one that the model has not; without tables that are no parameters.
  std::function<StateDict(const StateDict& published)> own_names = nullptr;
  bool whole_inputs = true;  // or it goes on from a cache: a file of the whole model has none, gradients do not pass it
  double slack = 1;          // by which rounding may be larger than elsewhere
};
const std::vector<ZooRow>& zoo_rows();
/// The row of that name, or the longest name that this begins with ("resnet18_wide"); none: null.
const ZooRow* find_zoo_row(const std::string& name);

/// With the file's weights, strictly but for what `own_names` changes.
ZooModel zoo_model(const ZooRow& row, const ModelFile& file);

/// Formats of linear layers' weights by the names that the command has for them: f32, bf16, f16, int8.
const std::vector<std::pair<std::string, DType>>& weight_formats();
/// Gives a model's linear layers weights of that format; of f32 they stay what they are.
void set_weight_format(nn::Module& model, const std::string& format);

/// The loss that a description names, of an output and the inputs: "cross-entropy", of the logits and the second input,
/// or "against" the classes that follow; "BCE with logits against" numbers; "mean of squares", "mean of cubes". Throws
/// Error for another.
std::function<Tensor(const Tensor& output, const Inputs& inputs)> zoo_loss(const std::string& about);

}  // namespace ingot::cli
