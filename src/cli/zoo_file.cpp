// What a model's file says of it.
#include <cctype>
#include <charconv>
#include <cmath>

#include "base/first_use.h"
#include "cli/zoo.h"

namespace ingot::cli {
namespace {

/// The number that the text begins with.
std::optional<double> number_at(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !std::isfinite(value)) return {};
  return value;
}

/// Numbers with blanks between, to the end or to what is no number.
std::vector<double> numbers_of(std::string_view text) {
  std::vector<double> numbers;
  for (;;) {
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
    const auto number = number_at(text);
    if (!number) return numbers;
    numbers.push_back(*number);
    const size_t end = text.find(' ');
    if (end == std::string_view::npos) return numbers;
    text.remove_prefix(end);
  }
}

}  // namespace

ModelFile::ModelFile(const std::string& path) {
  tensors = load(path, {.mapped = false}, Location::none());  // whoever cuts the file short meanwhile gets an Error
  const auto metadata = load_metadata(path, Location::none());
  if (const auto found = metadata.find("about"); found != metadata.end()) about = found->second;
  weights = named("weight/");
  if (weights.empty()) {
    weights = tensors;
    std::erase_if(weights, [](const auto& each) { return each.first.starts_with("input/"); });
  }
  for (size_t i = 0; tensors.contains("input/" + std::to_string(i)); ++i)
    inputs.push_back(tensors.at("input/" + std::to_string(i)));
}

StateDict ModelFile::named(const std::string& prefix) const {
  StateDict found;
  for (auto it = tensors.lower_bound(prefix); it != tensors.end() && it->first.starts_with(prefix); ++it)
    found[it->first.substr(prefix.size())] = it->second;
  return found;
}

int64_t ModelFile::size(const std::string& weight, int64_t dim) const {
  const auto found = weights.find(weight);
  if (found == weights.end()) throw Error("the file has no weight '" + weight + "', from which sizes are read");
  const Tensor& t = found->second;
  const int64_t at = dim < 0 ? dim + t.dim() : dim;
  if (at < 0 || at >= t.dim() || t.size(at) < 1)
    throw Error("weight '" + weight + "': got " + std::to_string(t.dim()) + " dims, expected a size in dim " +
                std::to_string(dim) + " that is not zero");
  return t.size(at);
}

int64_t ModelFile::count(const std::string& prefix, const std::string& suffix) const {
  int64_t n = 0;
  while (has(prefix + std::to_string(n) + suffix)) ++n;
  return n;
}

std::optional<double> ModelFile::number_before(const std::string& words) const {
  for (size_t at = about.find(words); at != std::string::npos; at = about.find(words, at + 1)) {
    size_t begin = at;
    while (begin > 0 && std::isdigit(static_cast<unsigned char>(about[begin - 1]))) --begin;
    if (begin < at) return number_at(std::string_view(about).substr(begin, at - begin));
  }
  return {};
}
std::optional<double> ModelFile::number_after(const std::string& words) const {
  const size_t at = about.find(words);
  if (at == std::string::npos) return {};
  return number_at(std::string_view(about).substr(at + words.size()));
}
int64_t ModelFile::positive_before(const std::string& words, int64_t otherwise) const {
  const auto number = number_before(words);
  if (!number) return otherwise;
  if (!(*number >= 1 && *number < 1e9)) throw Error("about: got " + std::to_string(*number) + words);
  return static_cast<int64_t>(*number);
}

std::function<Tensor(const Tensor&, const Inputs&)> zoo_loss(const std::string& about) {
  const std::string word = "loss: ", against = " against ";
  const size_t at = about.rfind(word);
  if (at == std::string::npos) throw Error("about: got no loss, expected 'loss: ...' in '" + about + "'");
  std::string what = about.substr(at + word.size());
  std::vector<double> targets;
  if (const size_t end = what.find(against); end != std::string::npos) {
    targets = numbers_of(std::string_view(what).substr(end + against.size()));
    if (targets.empty()) throw Error("about: got no targets after '" + what + "'");
    what = what.substr(0, end);
  }
  if (what == "mean of squares") return [](const Tensor& y, const Inputs&) { return y.square().mean(); };
  if (what == "mean of cubes") return [](const Tensor& y, const Inputs&) { return y.pow(3).mean(); };
  if (what == "BCE with logits" && !targets.empty())
    return [all = tensor(targets)](const Tensor& y, const Inputs&) {
      return F::binary_cross_entropy_with_logits(y, all.to(y.dtype()).reshape(y.sizes()));
    };
  if (what == "cross-entropy" && !targets.empty())
    return
        [classes = tensor(targets).to(kInt64)](const Tensor& y, const Inputs&) { return F::cross_entropy(y, classes); };
  if (what == "cross-entropy")
    return [](const Tensor& y, const Inputs& inputs) {
      if (inputs.size() < 2) throw Error("the loss: got one input, expected the tokens that follow as the second");
      return F::cross_entropy(y.flatten(0, -2), inputs[1].flatten());
    };
  throw Error("loss: got '" + what +
              "', expected cross-entropy, BCE with logits against numbers, mean of squares or mean of cubes");
}

const ZooRow* find_zoo_row(const std::string& name) {
  const ZooRow* best = nullptr;
  for (const ZooRow& row : zoo_rows()) {
    if (!name.starts_with(row.name)) continue;
    const bool whole =
        name.size() == row.name.size() || !std::isalnum(static_cast<unsigned char>(name[row.name.size()]));
    if (whole && (!best || best->name.size() < row.name.size())) best = &row;
  }
  return best;
}

ZooModel zoo_model(const ZooRow& row, const ModelFile& file) {
  ModelFile own = file;
  if (row.own_names) own.weights = row.own_names(file.weights);
  ZooModel model = row.make(&own);
  model.module->load_state_dict(own.weights, true, Location::none());
  return model;
}

const std::vector<std::pair<std::string, DType>>& weight_formats() {
  constinit static FirstUse<std::vector<std::pair<std::string, DType>>> formats;
  return formats.get([] {
    return std::vector<std::pair<std::string, DType>>{
        {"f32", kFloat32}, {"bf16", kBFloat16}, {"f16", kFloat16}, {"int8", kInt8}};
  });
}
void set_weight_format(nn::Module& model, const std::string& format) {
  for (const auto& [name, dtype] : weight_formats())
    if (name == format && dtype != kFloat32) nn::convert_weights(model, dtype);
}

}  // namespace ingot::cli
