// core/json.h: reads JSON with errors that name the text and the path of the value, and writes
// lines of JSON. Example of an error: "job.json: strategy.tp: expected an integer, found "two"".
//
//   REGATTA_TRY(root, JsonReader::parse(text, "rates.json"));
//   root.allow({"name", "mode", "paths"});            // every other key is an error
//   root.read("name", rates.name);
//   root.read_if("mode", rates.mode, kModes);         // an enumerator by its name
//   for (const JsonReader& path : root.at("paths").items())
//     rates.bandwidths.push_back(path.at("bandwidth_Bps").as<double>(kPositive));
//   return root.finish(rates);                        // the first error, else `rates`
//
// Readers never fail by themselves: all readers of a text share its first error, and after it they
// return empty values. A parser therefore reads everything in a row and checks once.
#pragma once

#include <algorithm>
#include <array>
#include <concepts>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"

namespace regatta {

// Bounds that keep a hostile text from exhausting the machine.
struct JsonLimits {
  std::size_t size_max = 64U << 20U;  // bytes
  int depth_max = 64;                 // nested lists and objects
};

inline constexpr NumberRange kPositive{.low = std::numeric_limits<double>::denorm_min()};
inline constexpr NumberRange kNotNegative{.low = 0};

// Reads one value of a JSON text; cheap to copy. Readers of one text belong to one thread.
class JsonReader {
 public:
  // The top of `text`; `name` stands for the text in errors. Fails with kInvalidInput when the text
  // is not JSON or exceeds a limit.
  static Result<JsonReader> parse(std::string_view text, std::string_view name,
                                  JsonLimits limits = {});
  // The top of a value that was parsed elsewhere.
  JsonReader(nlohmann::json value, std::string_view name);

  // Whether the value is an object that has `key` with a value other than null.
  bool has(std::string_view key) const;
  // The value of `key`; an error when it is missing.
  JsonReader at(std::string_view key) const;
  std::vector<JsonReader> items() const;                            // of a list
  std::vector<std::pair<std::string, JsonReader>> members() const;  // of an object
  // Makes every key other than `keys` an error that names the nearest of them.
  void allow(const std::vector<std::string>& keys) const;

  // The value as a `T`: bool, an integer, double, std::string, a Quantity, an Id, an enumeration,
  // or a vector of these. Integers are checked against the range of `T`. `limits`: an IntRange or a
  // NumberRange; for an enumeration its table, which is required: Choices, EnumNames, or an array
  // of the enumerators that to_string() names.
  template <typename T, typename... Limits>
  T as(const Limits&... limits) const;
  // The index of the value in `names`, which is not empty; 0 with an error when it is none of them.
  std::size_t choice(const std::vector<std::string>& names) const;

  // Sets `value` to that of `key`, which must be there. An error leaves `value` as it is.
  template <typename T, typename... Limits>
  void read(std::string_view key, T& value, const Limits&... limits) const {
    T given = at(key).as<T>(limits...);
    if (status()) value = std::move(given);
  }
  // The same, but keeps `value` when has(key) is false.
  template <typename T, typename... Limits>
  void read_if(std::string_view key, T& value, const Limits&... limits) const {
    if (is_object() && has(key)) read(key, value, limits...);
  }
  template <typename T, typename... Limits>
  void read_if(std::string_view key, std::optional<T>& value, const Limits&... limits) const {
    T given{};
    if (!is_object() || !has(key)) return;
    read(key, given, limits...);
    value = std::move(given);
  }

  // Records "NAME: PATH: problem" unless there is an error already.
  void fail(std::string_view problem, Code code = Code::kInvalidInput) const;
  // The first error of the text.
  Status status() const;
  // The first error of the text, else `value`.
  template <typename T>
  Result<T> finish(T value) const {
    REGATTA_TRY_DO(status());
    return value;
  }

  const std::string& path() const { return path_; }  // "paths[2].latency_s", "" for the top
  const nlohmann::json& raw() const { return *value_; }

 private:
  struct Text;
  JsonReader(std::shared_ptr<Text> text, const nlohmann::json* value, std::string path)
      : text_(std::move(text)), value_(value), path_(std::move(path)) {}

  bool is_object() const;  // else an error
  void fail_expected(std::string_view what) const;
  // An integer in [low, high] in two's complement.
  std::uint64_t integer(long long low, std::uint64_t high) const;
  double number(NumberRange range) const;
  bool boolean() const;
  std::string text() const;

  std::shared_ptr<Text> text_;
  const nlohmann::json* value_;
  std::string path_;
};

// `value` on one line without the newline. Fractions have six significant digits, those from 1000
// on three decimals, so that a time since 1970 keeps its milliseconds: more was not measured. Bytes
// that are not UTF-8 are replaced.
std::string json_line(nlohmann::json value);

// How JsonReader::as() reads the types that consist of others.
namespace json_internal {

template <typename T>
struct Parts;
template <typename T>
struct Parts<std::vector<T>> {
  using Element = T;
};
template <typename Tag, typename Rep>
struct Parts<Quantity<Tag, Rep>> {
  using Number = Rep;
};
template <typename Tag>
struct Parts<Id<Tag>> {
  using Number = int;
};

template <typename E>
E enumerator(const JsonReader& reader, const Choices<E>& choices) {
  std::vector<std::string> names;
  for (const auto& [name, value] : choices)
    names.push_back(name);
  return choices[reader.choice(names)].second;
}

template <typename E, std::size_t kCount>
E enumerator(const JsonReader& reader, const std::array<E, kCount>& values) {
  std::vector<std::string> names;
  for (const E value : values)
    names.emplace_back(to_string(value));
  return values[reader.choice(names)];
}

template <typename E, std::size_t kCount>
E enumerator(const JsonReader& reader, const EnumNames<kCount>& names) {
  return static_cast<E>(reader.choice({names.begin(), names.end()}));
}

}  // namespace json_internal

template <typename T, typename... Limits>
T JsonReader::as(const Limits&... limits) const {
  if constexpr (std::same_as<T, bool>) {
    return boolean();
  } else if constexpr (std::same_as<T, std::string>) {
    return text();
  } else if constexpr (std::is_enum_v<T>) {
    return json_internal::enumerator<T>(*this, limits...);
  } else if constexpr (std::integral<T>) {
    using Range = std::numeric_limits<T>;
    if constexpr (sizeof...(limits) == 0)
      return static_cast<T>(integer(Range::min(), Range::max()));
    else
      return static_cast<T>(integer(
          std::max<long long>(IntRange(limits...).low, Range::min()),
          static_cast<std::uint64_t>(std::min<long long>(IntRange(limits...).high, Range::max()))));
  } else if constexpr (std::same_as<T, double>) {
    constexpr NumberRange kAny{.low = std::numeric_limits<double>::lowest()};
    if constexpr (sizeof...(limits) == 0)
      return number(kAny);
    else
      return number(limits...);
  } else if constexpr (requires { typename json_internal::Parts<T>::Number; }) {
    return T{as<typename json_internal::Parts<T>::Number>(limits...)};
  } else {
    T list;
    for (const JsonReader& item : items())
      list.push_back(item.as<typename json_internal::Parts<T>::Element>(limits...));
    return list;
  }
}

}  // namespace regatta
