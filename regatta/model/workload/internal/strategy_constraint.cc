#include "regatta/model/workload/internal/strategy_constraint.h"

#include <algorithm>
#include <array>
#include <cstddef>
#include <optional>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/model/workload/strategy.h"

namespace regatta::workload {
namespace {

constexpr int kLargest = 1'000'000;
constexpr int kLargestZero = 3;

struct ConstraintKey {
  const char* name;
  int (*value)(const Strategy&);
  bool (*is_given)(const StrategyRequest&);
  std::vector<std::string> words;  // by value; empty: a number
  int largest = kLargest;
};

template <auto kValue, auto kAsked>
ConstraintKey key_of(const char* name, std::vector<std::string> words = {},
                     int largest = kLargest) {
  return {name, [](const Strategy& strategy) { return static_cast<int>(strategy.*kValue); },
          [](const StrategyRequest& request) { return (request.*kAsked).has_value(); },
          std::move(words), largest};
}

template <typename E, std::size_t kCount>
std::vector<std::string> words_of(const std::array<E, kCount>& values) {
  std::vector<std::string> words;
  for (const E value : values)
    words.push_back(to_string(value));
  return words;
}

const std::vector<ConstraintKey>& constraint_keys() {
  using S = Strategy;
  using R = StrategyRequest;
  static const std::vector<std::string> booleans = {"false", "true"};
  static const std::vector<ConstraintKey> keys = {
      key_of<&S::tp, &R::tp>("tp"),
      key_of<&S::pp, &R::pp>("pp"),
      key_of<&S::dp, &R::dp>("dp"),
      key_of<&S::cp, &R::cp>("cp"),
      key_of<&S::ep, &R::ep>("ep"),
      key_of<&S::etp, &R::etp>("etp"),
      key_of<&S::micro_batch, &R::micro_batch>("micro_batch"),
      key_of<&S::virtual_stages, &R::virtual_stages>("virtual_stages"),
      key_of<&S::zero, &R::zero>("zero", {}, kLargestZero),
      key_of<&S::shard_ranks, &R::shard_ranks>("shard_ranks"),
      key_of<&S::recompute, &R::recompute>("recompute", words_of(kRecomputes)),
      key_of<&S::schedule, &R::schedule>("schedule", words_of(kPipelineSchedules)),
      key_of<&S::context, &R::context>("context", words_of(kContextParallelisms)),
      key_of<&S::offload, &R::offload>("offload", words_of(kOffloads)),
      key_of<&S::sequence_parallel, &R::sequence_parallel>("sequence_parallel", booleans),
      key_of<&S::overlap, &R::overlap>("overlap", booleans)};
  return keys;
}

const ConstraintKey* find_key(std::string_view name) {
  for (const ConstraintKey& key : constraint_keys())
    if (name == key.name) return &key;
  return nullptr;
}

// Reads one constraint; errors begin with the text itself.
class ConstraintParser {
 public:
  ConstraintParser(std::string_view text, std::string_view origin) : text_(text), origin_(origin) {}

  Result<StrategyConstraint> run() const {
    const std::string_view all = trim(text_);
    const std::size_t end = std::min(all.find_first_of(" \t<>=!{"), all.size());
    const std::string_view name = all.substr(0, end);
    const ConstraintKey* key = find_key(name);
    if (key == nullptr) return unknown_key(name);
    return relation(*key, trim(all.substr(end)));
  }

 private:
  Error wrong(const std::string& reason) const {
    return {Code::kInvalidInput,
            fmt::format("{}: '{}': {}", origin_, printable(trim(text_), 60), reason)};
  }

  Error unknown_key(std::string_view name) const {
    std::vector<std::string> names;
    for (const ConstraintKey& key : constraint_keys())
      names.emplace_back(key.name);
    const std::string nearest = nearest_word(name, names);
    return wrong(fmt::format(
        "'{}' is no key of a strategy; {}", printable(name, 30),
        nearest.empty() ? "take one of " + join(names, ", ") : "did you mean " + nearest + "?"));
  }

  Error no_relation(const ConstraintKey& key) const {
    return wrong(key.words.empty()
                     ? fmt::format("write a relation after {}, like {} <= 8 or {} in {{1, 2}}",
                                   key.name, key.name, key.name)
                     : fmt::format("write = or != and one of {} after {}, or in {{{}}}",
                                   join(key.words, ", "), key.name, join(key.words, ", ")));
  }

  Result<StrategyConstraint> relation(const ConstraintKey& key, std::string_view rest) const {
    const auto after = [&](std::string_view word) -> std::optional<std::string_view> {
      if (!rest.starts_with(word)) return std::nullopt;
      return trim(rest.substr(word.size()));
    };
    const auto bound = [&](ConstraintRelation relation, std::string_view value,
                           int shift) -> Result<StrategyConstraint> {
      if (!key.words.empty()) return no_relation(key);
      REGATTA_TRY(number, value_of(key, value));
      if (number + shift < 0 || number + shift > key.largest)
        return wrong(fmt::format("no value of {} is that; write a number from 0 to {}", key.name,
                                 key.largest));
      return StrategyConstraint{key.name, relation, {number + shift}};
    };
    if (const auto value = after("<=")) return bound(ConstraintRelation::kAtMost, *value, 0);
    if (const auto value = after(">=")) return bound(ConstraintRelation::kAtLeast, *value, 0);
    if (const auto value = after("<")) return bound(ConstraintRelation::kAtMost, *value, -1);
    if (const auto value = after(">")) return bound(ConstraintRelation::kAtLeast, *value, 1);
    if (const auto value = after("!=")) return single(key, ConstraintRelation::kNot, *value);
    if (const auto value = after("==")) return single(key, ConstraintRelation::kIn, *value);
    if (const auto value = after("=")) return single(key, ConstraintRelation::kIn, *value);
    if (const auto list = after("in")) return values_in(key, *list);
    return no_relation(key);
  }

  Result<StrategyConstraint> single(const ConstraintKey& key, ConstraintRelation relation,
                                    std::string_view text) const {
    REGATTA_TRY(value, value_of(key, text));
    return StrategyConstraint{key.name, relation, {value}};
  }

  Result<StrategyConstraint> values_in(const ConstraintKey& key, std::string_view list) const {
    const bool has_braces = list.size() >= 2 && ((list.front() == '{' && list.back() == '}') ||
                                                 (list.front() == '[' && list.back() == ']'));
    if (!has_braces)
      return wrong(fmt::format("write the values in braces, like {} in {{{}}}", key.name,
                               key.words.empty() ? "1, 2" : join(key.words, ", ")));
    StrategyConstraint constraint{.key = key.name, .values = {}};
    for (const std::string& one : split(list.substr(1, list.size() - 2), ',')) {
      REGATTA_TRY(value, value_of(key, trim(one)));
      constraint.values.push_back(value);
    }
    std::sort(constraint.values.begin(), constraint.values.end());
    const auto last = std::unique(constraint.values.begin(), constraint.values.end());
    constraint.values.erase(last, constraint.values.end());
    return constraint;
  }

  Result<int> value_of(const ConstraintKey& key, std::string_view text) const {
    if (key.words.empty()) {
      const auto number = parse_number<int>(text);
      if (number && *number >= 0 && *number <= key.largest) return *number;
      return wrong(fmt::format("'{}' is no value of {}; write a whole number from 0 to {}",
                               printable(text, 30), key.name, key.largest));
    }
    const auto found = std::find(key.words.begin(), key.words.end(), text);
    if (found != key.words.end()) return static_cast<int>(found - key.words.begin());
    return wrong(fmt::format("'{}' is no value of {}; take one of {}", printable(text, 30),
                             key.name, join(key.words, ", ")));
  }

  std::string_view text_;
  std::string_view origin_;
};

}  // namespace

Result<StrategyConstraint> parse_constraint(std::string_view text, std::string_view origin) {
  return ConstraintParser(text, origin).run();
}

std::string to_string(const StrategyConstraint& constraint) {
  const ConstraintKey* key = find_key(constraint.key);
  REGATTA_CHECK(key != nullptr && !constraint.values.empty());
  std::vector<std::string> values;
  for (const int value : constraint.values)
    values.push_back(key->words.empty() ? std::to_string(value) : at(key->words, value));
  switch (constraint.relation) {
    case ConstraintRelation::kAtMost:
      return fmt::format("{} <= {}", constraint.key, values.front());
    case ConstraintRelation::kAtLeast:
      return fmt::format("{} >= {}", constraint.key, values.front());
    case ConstraintRelation::kNot:
      return fmt::format("{} != {}", constraint.key, values.front());
    case ConstraintRelation::kIn:
      break;
  }
  return fmt::format("{} in {{{}}}", constraint.key, join(values, ", "));
}

bool admits(const StrategyConstraint& constraint, const Strategy& strategy) {
  const ConstraintKey* key = find_key(constraint.key);
  REGATTA_CHECK(key != nullptr && !constraint.values.empty());
  const int value = key->value(strategy);
  switch (constraint.relation) {
    case ConstraintRelation::kAtMost:
      return value <= constraint.values.front();
    case ConstraintRelation::kAtLeast:
      return value >= constraint.values.front();
    case ConstraintRelation::kNot:
      return value != constraint.values.front();
    case ConstraintRelation::kIn:
      break;
  }
  return std::binary_search(constraint.values.begin(), constraint.values.end(), value);
}

bool admits(const std::vector<StrategyConstraint>& constraints, const Strategy& strategy) {
  return std::all_of(constraints.begin(), constraints.end(),
                     [&](const StrategyConstraint& one) { return admits(one, strategy); });
}

Status check_constraints(const StrategyRequest& request) {
  const Strategy given = requested(request);
  for (const StrategyConstraint& one : request.constraints) {
    if (!find_key(one.key)->is_given(request) || admits(one, given)) continue;
    return Error{Code::kInvalidInput,
                 fmt::format("strategy: {} is given, and the constraint {} excludes it; change one "
                             "of them",
                             one.key, to_string(one))};
  }
  return {};
}

}  // namespace regatta::workload
