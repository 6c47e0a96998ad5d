#include "cli/tokenizer.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <queue>

#define PCRE2_CODE_UNIT_WIDTH 8
#include <pcre2.h>

#include "base/error.h"
#include "conformance/json_text.h"

namespace ingot::cli {
namespace {

using Json = nlohmann::json;

/// Bytes of the character that begins here: 1 to 4; 0 where none does, and then `bad` bytes belong together. `cut`: the
/// text ends within it.
struct Character {
  size_t length = 0, bad = 1;
  bool cut = false;
};
// The table of well-formed sequences of the Unicode standard (3.9, table 3-7).
Character character_at(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<unsigned char>(text[i]); };
  const unsigned first = byte(0);
  if (first < 0x80) return {.length = 1};
  const size_t length = first >= 0xC2 && first <= 0xDF   ? 2
                        : (first & 0xF0) == 0xE0         ? 3
                        : first >= 0xF0 && first <= 0xF4 ? 4
                                                         : 0;
  if (length == 0) return {};
  const unsigned low = first == 0xE0 ? 0xA0 : first == 0xF0 ? 0x90 : 0x80;
  const unsigned high = first == 0xED ? 0x9F : first == 0xF4 ? 0x8F : 0xBF;
  for (size_t i = 1; i < length; ++i) {
    if (i == text.size()) return {.bad = i, .cut = true};
    const unsigned next = byte(i);
    if (next < (i == 1 ? low : 0x80) || next > (i == 1 ? high : 0xBF)) return {.bad = i};
  }
  return {.length = length};
}

void append_utf8(std::string& text, unsigned point) {
  if (point < 0x80) {
    text += static_cast<char>(point);
  } else {  // the alphabet ends below U+0800
    text += static_cast<char>(0xC0 | point >> 6);
    text += static_cast<char>(0x80 | (point & 0x3F));
  }
}

/// GPT-2's alphabet: a printable character for each byte; bytes that have none take those from U+0100 on, in order.
const std::array<std::string, 256>& alphabet() {
  static const std::array<std::string, 256> letters = [] {
    std::array<std::string, 256> all;
    unsigned next = 256;
    for (unsigned b = 0; b < 256; ++b) {
      const bool printable = (b >= 33 && b <= 126) || (b >= 161 && b <= 172) || b >= 174;
      append_utf8(all[b], printable ? b : next++);
    }
    return all;
  }();
  return letters;
}

}  // namespace
namespace tokens {

struct FreeCode {
  void operator()(pcre2_code* code) const { pcre2_code_free(code); }
};
struct FreeMatch {
  void operator()(pcre2_match_data* match) const { pcre2_match_data_free(match); }
};

/// One division of a text into pieces.
struct Splitter {
  std::unique_ptr<pcre2_code, FreeCode> code;
  bool keep_matches = true, keep_rest = true;

  Splitter(const std::string& pattern, bool literal) {
    int error = 0;
    size_t at = 0;
    code.reset(pcre2_compile(reinterpret_cast<PCRE2_SPTR>(pattern.data()), pattern.size(),
                             PCRE2_UTF | (literal ? PCRE2_LITERAL : PCRE2_UCP), &error, &at, nullptr));
    if (!code) {
      std::array<PCRE2_UCHAR, 256> text{};
      pcre2_get_error_message(error, text.data(), text.size());
      throw Error(fmt::format("got the pattern '{}', which is none at byte {}: {}", pattern, at,
                              reinterpret_cast<const char*>(text.data())));
    }
  }

  void split(std::string_view text, std::vector<std::string_view>& pieces) const {
    std::unique_ptr<pcre2_match_data, FreeMatch> match(pcre2_match_data_create_from_pattern(code.get(), nullptr));
    if (!match) throw std::bad_alloc();
    size_t done = 0, from = 0;
    auto put = [&](size_t begin, size_t end, bool keep) {
      if (keep && begin < end) pieces.push_back(text.substr(begin, end - begin));
    };
    while (from <= text.size()) {
      const int found = pcre2_match(code.get(), reinterpret_cast<PCRE2_SPTR>(text.data()), text.size(), from,
                                    PCRE2_NO_UTF_CHECK, match.get(), nullptr);
      if (found == PCRE2_ERROR_NOMATCH) break;
      if (found < 0) throw Error(fmt::format("the text cannot be split (PCRE2 error {})", found));
      const size_t* ends = pcre2_get_ovector_pointer(match.get());
      if (ends[1] <= ends[0]) {  // an empty match divides nothing
        if (ends[0] >= text.size()) break;
        from = ends[0] + std::max<size_t>(1, character_at(text.substr(ends[0])).length);
        continue;
      }
      put(done, ends[0], keep_rest);
      put(ends[0], ends[1], keep_matches);
      done = from = ends[1];
    }
    put(done, text.size(), keep_rest);
  }
};

constexpr const char* kByteLevelPattern = R"('(?:s|t|re|ve|m|ll|d)| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+)";

/// A token that stands for itself wherever it is written.
struct AddedToken {
  std::string text;
  int64_t number = 0;
  bool special = false, strips_left = false, strips_right = false;
};

}  // namespace tokens
namespace {

using tokens::AddedToken, tokens::kByteLevelPattern, tokens::Splitter;

[[noreturn]] void refuse(const std::string& field, const std::string& got, const std::string& expected) {
  throw Error(fmt::format("{}: got {}, expected {}", field, got, expected));
}
const Json* find(const Json& object, const char* key) {
  if (!object.is_object()) return nullptr;
  const auto found = object.find(key);
  return found == object.end() || found->is_null() ? nullptr : &*found;
}
std::string text_field(const Json& object, const char* key, const std::string& field) {
  const Json* value = find(object, key);
  if (!value || !value->is_string()) refuse(field, value ? value->dump() : "nothing", "a text");
  return value->get<std::string>();
}
bool flag_of(const Json& object, const char* key, bool otherwise) {
  const Json* value = find(object, key);
  if (!value) return otherwise;
  if (!value->is_boolean()) refuse(key, value->dump(), "true or false");
  return value->get<bool>();
}
int64_t number_of(const Json& value, const std::string& field) {
  if (!value.is_number_integer() || value < 0 || value > INT32_MAX) refuse(field, value.dump(), "a token's number");
  return value.get<int64_t>();
}

uint64_t pair_key(int64_t left, int64_t right) {
  return static_cast<uint64_t>(left) << 32 | static_cast<uint64_t>(right);
}

// White_Space of the Unicode standard.
constexpr std::string_view kBlanks[] = {"\t",     "\n",     "\v",     "\f",     "\r",     " ",      "\u0085",
                                        "\u00a0", "\u1680", "\u2000", "\u2001", "\u2002", "\u2003", "\u2004",
                                        "\u2005", "\u2006", "\u2007", "\u2008", "\u2009", "\u200a", "\u2028",
                                        "\u2029", "\u202f", "\u205f", "\u3000"};
/// Bytes of the blank that a text begins or ends with; 0: it does not.
size_t blank_of(std::string_view text, bool at_end) {
  for (const std::string_view blank : kBlanks)
    if (at_end ? text.ends_with(blank) : text.starts_with(blank)) return blank.size();
  return 0;
}

}  // namespace

struct Tokenizer::Tables {
  struct Rule {
    int64_t rank = 0, joined = 0;
  };
  std::vector<Splitter> splitters;
  bool byte_level = false, prefix_space = false, whole_pieces = false;
  std::unordered_map<std::string, int64_t> numbers;  // of tokens as the file writes them
  std::vector<std::string> bytes;                    // of each number; empty where there is none
  std::vector<uint8_t> kind;                         // 0 none, 1 a token, 2 a special one
  std::array<int64_t, 256> of_byte{};                // -1: none
  std::unordered_map<uint64_t, Rule> rules;
  std::vector<AddedToken> added;  // longest first
  std::array<bool, 256> begins_added{};
  std::vector<int64_t> before, after;

  void read(const Json& json);
  void read_model(const Json& model);
  void read_added(const Json& list);
  void read_pre_tokenizer(const Json& json);
  void read_post_processor(const Json& json);
  void put(int64_t number, const std::string& text, uint8_t what);

  void encode_piece(std::string_view piece, std::vector<int64_t>& tokens) const;
  void encode_plain(std::string_view text, std::vector<int64_t>& tokens) const;
};

void Tokenizer::Tables::put(int64_t number, const std::string& text, uint8_t what) {
  // Numbers are those of a table: one that is far off is no table's, and would take its memory.
  if (number > 2'000'000) refuse("tokens", "number " + std::to_string(number), "at most 2000000");
  if (static_cast<size_t>(number) >= bytes.size()) bytes.resize(number + 1), kind.resize(number + 1);
  bytes[number] = text, kind[number] = what;
}

void Tokenizer::Tables::read(const Json& json) {
  if (!json.is_object()) refuse("the file", "no object", "a tokenizer");
  if (const Json* normalizer = find(json, "normalizer"))
    refuse("normalizer", normalizer->dump().substr(0, 80), "none: texts are taken as they are");
  const Json* model = find(json, "model");
  if (!model) refuse("model", "nothing", "a byte-level BPE");
  if (const std::string type = text_field(*model, "type", "model.type"); type != "BPE")
    refuse("model.type", "\"" + type + "\"", "\"BPE\"");
  const Json* pre = find(json, "pre_tokenizer");
  if (pre) read_pre_tokenizer(*pre);
  if (!byte_level) refuse("pre_tokenizer", pre ? pre->dump().substr(0, 80) : "nothing", "one with ByteLevel");
  read_model(*model);
  if (const Json* list = find(json, "added_tokens")) read_added(*list);
  if (const Json* post = find(json, "post_processor")) read_post_processor(*post);
}

void Tokenizer::Tables::read_pre_tokenizer(const Json& json) {
  const std::string type = text_field(json, "type", "pre_tokenizer.type");
  if (type == "Sequence") {
    const Json* list = find(json, "pretokenizers");
    if (!list || !list->is_array()) refuse("pre_tokenizer.pretokenizers", "none", "a list");
    for (const Json& part : *list) read_pre_tokenizer(part);
  } else if (byte_level) {
    refuse("pre_tokenizer", "\"" + type + "\" after ByteLevel", "ByteLevel as the last");
  } else if (type == "ByteLevel") {
    byte_level = true;
    prefix_space = flag_of(json, "add_prefix_space", true);
    if (prefix_space && !splitters.empty())
      refuse("pre_tokenizer.add_prefix_space", "true after a split", "false, or ByteLevel alone");
    if (flag_of(json, "use_regex", true)) splitters.emplace_back(kByteLevelPattern, false);
  } else if (type == "Split") {
    const Json* pattern = find(json, "pattern");
    if (!pattern || !pattern->is_object() || pattern->size() != 1) refuse("pre_tokenizer.pattern", "none", "one");
    const bool literal = find(*pattern, "String") != nullptr;
    Splitter splitter(text_field(*pattern, literal ? "String" : "Regex", "pre_tokenizer.pattern"), literal);
    const std::string behavior = text_field(json, "behavior", "pre_tokenizer.behavior");
    if (behavior != "Isolated" && behavior != "Removed")
      refuse("pre_tokenizer.behavior", "\"" + behavior + "\"", "\"Isolated\" or \"Removed\"");
    if (behavior == "Removed") (flag_of(json, "invert", false) ? splitter.keep_rest : splitter.keep_matches) = false;
    splitters.push_back(std::move(splitter));
  } else if (type == "Digits") {
    splitters.emplace_back(flag_of(json, "individual_digits", false) ? "\\p{N}" : "\\p{N}+", false);
  } else {
    refuse("pre_tokenizer.type", "\"" + type + "\"", "\"ByteLevel\", \"Split\", \"Digits\" or \"Sequence\"");
  }
}

void Tokenizer::Tables::read_model(const Json& model) {
  for (const char* key : {"continuing_subword_prefix", "end_of_word_suffix"})
    if (const Json* text = find(model, key); text && *text != "")
      refuse(std::string("model.") + key, text->dump(), "none: bytes are joined as they are");
  if (flag_of(model, "byte_fallback", false)) refuse("model.byte_fallback", "true", "a byte-level BPE, without");
  if (const Json* dropout = find(model, "dropout"); dropout && *dropout != 0.0)
    refuse("model.dropout", dropout->dump(), "none");
  whole_pieces = flag_of(model, "ignore_merges", false);
  const Json* vocabulary = find(model, "vocab");
  if (!vocabulary || !vocabulary->is_object()) refuse("model.vocab", "none", "an object of tokens and their numbers");
  std::unordered_map<std::string, unsigned> letters;
  for (unsigned b = 0; b < 256; ++b) letters[alphabet()[b]] = b;
  of_byte.fill(-1);
  for (const auto& [token, value] : vocabulary->items()) {
    const int64_t number = number_of(value, "model.vocab." + token);
    std::string plain;
    std::string_view rest = token;
    while (!rest.empty()) {
      const size_t length = std::max<size_t>(1, character_at(rest).length);
      const auto letter = letters.find(std::string(rest.substr(0, length)));
      if (letter == letters.end()) break;  // of no byte: an added token that is also listed here
      plain += static_cast<char>(letter->second);
      rest.remove_prefix(length);
    }
    if (static_cast<size_t>(number) < kind.size() && kind[number])
      refuse("model.vocab." + token, "number " + std::to_string(number) + ", which another token has",
             "one of its own");
    put(number, rest.empty() ? plain : token, 1);
    numbers.emplace(token, number);
    if (rest.empty() && plain.size() == 1) of_byte[static_cast<unsigned char>(plain[0])] = number;
  }
  const Json* merges = find(model, "merges");
  if (!merges || !merges->is_array()) refuse("model.merges", "none", "a list of pairs");
  int64_t rank = 0;
  for (const Json& merge : *merges) {
    std::string left, right;
    if (merge.is_string()) {
      const std::string text = merge.get<std::string>();
      const size_t blank = text.find(' ');
      if (blank != std::string::npos) left = text.substr(0, blank), right = text.substr(blank + 1);
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() && merge[1].is_string()) {
      left = merge[0].get<std::string>(), right = merge[1].get<std::string>();
    }
    const auto a = numbers.find(left), b = numbers.find(right), joined = numbers.find(left + right);
    if (left.empty() || right.empty() || a == numbers.end() || b == numbers.end() || joined == numbers.end())
      refuse(fmt::format("model.merges[{}]", rank), merge.dump(), "two tokens whose join is one");
    rules.try_emplace(pair_key(a->second, b->second), Rule{rank++, joined->second});
  }
}

void Tokenizer::Tables::read_added(const Json& list) {
  if (!list.is_array()) refuse("added_tokens", "no list", "a list");
  for (const Json& entry : list) {
    AddedToken token;
    token.text = text_field(entry, "content", "added_tokens.content");
    const Json* number = find(entry, "id");
    token.number = number_of(number ? *number : Json(), "added_tokens.id");
    token.special = flag_of(entry, "special", false);
    token.strips_left = flag_of(entry, "lstrip", false), token.strips_right = flag_of(entry, "rstrip", false);
    if (flag_of(entry, "single_word", false)) refuse("added_tokens.single_word", "true of " + token.text, "false");
    if (token.text.empty()) refuse("added_tokens.content", "an empty text", "a text");
    put(token.number, token.text, token.special ? 2 : 1);
    numbers[token.text] = token.number;
    begins_added[static_cast<unsigned char>(token.text[0])] = true;
    added.push_back(std::move(token));
  }
  std::stable_sort(added.begin(), added.end(),
                   [](const AddedToken& a, const AddedToken& b) { return a.text.size() > b.text.size(); });
}

void Tokenizer::Tables::read_post_processor(const Json& json) {
  const std::string type = text_field(json, "type", "post_processor.type");
  if (type == "Sequence") {
    const Json* list = find(json, "processors");
    if (!list || !list->is_array()) refuse("post_processor.processors", "none", "a list");
    for (const Json& part : *list) read_post_processor(part);
  } else if (type == "TemplateProcessing") {
    const Json *single = find(json, "single"), *specials = find(json, "special_tokens");
    if (!single || !single->is_array()) refuse("post_processor.single", "none", "a list");
    bool text_seen = false;
    for (const Json& item : *single) {
      if (find(item, "Sequence")) {
        text_seen = true;
        continue;
      }
      const Json* named = find(item, "SpecialToken");
      const std::string name = named ? text_field(*named, "id", "post_processor.single") : "";
      const Json* entry = specials ? find(*specials, name.c_str()) : nullptr;
      const Json* ids = entry ? find(*entry, "ids") : nullptr;
      if (!ids || !ids->is_array()) refuse("post_processor.special_tokens", "no numbers of '" + name + "'", "some");
      for (const Json& id : *ids) {
        const int64_t number = number_of(id, "post_processor.special_tokens");
        if (static_cast<size_t>(number) >= kind.size() || !kind[number])
          refuse("post_processor.special_tokens", "number " + std::to_string(number), "a token's");
        (text_seen ? after : before).push_back(number);
      }
    }
  } else if (type != "ByteLevel") {
    refuse("post_processor.type", "\"" + type + "\"", "\"ByteLevel\", \"TemplateProcessing\" or \"Sequence\"");
  }
}

// Pieces are as long as someone writes: pairs wait in a heap, so that a piece of n bytes takes n log n.
void Tokenizer::Tables::encode_piece(std::string_view piece, std::vector<int64_t>& tokens) const {
  if (whole_pieces) {
    std::string written;
    for (const char c : piece) written += alphabet()[static_cast<unsigned char>(c)];
    if (const auto found = numbers.find(written); found != numbers.end()) return tokens.push_back(found->second);
  }
  struct Symbol {
    int64_t token;  // -1: joined to the one before
    int previous, next;
  };
  struct Waiting {
    int64_t rank;
    int at;
    int64_t left, right, joined;
    bool operator<(const Waiting& o) const { return rank != o.rank ? rank > o.rank : at > o.at; }
  };
  std::vector<Symbol> symbols(piece.size());
  const int count = static_cast<int>(piece.size());
  for (int i = 0; i < count; ++i) {
    const auto byte = static_cast<unsigned char>(piece[i]);
    if (of_byte[byte] < 0) throw Error(fmt::format("tokenizer: byte 0x{:02x} has no token", byte));
    symbols[i] = {of_byte[byte], i - 1, i + 1 < count ? i + 1 : -1};
  }
  std::priority_queue<Waiting> waiting;
  auto look = [&](int at) {
    if (at < 0 || symbols[at].next < 0) return;
    const int64_t left = symbols[at].token, right = symbols[symbols[at].next].token;
    if (const auto rule = rules.find(pair_key(left, right)); rule != rules.end())
      waiting.push({rule->second.rank, at, left, right, rule->second.joined});
  };
  for (int i = 0; i + 1 < count; ++i) look(i);
  while (!waiting.empty()) {
    const Waiting top = waiting.top();
    waiting.pop();
    Symbol& left = symbols[top.at];
    if (left.token != top.left || left.next < 0 || symbols[left.next].token != top.right) continue;  // it is gone
    Symbol& right = symbols[left.next];
    right.token = -1;
    left.token = top.joined, left.next = right.next;
    if (left.next >= 0) symbols[left.next].previous = top.at;
    look(left.previous);
    look(top.at);
  }
  for (int i = 0; i >= 0 && i < count; i = symbols[i].next) tokens.push_back(symbols[i].token);
}

void Tokenizer::Tables::encode_plain(std::string_view text, std::vector<int64_t>& tokens) const {
  if (text.empty()) return;
  std::string spaced;
  if (prefix_space && text.front() != ' ') text = spaced.append(" ").append(text);
  std::vector<std::string_view> pieces{text}, finer;
  for (const Splitter& splitter : splitters) {
    finer.clear();
    for (std::string_view piece : pieces) splitter.split(piece, finer);
    pieces.swap(finer);
  }
  for (std::string_view piece : pieces) encode_piece(piece, tokens);
}

Tokenizer::Tokenizer(const std::string& path) : tables_(std::make_unique<Tables>()) {
  const Json json = conformance::read_json(path);
  try {
    tables_->read(json);
  } catch (const Error& error) {
    throw Error("tokenizer " + path + ": " + error.what());
  }
}
Tokenizer::~Tokenizer() = default;
Tokenizer::Tokenizer(Tokenizer&&) noexcept = default;

std::vector<int64_t> Tokenizer::encode(std::string_view text, bool special) const {
  for (size_t at = 0; at < text.size();) {
    const size_t length = character_at(text.substr(at)).length;
    if (length == 0)
      throw Error(
          fmt::format("text: got byte 0x{:02x} at {}, expected UTF-8", static_cast<unsigned char>(text[at]), at));
    at += length;
  }
  const Tables& t = *tables_;
  std::vector<int64_t> tokens;
  if (special) tokens = t.before;
  size_t plain = 0;
  for (size_t at = 0; at < text.size();) {
    const AddedToken* found = nullptr;
    if (t.begins_added[static_cast<unsigned char>(text[at])])
      for (const AddedToken& token : t.added)
        if (text.substr(at).starts_with(token.text)) {
          found = &token;
          break;
        }
    if (!found) {
      ++at;
      continue;
    }
    size_t end = at;
    while (const size_t blank = found->strips_left ? blank_of(text.substr(plain, end - plain), true) : 0) end -= blank;
    t.encode_plain(text.substr(plain, end - plain), tokens);
    tokens.push_back(found->number);
    at += found->text.size();
    while (const size_t blank = found->strips_right ? blank_of(text.substr(at), false) : 0) at += blank;
    plain = at;
  }
  t.encode_plain(text.substr(plain), tokens);
  if (special) tokens.insert(tokens.end(), t.after.begin(), t.after.end());
  return tokens;
}

std::string_view Tokenizer::bytes_of(int64_t token, bool special) const {
  if (token < 0 || token >= size() || !tables_->kind[token])
    throw Error(fmt::format("token: got {}, expected a number of the tokenizer's {}", token, size()));
  return tables_->kind[token] == 2 && !special ? std::string_view() : tables_->bytes[token];
}

std::string Tokenizer::decode(const std::vector<int64_t>& tokens, bool special) const {
  Utf8Stream stream;
  std::string text;
  for (const int64_t token : tokens) text += stream.add(bytes_of(token, special));
  return text + stream.finish();
}

int64_t Tokenizer::size() const { return static_cast<int64_t>(tables_->kind.size()); }
std::optional<int64_t> Tokenizer::token(const std::string& text) const {
  const auto found = tables_->numbers.find(text);
  return found == tables_->numbers.end() ? std::nullopt : std::optional(found->second);
}

std::string Utf8Stream::add(std::string_view bytes) {
  pending_ += bytes;
  std::string shown;
  std::string_view rest = pending_;
  while (!rest.empty()) {
    const Character c = character_at(rest);
    if (c.cut) break;
    const size_t length = std::max(c.length, c.bad);
    shown += c.length ? std::string(rest.substr(0, length)) : "\xEF\xBF\xBD";
    rest.remove_prefix(length);
  }
  pending_ = std::string(rest);
  return shown;
}
std::string Utf8Stream::finish() {
  const bool any = !pending_.empty();
  pending_.clear();
  return any ? "\xEF\xBF\xBD" : "";
}

}  // namespace ingot::cli
