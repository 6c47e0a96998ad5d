// Models against what a folder of safetensors files says that they give and learn.
#pragma once
#include <functional>
#include <string>
#include <vector>

namespace ingot::cli {

/// `name` is what differs: eval_output, train_output, loss, grad/NAME, buffer_after/NAME; a file that cannot be judged
/// has the mode "file".
struct ModelFailure {
  std::string model, mode, name, error;
};
struct ModelChecks {
  std::vector<std::string> models;   // files judged, or found unfit to be
  std::vector<std::string> skipped;  // files that hold no model by their own word: of optimizers
  int64_t checks = 0;                // results compared
  std::vector<ModelFailure> failures;
};

/// Every safetensors file of the folder, and every model that its index.json names: output in evaluation, eager,
/// checked and frozen; output, loss, gradients and statistics of a step of training, eager, as one compiled function,
/// and with the model compiled alone. Compiled results are to have eager's bits. Outputs and statistics may be off by
/// 1e-4 of the largest number expected (statistics by 1e-6, too), the loss by 1e-5 of max(1, |loss|), a gradient by
/// 1e-3 of its norm or 1e-6 of the largest norm of the model's gradients; for resnet50 by three times as much.
/// `progress` is told of each file before it is read. Throws Error where there is no such folder.
ModelChecks check_models(const std::string& folder, const std::function<void(const std::string&)>& progress);

}  // namespace ingot::cli
