#include "regatta/base/core/yaml_map.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstddef>
#include <cstdlib>
#include <limits>
#include <memory>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"

namespace regatta {
namespace {

const YamlNode& empty_node() {
  static const YamlNode empty;
  return empty;
}

std::string_view name_of(YamlKind kind) {
  switch (kind) {
    case YamlKind::kNull:
      return "nothing";
    case YamlKind::kScalar:
      return "a single value";
    case YamlKind::kList:
      return "a list";
    case YamlKind::kMap:
      return "a map";
  }
  return "nothing";
}

// A value as messages show it: one short line without control characters.
std::string quoted_value(std::string_view value) {
  return "'" + printable(value, 60) + "'";
}

// The remedy for a key that is none of `keys`. To YAML "tp:3" is one word: the colon of a key needs
// a space.
std::string remedy_for_key(const std::string& key, const std::vector<std::string>& keys) {
  const std::size_t colon = key.find(':');
  const std::string before = key.substr(0, colon);
  if (colon != std::string::npos && std::find(keys.begin(), keys.end(), before) != keys.end()) {
    return fmt::format("no space follows the colon; write '{}: {}'", before, key.substr(colon + 1));
  }
  const std::string nearest = nearest_word(key, keys);
  return nearest.empty() ? "unknown key; the keys here are " + join(keys, ", ")
                         : fmt::format("unknown key; did you mean '{}'?", nearest);
}

std::string range_text(IntRange range) {
  constexpr long long kNoLimit = std::numeric_limits<int>::max();
  if (range.high >= kNoLimit) return fmt::format("a whole number, at least {}", range.low);
  return fmt::format("a whole number from {} to {}", range.low, range.high);
}

std::string range_text(NumberRange range) {
  if (range.high == std::numeric_limits<double>::max())
    return fmt::format("a number, at least {}", range.low);
  return fmt::format("a number from {} to {}", range.low, range.high);
}

// The unit of a number where none is asked for, as in 64000m; "" where the text is no such value.
std::string_view unit_of(std::string_view text) {
  double number = 0;
  const auto [rest, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc()) return "";
  const std::string_view unit = trim(text.substr(static_cast<std::size_t>(rest - text.data())));
  const bool is_word = std::all_of(unit.begin(), unit.end(), [](char letter) {
    return std::isalpha(static_cast<unsigned char>(letter)) != 0 || letter == '%' || letter == '/';
  });
  return is_word ? unit : "";
}

std::string without_unit(std::string_view text) {
  return unit_of(text).empty() ? "" : " without a unit";
}

std::string path_of(const YamlMap& map, std::string_view key) {
  if (key.empty()) return map.path();
  return map.path().empty() ? std::string(key) : map.path() + "." + std::string(key);
}

void require(const YamlMap& map, std::string_view key, std::string_view what) {
  if (!map.has(key)) map.fail(key, fmt::format("missing; add {}", what));
}

std::optional<long long> whole_number(const YamlMap& map, std::string_view key,
                                      const std::string& text, IntRange range) {
  long long number = 0;
  const char* end = text.data() + text.size();
  const auto [rest, error] = std::from_chars(text.data(), end, number);
  if (error == std::errc::invalid_argument || rest != end) {
    map.fail(key, fmt::format("{} is not a whole number; write {}{}", quoted_value(text),
                              range_text(range), without_unit(text)));
    return std::nullopt;
  }
  if (error != std::errc() || number < range.low || number > range.high) {
    map.fail(key,
             fmt::format("{} is out of range; write {}", quoted_value(text), range_text(range)));
    return std::nullopt;
  }
  return number;
}

// How a unit is read and printed.
template <typename T>
struct UnitText {
  Result<T> (*parse)(std::string_view);
  std::string (*format)(T);
};

template <typename T>
std::string range_text(NumberRange range, const UnitText<T>& unit) {
  const auto text = [&](double value) {
    return value == 0 ? "0" : unit.format(T{static_cast<decltype(T::value)>(value)});
  };
  if (range.high < std::numeric_limits<double>::max())
    return fmt::format("write a value from {} to {}", text(range.low), text(range.high));
  return range.low > 0 ? "it must be more than zero" : "it must be zero or more";
}

template <typename T>
T quantity(const YamlMap& map, std::string_view key, T fallback, const UnitText<T>& unit,
           NumberRange range) {
  const std::string* value = map.scalar(key);
  if (value == nullptr) return fallback;
  // A longer text is no quantity; cutting it keeps the message readable.
  constexpr std::size_t kLongest = 64;
  const Result<T> parsed = unit.parse(std::string_view(*value).substr(0, kLongest));
  if (!parsed) {
    map.fail(key, parsed.error().message);
    return fallback;
  }
  if (const auto number = static_cast<double>(parsed->value);
      number < range.low || number > range.high) {
    map.fail(key,
             fmt::format("{} is out of range; {}", quoted_value(*value), range_text(range, unit)));
    return fallback;
  }
  return *parsed;
}

}  // namespace

Result<YamlDocument> YamlDocument::parse(std::string_view text, std::string_view file) {
  REGATTA_TRY(tree, parse_yaml(text, file));
  return read(std::move(tree), file);
}

Result<YamlDocument> YamlDocument::read(YamlNode tree, std::string_view file) {
  if (tree.kind != YamlKind::kMap) {
    return Error{Code::kInvalidInput,
                 fmt::format("{}:{}: found {} where a map of keys is expected; write it as "
                             "'key: value' lines",
                             file, tree.line, name_of(tree.kind))};
  }
  YamlDocument document;
  document.state_ = std::make_unique<State>();
  document.state_->file = std::string(file);
  document.state_->tree = std::move(tree);
  return document;
}

YamlMap YamlDocument::root() const {
  return {state_.get(), &state_->tree, ""};
}

Status YamlDocument::status() const {
  if (state_->error) return *state_->error;
  return {};
}

void YamlMap::allow(const std::vector<std::string>& keys) const {
  for (const YamlEntry& entry : node_->entries) {
    if (std::find(keys.begin(), keys.end(), entry.key) != keys.end()) continue;
    fail(entry.key, remedy_for_key(entry.key, keys));
    return;
  }
}

bool YamlMap::has(std::string_view key) const {
  return node_->find(key) != nullptr;
}

YamlKind YamlMap::kind(std::string_view key) const {
  const YamlNode* value = node_->find(key);
  return value == nullptr ? YamlKind::kNull : value->kind;
}

std::vector<std::string> YamlMap::keys() const {
  std::vector<std::string> keys;
  for (const YamlEntry& entry : node_->entries)
    keys.push_back(entry.key);
  return keys;
}

int YamlMap::line() const {
  return node_->line;
}

void YamlMap::fail_at(int line, const std::string& path, std::string_view message,
                      Code code) const {
  if (state_->error) return;
  constexpr std::size_t kLongestPath = 200;
  constexpr std::size_t kLongestMessage = 1000;
  state_->error =
      Error{code, fmt::format("{}:{}: {}: {}", state_->file, line, printable(path, kLongestPath),
                              printable(message, kLongestMessage))};
}

void YamlMap::fail(std::string_view key, std::string_view message, Code code) const {
  int line = node_->line;
  for (const YamlEntry& entry : node_->entries) {
    if (entry.key == key) line = entry.line;
  }
  fail_at(line, path_of(*this, key), message, code);
}

const std::string* YamlMap::scalar(std::string_view key) const {
  const YamlNode* value = node_->find(key);
  if (value == nullptr) return nullptr;
  if (value->kind != YamlKind::kScalar) {
    const bool is_empty = value->kind == YamlKind::kNull;
    fail(key, fmt::format("found {} where a single value is expected{}", name_of(value->kind),
                          is_empty ? "; write it, or leave the key out" : ""));
    return nullptr;
  }
  return &value->scalar;
}

std::string YamlMap::text(std::string_view key, std::optional<std::string_view> fallback) const {
  if (!fallback) require(*this, key, "a text");
  const std::string* value = scalar(key);
  if (value == nullptr) return std::string(fallback.value_or(""));
  if (value->empty()) fail(key, "empty; write a text");
  return *value;
}

int YamlMap::integer(std::string_view key, IntRange range) const {
  require(*this, key, range_text(range));
  return integer_or(key, static_cast<int>(range.low), range);
}

int YamlMap::integer_or(std::string_view key, int fallback, IntRange range) const {
  return static_cast<int>(long_integer_or(key, fallback, range));
}

long long YamlMap::long_integer_or(std::string_view key, long long fallback, IntRange range) const {
  const std::string* value = scalar(key);
  return value == nullptr ? fallback : whole_number(*this, key, *value, range).value_or(fallback);
}

double YamlMap::number_or(std::string_view key, double fallback, NumberRange range) const {
  const std::string* value = scalar(key);
  if (value == nullptr) return fallback;
  const bool has_plus = value->starts_with('+') && !value->starts_with("+-");
  const std::string_view digits = std::string_view(*value).substr(has_plus ? 1 : 0);
  const double number =
      parse_number<double>(digits).value_or(std::numeric_limits<double>::quiet_NaN());
  if (!std::isfinite(number)) {
    fail(key, fmt::format("{} is not a number; write {}{}", quoted_value(*value), range_text(range),
                          without_unit(digits)));
    return fallback;
  }
  if (number < range.low || number > range.high) {
    fail(key, fmt::format("{} is out of range; write {}", quoted_value(*value), range_text(range)));
    return fallback;
  }
  return number;
}

bool YamlMap::boolean_or(std::string_view key, bool fallback) const {
  const std::string* value = scalar(key);
  if (value == nullptr) return fallback;
  if (*value == "true") return true;
  if (*value == "false") return false;
  fail(key, fmt::format("{} is neither true nor false; write one of them", quoted_value(*value)));
  return fallback;
}

Bytes YamlMap::bytes(std::string_view key, std::optional<Bytes> fallback, NumberRange range) const {
  if (!fallback) require(*this, key, "a size like 80GiB");
  return quantity(*this, key, fallback.value_or(Bytes{}),
                  UnitText<Bytes>{parse_bytes, format_bytes}, range);
}

Seconds YamlMap::seconds_or(std::string_view key, Seconds fallback, NumberRange range) const {
  constexpr double kShort = 60;  // times that are no longer are latencies
  constexpr double kNoNumber = std::numeric_limits<double>::quiet_NaN();
  const std::string* value = scalar(key);
  if (value != nullptr && std::isfinite(parse_number<double>(*value).value_or(kNoNumber))) {
    fail(key, fmt::format("{} has no unit; write it like {}{}", quoted_value(*value), *value,
                          range.high <= kShort ? "us" : "s"));
    return fallback;
  }
  return quantity(*this, key, fallback, UnitText<Seconds>{parse_seconds, format_seconds}, range);
}

BytesPerSecond YamlMap::rate(std::string_view key, std::optional<BytesPerSecond> fallback,
                             NumberRange range) const {
  if (!fallback) require(*this, key, "a rate like 400Gbps or 50GB/s");
  return quantity(*this, key, fallback.value_or(BytesPerSecond{}),
                  UnitText<BytesPerSecond>{parse_bytes_per_second, format_bits_per_second}, range);
}

FlopsPerSecond YamlMap::flops_or(std::string_view key, FlopsPerSecond fallback,
                                 NumberRange range) const {
  return quantity(*this, key, fallback,
                  UnitText<FlopsPerSecond>{parse_flops_per_second, format_flops_per_second}, range);
}

double YamlMap::ratio_or(std::string_view key, double fallback) const {
  const std::string* value = scalar(key);
  if (value == nullptr) return fallback;
  const Result<double> parsed = parse_ratio(*value);
  if (!parsed) {
    fail(key, parsed.error().message);
    return fallback;
  }
  if (!(*parsed > 0) || *parsed > 1) {
    fail(key, fmt::format("{} is out of range; write it like 20%, more than 0 and at most 100%",
                          quoted_value(*value)));
    return fallback;
  }
  return *parsed;
}

int yaml_choice(const YamlMap& map, std::string_view key, const std::vector<std::string>& names,
                bool is_optional) {
  if (!is_optional) require(map, key, "a word");
  const std::string* value = map.scalar(key);
  if (value == nullptr) return -1;
  const auto found = std::find(names.begin(), names.end(), *value);
  if (found != names.end()) return static_cast<int>(found - names.begin());
  const std::string nearest = nearest_word(*value, names);
  map.fail(key, fmt::format("{} is not one of {}{}", quoted_value(*value), join(names, ", "),
                            nearest.empty() ? "" : fmt::format("; did you mean '{}'?", nearest)));
  return -1;
}

YamlMap YamlMap::map(std::string_view key) const {
  require(*this, key, "a map of keys");
  const YamlNode* value = node_->find(key);
  if (value != nullptr && value->kind != YamlKind::kMap) {
    fail(key, fmt::format("found {} where a map of keys is expected", name_of(value->kind)));
    value = nullptr;
  }
  return {state_, value == nullptr ? &empty_node() : value, path_of(*this, key)};
}

std::vector<YamlMap> YamlMap::maps(std::string_view key) const {
  require(*this, key, "a list");
  std::vector<YamlMap> views;
  const YamlNode* value = node_->find(key);
  if (value == nullptr) return views;
  if (value->kind != YamlKind::kList) {
    fail(key, fmt::format("found {} where a list is expected; begin each item with '- '",
                          name_of(value->kind)));
    return views;
  }
  for (std::size_t i = 0; i < value->items.size(); ++i) {
    const YamlNode& item = value->items[i];
    const std::string path = fmt::format("{}[{}]", path_of(*this, key), i);
    if (item.kind != YamlKind::kMap) {
      fail_at(item.line, path,
              fmt::format("found {} where a map of keys is expected", name_of(item.kind)),
              Code::kInvalidInput);
      continue;
    }
    views.push_back({state_, &item, path});
  }
  return views;
}

std::vector<std::string> YamlMap::texts(std::string_view key) const {
  require(*this, key, "a list");
  std::vector<std::string> texts;
  const YamlNode* value = node_->find(key);
  if (value == nullptr) return texts;
  if (value->kind != YamlKind::kList) {
    fail(key, fmt::format("found {} where a list is expected; write it in brackets",
                          name_of(value->kind)));
    return texts;
  }
  for (std::size_t i = 0; i < value->items.size(); ++i) {
    const YamlNode& item = value->items[i];
    if (item.kind != YamlKind::kScalar) {
      fail_at(item.line, fmt::format("{}[{}]", path_of(*this, key), i),
              fmt::format("found {} where a text is expected", name_of(item.kind)),
              Code::kInvalidInput);
      continue;
    }
    texts.push_back(item.scalar);
  }
  return texts;
}

std::vector<int> YamlMap::integers(std::string_view key, IntRange range) const {
  std::vector<int> numbers;
  for (const std::string& text : texts(key))
    numbers.push_back(static_cast<int>(whole_number(*this, key, text, range).value_or(range.low)));
  return numbers;
}

}  // namespace regatta
