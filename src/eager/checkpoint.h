// A training run in one file: model, optimizer, scheduler, random numbers and numbers of the user's own.
//
//   save_checkpoint("run.ckpt", {.model = &*net, .optimizer = &opt, .scheduler = &rate, .numbers = {{"epoch",
//   epoch}}}); auto numbers = load_checkpoint("run.ckpt", {.model = &*net, .optimizer = &opt, .scheduler = &rate});
#pragma once
#include <map>
#include <optional>
#include <string>

#include "eager/nn/module.h"
#include "eager/optim/schedulers.h"

namespace ingot {

/// The parts of a checkpoint; those that are absent are neither saved nor loaded.
struct Checkpoint {
  nn::Module* model = nullptr;
  optim::Optimizer* optimizer = nullptr;
  optim::LRScheduler* scheduler = nullptr;
  std::optional<Generator> generator = {};
  std::map<std::string, double> numbers = {};
};

/// Writes a safetensors file as save() does: whatever ends the process or the machine, `path` is a whole file, this one
/// or the one before.
INGOT_API void save_checkpoint(const std::string& path, const Checkpoint& parts, Location location = Location());
/// Loads all parts that are asked for; `numbers` are given back. Throws Error that names the file, and changes nothing,
/// where the file is no whole checkpoint, lacks one of these parts or has more, or a tensor is missing, unknown or of a
/// wrong shape.
INGOT_API std::map<std::string, double> load_checkpoint(const std::string& path, const Checkpoint& parts,
                                                        Location location = Location());

}  // namespace ingot
