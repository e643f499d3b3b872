#include "regatta/planning/plan/internal/launch/test_launch_facts.h"

#include <algorithm>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "regatta/base/core/test_files.h"
#include "regatta/base/core/text.h"

namespace regatta::plan {
namespace {

constexpr const char* kUnknown = "?";

Words words_of(const std::string& line) {
  std::istringstream stream(line);
  Words words;
  for (std::string word; stream >> word;)
    words.push_back(word);
  return words;
}

bool is_one_of(const std::string& value, Words::const_iterator begin, Words::const_iterator end) {
  return std::find(begin, end, value) != end;
}

bool is_given(const Arguments& given, const std::string& name) {
  const auto found = given.find(name);
  return found != given.end() && found->second != "False" && found->second != "false";
}

// Nothing for what is not given or only known on the machine.
std::optional<double> number(const Arguments& given, const std::string& name) {
  const auto found = given.find(name);
  return found == given.end() ? std::nullopt : parse_number<double>(found->second);
}

bool is_multiple(const Words& relation, const Arguments& given) {
  const auto value = number(given, relation[1]);
  double factor = *parse_number<double>(relation[2]);
  for (std::size_t i = 3; i < relation.size(); ++i) {
    const auto one = number(given, relation[i]);
    if (!one) return true;
    factor *= *one;
  }
  return !value || static_cast<long long>(*value) % static_cast<long long>(factor) == 0;
}

// Without quotes; of "${NAME:-value}" and os.environ.get("NAME", "value") the value.
std::string plain_value(std::string value) {
  if (const std::size_t at = value.find(":-"); at != std::string::npos && value.starts_with("\"${"))
    return value.substr(at + 2, value.find('}', at) - at - 2);
  if (value.find("os.environ.get(") != std::string::npos) {
    const std::size_t at = value.find(", \"");
    return at == std::string::npos ? kUnknown : value.substr(at + 3, value.rfind('"') - at - 3);
  }
  if (value.starts_with("\"$")) return kUnknown;
  // Several words in quotes are one.
  const bool is_one_word = value.find(' ') == std::string::npos;
  if (is_one_word && value.size() > 1 && (value.front() == '"' || value.front() == '\''))
    return value.substr(1, value.size() - 2);
  return value;
}

void add_words(const std::string& text, Arguments& arguments) {
  std::string name;
  for (const std::string& word : words_of(text)) {
    if (word.starts_with("--"))
      arguments[name = word] = "";
    else if (!name.empty())
      arguments[name] = plain_value(word);
  }
}

// Adds those of every text between `open` and the next `close`.
void add_between(const std::string& script, const std::string& open, char close,
                 Arguments& arguments) {
  for (std::size_t at = script.find(open); at != std::string::npos;
       at = script.find(open, at + 1)) {
    const std::size_t begin = at + open.size();
    add_words(script.substr(begin, script.find(close, begin) - begin), arguments);
  }
}

void add_json(const nlohmann::json& json, const std::string& name, Arguments& arguments) {
  if (!json.is_object()) {
    arguments[name] = json.is_string() ? json.get<std::string>() : json.dump();
    return;
  }
  for (const auto& [key, value] : json.items())
    add_json(value, name.empty() ? key : name + "." + key, arguments);
}

}  // namespace

LaunchFacts::LaunchFacts(const std::string& name) {
  const Words types = {"int",   "positive", "float", "text", "flag",
                       "truth", "choice",   "words", "code", "list"};
  const Words kinds = {"needs",          "needs-value", "value-needs",     "excludes",
                       "value-excludes", "at-least",    "above-one-needs", "above-one-excludes",
                       "multiple",       "even-unless"};
  std::istringstream lines(
      read_test_file(std::string(REGATTA_TESTDATA) + "/launch/facts/" + name + ".facts"));
  for (std::string line; std::getline(lines, line);) {
    const Words words = words_of(line);
    if (words.empty() || words.front() == "#") continue;
    if (is_one_of(words[0], types.begin(), types.end())) {
      EXPECT_TRUE(types_.emplace(words[1], words).second) << line;
      continue;
    }
    EXPECT_TRUE(is_one_of(words[0], kinds.begin(), kinds.end())) << line;
    relations_.push_back(words);
  }
  EXPECT_GT(types_.size(), 4U) << name;
}

std::string LaunchFacts::type_refusal(const std::string& name, const std::string& value) const {
  const auto found = types_.find(name);
  if (found == types_.end()) return name + " is no argument";
  const Words& words = found->second;
  const std::string& type = words[0];
  if (type == "flag") return value.empty() ? "" : name + " has no value, not " + value;
  if (value.empty()) return name + " lacks its value";
  if (value == kUnknown) return "";
  const auto whole = parse_number<long long>(value);
  bool is_right = true;
  if (type == "int") is_right = whole.has_value();
  if (type == "positive") is_right = whole && *whole > 0;
  if (type == "float") is_right = parse_number<double>(value).has_value();
  if (type == "truth")
    is_right = value == "True" || value == "False" || value == "true" || value == "false";
  if (type == "words") {
    const Words given = words_of(value);
    is_right = std::all_of(given.begin(), given.end(), [&](const std::string& one) {
      return is_one_of(one, words.begin() + 2, words.end());
    });
  }
  if (type == "choice") is_right = is_one_of(value, words.begin() + 2, words.end());
  return is_right ? "" : fmt::format("{} is {}, not of type {}", name, value, join(words, " "));
}

std::string LaunchFacts::refusal(const Words& relation, const Arguments& given) const {
  const std::string& kind = relation[0];
  const std::string& first = relation[1];
  if (!is_given(given, first)) return "";
  const std::string& value = given.at(first);
  const bool is_above_one = number(given, first).value_or(0) > 1;
  const auto has = [&](std::size_t i) { return is_given(given, relation[i]); };
  bool is_kept = true;
  if (kind == "needs") is_kept = has(2);
  if (kind == "needs-value")
    is_kept = has(2) && is_one_of(given.at(relation[2]), relation.begin() + 3, relation.end());
  if (kind == "value-needs") is_kept = value != relation[2] || has(3);
  if (kind == "excludes") is_kept = !has(2);
  if (kind == "value-excludes") is_kept = value != relation[2] || !has(3);
  if (kind == "at-least") {
    const auto least = number(given, relation[2]);
    is_kept = !least || number(given, first).value_or(*least) >= *least;
  }
  if (kind == "above-one-needs") is_kept = !is_above_one || has(2);
  if (kind == "above-one-excludes") is_kept = !is_above_one || !has(2);
  if (kind == "multiple") is_kept = is_multiple(relation, given);
  if (kind == "even-unless") {
    const bool is_uneven =
        std::any_of(relation.begin() + 3, relation.end(),
                    [&](const std::string& other) { return is_given(given, other); });
    Words product = {"multiple", first, "1"};
    for (const std::string& factor : split(relation[2], ','))
      product.push_back(factor);
    is_kept = is_uneven || is_multiple(product, given);
  }
  return is_kept ? "" : join(relation, " ");
}

std::vector<std::string> LaunchFacts::refusals(const Arguments& given) const {
  std::vector<std::string> refused;
  for (const auto& [name, value] : given)
    if (const std::string why = type_refusal(name, value); !why.empty()) refused.push_back(why);
  for (const Words& relation : relations_)
    if (const std::string why = refusal(relation, given); !why.empty()) refused.push_back(why);
  return refused;
}

ScriptArguments shell_arguments(const std::string& script) {
  ScriptArguments arguments;
  Arguments* into = nullptr;
  std::istringstream lines(script);
  for (std::string line; std::getline(lines, line);) {
    if (line == "RANKS=(" || line == "LAUNCH=(")
      into = &arguments.launcher;
    else if (line.ends_with("=(") && line != "SERVERS=(")
      into = &arguments.program;
    else if (line == ")")
      into = nullptr;
    else if (into != nullptr && line.starts_with("  --")) {
      const std::size_t space = line.find(' ', 2);
      const std::string name = line.substr(2, space - 2);
      (*into)[name] = space == std::string::npos ? "" : plain_value(line.substr(space + 1));
    }
  }
  add_between(script, "DATA_ARGS:-", '}', arguments.program);
  add_between(script, "CHECKPOINTS+=(", ')', arguments.program);
  return arguments;
}

Arguments recipe_fields(const std::string& script) {
  Arguments fields;
  std::string section;
  std::istringstream lines(script);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t indent = std::min(line.find_first_not_of(' '), line.size());
    const std::size_t equals = line.find('=');
    if (equals == std::string::npos) continue;
    const std::string name = line.substr(indent, equals - indent);
    if (indent == 8 && line.ends_with("(")) section = name;
    if (indent == 12 && line.ends_with(",") && !section.empty())
      fields[section + "." + name] = plain_value(line.substr(equals + 1, line.size() - equals - 2));
  }
  return fields;
}

Arguments deepspeed_keys(const std::string& script) {
  const std::size_t start = script.find("{\n");
  Arguments keys;
  add_json(nlohmann::json::parse(script.substr(start, script.find("\nEND", start) - start)), "",
           keys);
  return keys;
}

}  // namespace regatta::plan
