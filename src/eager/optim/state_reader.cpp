#include "eager/optim/state_reader.h"

#include <charconv>
#include <cmath>

#include "eager/call/call.h"
#include "eager/ops/factories.h"

namespace ingot::optim {
namespace {

std::string text(IntArrayRef sizes) {
  std::string s = "[";
  for (size_t i = 0; i < sizes.size(); ++i) s += (i ? ", " : "") + std::to_string(sizes[i]);
  return s + "]";
}

}  // namespace

std::string short_text(double number) {
  char text[32];
  return std::string(text, std::to_chars(text, text + sizeof text, number).ptr);
}
std::string group_name(size_t group) { return "param_groups." + std::to_string(group); }
std::string state_name(size_t param) { return "state." + std::to_string(param); }

Tensor stored(const Entry& entry) {
  return std::visit(
      [](const auto* value) {
        using T = std::remove_cvref_t<decltype(*value)>;
        if constexpr (std::is_same_v<T, Tensor>)
          return *value;
        else if constexpr (std::is_same_v<T, Betas>)
          return tensor({(*value)[0], (*value)[1]}, kFloat64);
        else if constexpr (std::is_same_v<T, double>)
          return tensor(*value, kFloat64);
        else
          return tensor(*value);
      },
      entry.at);
}

bool StateReader::has(const std::string& prefix) const {
  auto at = state_.lower_bound(prefix);
  return at != state_.end() && at->first.starts_with(prefix);
}

const Tensor& StateReader::at(const std::string& name) {
  auto found = state_.find(name);
  if (found == state_.end() || !found->second.defined()) refuse("no tensor for " + name, "one for each entry");
  used_.insert(name);
  return found->second;
}

std::vector<double> StateReader::numbers(const std::string& name, std::optional<int64_t> count) {
  const Tensor& t = at(name);
  if (count && t.numel() != *count)
    refuse(name + " with sizes " + text(t.sizes()), std::to_string(*count) + (*count == 1 ? " number" : " numbers"));
  const Tensor flat = t.to(kFloat64).contiguous();
  const double* values = flat.data_ptr<double>(location_);
  return {values, values + flat.numel()};
}

void StateReader::read(const std::string& prefix, const std::vector<Entry>& entries) {
  for (const Entry& e : entries) {
    const std::string name = prefix + "." + e.name;
    std::visit(
        [&](auto* own) {
          using T = std::remove_cvref_t<decltype(*own)>;
          if constexpr (std::is_same_v<T, Tensor>) {
            if (own->defined()) read(name, *own);
          } else if constexpr (std::is_same_v<T, Betas>) {
            const std::vector<double> values = numbers(name, 2);
            *own = {values[0], values[1]};
          } else {
            const double given = number(name);
            if (std::is_same_v<T, int64_t> && !(given >= 0 && given < 0x1p63 && given == std::floor(given)))
              refuse(name + " of " + short_text(given), "a whole number, not negative");
            *own = static_cast<T>(given);
          }
        },
        e.at);
  }
}

void StateReader::read(const std::string& name, const Tensor& own) {
  const Tensor& given = at(name);
  if (given.sizes() != own.sizes())
    refuse(name + " with sizes " + text(given.sizes()), "its parameter's: " + text(own.sizes()));
  own.copy_(given, location_);
}

void StateReader::finish() const {
  for (const auto& [name, tensor] : state_)
    if (!used_.count(name)) refuse(name, "nothing but the options, and the state of the parameters, of this optimizer");
}

void StateReader::refuse(const std::string& got, const std::string& expected) const {
  eager::fail(op_, "state", got, expected, location_);
}

}  // namespace ingot::optim
