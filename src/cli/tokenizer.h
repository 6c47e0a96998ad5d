// Text to tokens and back: byte-level byte pair encoding, as Hugging Face's tokenizer.json describes it.
#pragma once
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace ingot::cli {

/// Byte pair encoding (Sennrich et al., "Neural Machine Translation of Rare Words with Subword Units", 2016) over bytes
/// (Radford et al., "Language Models are Unsupervised Multitask Learners", 2019): a text is split by regular
/// expressions, and of neighbours in a piece the pair of the earliest rule is joined, again and again. Read-only once
/// it is made: threads may share one.
class Tokenizer {
 public:
  /// Reads tokenizer.json. Throws Error, with the file and the field, for a file that is damaged or that describes
  /// another kind of tokenizer.
  explicit Tokenizer(const std::string& path);
  ~Tokenizer();
  Tokenizer(Tokenizer&&) noexcept;

  /// With the tokens that the file puts around every text (`special`). Throws Error for text that is not UTF-8.
  std::vector<int64_t> encode(std::string_view text, bool special = true) const;
  /// The bytes of a token; nothing of a special one unless asked for. Throws Error for a number that is no token's.
  std::string_view bytes_of(int64_t token, bool special = false) const;
  /// As UTF-8: what is no character is U+FFFD.
  std::string decode(const std::vector<int64_t>& tokens, bool special = false) const;
  /// One above the largest number of a token.
  int64_t size() const;
  std::optional<int64_t> token(const std::string& text) const;

 private:
  struct Tables;
  std::unique_ptr<Tables> tables_;
};

/// Bytes of UTF-8 as they come, of which a character may come in parts.
class Utf8Stream {
 public:
  /// What can be shown by now: whole characters, U+FFFD for what is none.
  std::string add(std::string_view bytes);
  /// What is left over.
  std::string finish();

 private:
  std::string pending_;
};

}  // namespace ingot::cli
