// What an optimizer reads from a state dict, and the names that its entries have there.
#pragma once
#include <set>

#include "eager/optim/optimizer.h"

namespace ingot::optim {

/// "0.1", as in errors.
std::string short_text(double number);
/// What the entries of a group and of a parameter's state begin with.
std::string group_name(size_t group);
std::string state_name(size_t param);
/// What an entry is in a file; undefined where there is nothing yet.
Tensor stored(const Entry& entry);

/// Reads what a state dict holds, and remembers what was asked for.
class StateReader {
 public:
  StateReader(const char* op, const StateDict& state, Location location)
      : op_(op), state_(state), location_(location) {}
  bool has(const std::string& prefix) const;
  /// Writes "PREFIX.NAME" through each entry whose tensor, if it is one, is defined.
  void read(const std::string& prefix, const std::vector<Entry>& entries);
  double number(const std::string& name) { return numbers(name, 1)[0]; }
  /// All elements; as many as are expected, if anything is.
  std::vector<double> numbers(const std::string& name, std::optional<int64_t> count = {});
  /// Throws Error for what nobody asked for.
  void finish() const;
  [[noreturn]] void refuse(const std::string& got, const std::string& expected) const;

 private:
  const Tensor& at(const std::string& name);
  void read(const std::string& name, const Tensor& own);

  const char* op_;
  const StateDict& state_;
  Location location_;
  std::set<std::string> used_;
};

}  // namespace ingot::optim
