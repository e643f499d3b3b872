#include "regatta/base/core/json.h"

#include <cmath>
#include <cstdlib>
#include <exception>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

namespace regatta {
namespace {

using nlohmann::json;

const json& null_value() {
  static const json null;
  return null;
}

// A value as errors show it: its kind, or the value itself when it is short.
std::string found_text(const json& value) {
  if (value.is_object()) return "an object";
  if (value.is_array()) return "a list";
  if (value.is_string())
    return fmt::format("the string \"{}\"", printable(value.get_ref<const std::string&>(), 40));
  return value.dump();
}

std::string integer_text(long long low, std::uint64_t high) {
  constexpr std::uint64_t kNoLimit = std::numeric_limits<int>::max();
  if (high < kNoLimit) return fmt::format("an integer from {} to {}", low, high);
  if (low < 0) return "an integer";
  return fmt::format("an integer, at least {}", low);
}

std::string number_text(NumberRange range) {
  const bool is_positive = range.low == kPositive.low;
  if (range.high < std::numeric_limits<double>::max())
    return is_positive ? fmt::format("a number above 0, at most {}", range.high)
                       : fmt::format("a number from {} to {}", range.low, range.high);
  if (is_positive) return "a number above 0";
  if (range.low < 0) return "a number";
  return fmt::format("a number, at least {}", range.low);
}

// Whether lists and objects are nested deeper than `depth_max`, brackets in strings aside.
bool is_deeper_than(std::string_view text, int depth_max) {
  int depth = 0;
  bool in_string = false;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    if (in_string && c == '\\') ++i;
    if (c == '"') in_string = !in_string;
    if (in_string) continue;
    if ((c == '[' || c == '{') && ++depth > depth_max) return true;
    if (c == ']' || c == '}') --depth;
  }
  return false;
}

// The end of "[json.exception.parse_error.101] parse error at line 1, column 2: syntax error ..."
// or of "[json.exception.out_of_range.406] number overflow ...".
std::string syntax_text(std::string_view what) {
  const std::size_t column = what.find(", column ");
  const std::size_t end =
      column == std::string_view::npos ? what.find("] ") : what.find(": ", column);
  return printable(end == std::string_view::npos ? what : what.substr(end + 2), 200);
}

double rounded(double number) {
  if (!std::isfinite(number)) return number;
  const std::string text =
      std::abs(number) < 1000 ? fmt::format("{:.6g}", number) : fmt::format("{:.3f}", number);
  return std::strtod(text.c_str(), nullptr);
}

void round_all(json& value) {
  if (value.is_number_float()) value = rounded(value.get<double>());
  if (value.is_structured())
    for (json& part : value)
      round_all(part);
}

}  // namespace

struct JsonReader::Text {
  std::string name;
  json top;
  std::optional<Error> error;
};

Result<JsonReader> JsonReader::parse(std::string_view text, std::string_view name,
                                     JsonLimits limits) {
  const auto invalid = [&](std::string_view problem) {
    return Error{Code::kInvalidInput, fmt::format("{}: {}", name, problem)};
  };
  if (text.size() > limits.size_max)
    return invalid(fmt::format("larger than {} bytes; is this the right file?", limits.size_max));
  if (is_deeper_than(text, limits.depth_max))
    return invalid(fmt::format("nested more than {} levels deep", limits.depth_max));
  try {
    return JsonReader(json::parse(text), name);
  } catch (const json::parse_error& error) {
    const auto line = 1 + std::ranges::count(text.substr(0, error.byte), '\n');
    return invalid(fmt::format("not JSON in line {}: {}", line, syntax_text(error.what())));
  } catch (const std::exception& error) {
    return invalid(fmt::format("not JSON: {}", syntax_text(error.what())));
  }
}

JsonReader::JsonReader(json value, std::string_view name)
    : text_(std::make_shared<Text>(Text{std::string(name), std::move(value), std::nullopt})),
      value_(&text_->top) {}

bool JsonReader::has(std::string_view key) const {
  if (!value_->is_object()) return false;
  const auto found = value_->find(key);
  return found != value_->end() && !found->is_null();
}

JsonReader JsonReader::at(std::string_view key) const {
  JsonReader nested(text_, &null_value(),
                    path_.empty() ? std::string(key) : fmt::format("{}.{}", path_, key));
  if (!is_object()) return nested;
  const auto found = value_->find(key);
  if (found == value_->end())
    nested.fail("missing");
  else
    nested.value_ = &*found;
  return nested;
}

std::vector<JsonReader> JsonReader::items() const {
  std::vector<JsonReader> readers;
  if (!value_->is_array()) {
    fail_expected("a list");
    return readers;
  }
  for (std::size_t i = 0; i < value_->size(); ++i)
    readers.push_back({text_, &(*value_)[i], fmt::format("{}[{}]", path_, i)});
  return readers;
}

std::vector<std::pair<std::string, JsonReader>> JsonReader::members() const {
  std::vector<std::pair<std::string, JsonReader>> readers;
  if (!is_object()) return readers;
  for (const auto& [key, value] : value_->items())
    readers.emplace_back(key, at(key));
  return readers;
}

void JsonReader::allow(const std::vector<std::string>& keys) const {
  for (const auto& [key, member] : members()) {
    if (std::ranges::find(keys, key) != keys.end()) continue;
    const std::string nearest = nearest_word(key, keys);
    member.fail(nearest.empty() ? "unknown key; the keys here are " + join(keys, ", ")
                                : fmt::format("unknown key; did you mean '{}'?", nearest));
  }
}

void JsonReader::fail(std::string_view problem, Code code) const {
  if (text_->error) return;
  constexpr std::size_t kPathMax = 200;
  const std::string path = path_.empty() ? "" : printable(path_, kPathMax) + ": ";
  text_->error = Error{code, fmt::format("{}: {}{}", text_->name, path, problem)};
}

void JsonReader::fail_expected(std::string_view what) const {
  fail(fmt::format("expected {}, found {}", what, found_text(*value_)));
}

Status JsonReader::status() const {
  if (text_->error) return *text_->error;
  return {};
}

bool JsonReader::is_object() const {
  if (value_->is_object()) return true;
  fail_expected("an object");
  return false;
}

std::uint64_t JsonReader::integer(long long low, std::uint64_t high) const {
  if (value_->is_number_unsigned()) {
    const auto number = value_->get<std::uint64_t>();
    if (number <= high && (low <= 0 || number >= static_cast<std::uint64_t>(low))) return number;
  } else if (value_->is_number_integer()) {
    const auto number = value_->get<long long>();
    const bool is_within = number < 0 || static_cast<std::uint64_t>(number) <= high;
    if (number >= low && is_within) return static_cast<std::uint64_t>(number);
  }
  fail_expected(integer_text(low, high));
  return 0;
}

double JsonReader::number(NumberRange range) const {
  if (value_->is_number()) {
    const auto number = value_->get<double>();
    if (number >= range.low && number <= range.high) return number;
  }
  fail_expected(number_text(range));
  return 0;
}

bool JsonReader::boolean() const {
  if (value_->is_boolean()) return value_->get<bool>();
  fail_expected("true or false");
  return false;
}

std::string JsonReader::text() const {
  if (value_->is_string()) return value_->get<std::string>();
  fail_expected("a string");
  return "";
}

std::size_t JsonReader::choice(const std::vector<std::string>& names) const {
  const auto found = std::ranges::find(names, value_->is_string() ? text() : "");
  if (value_->is_string() && found != names.end())
    return static_cast<std::size_t>(found - names.begin());
  fail_expected("one of " + join(names, ", "));
  return 0;
}

std::string json_line(json value) {
  round_all(value);
  return value.dump(-1, ' ', false, json::error_handler_t::replace);
}

}  // namespace regatta
