// workload/internal/json_reader.h: reads JSON objects with messages that name the object and the
// key.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/base/core/result.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"

namespace regatta::workload {

// Reads the keys of one object in a row and keeps the first error.
class JsonReader {
 public:
  JsonReader(const nlohmann::json& object, const char* what) : object_(object), what_(what) {
    if (!object.is_object()) fail("not an object");
  }

  const std::optional<Error>& error() const { return error_; }

  void fail(const std::string& problem) {
    if (!error_) error_ = Error{Code::kInvalidInput, fmt::format("{}: {}", what_, problem)};
  }

  void read(const char* key, int& value) {
    const nlohmann::json* found = find(key);
    if (found == nullptr) return;
    if (!found->is_number_integer()) return fail(fmt::format("\"{}\" is not a whole number", key));
    const auto number = found->get<std::int64_t>();
    if ((found->is_number_unsigned() && number < 0) || number < std::numeric_limits<int>::min() ||
        number > std::numeric_limits<int>::max())
      return fail(fmt::format("\"{}\" is out of range", key));
    value = static_cast<int>(number);
  }
  void read(const char* key, std::vector<int>& values) {
    const nlohmann::json* found = find(key);
    if (found == nullptr) return;
    if (!found->is_array()) return fail(fmt::format("\"{}\" is not a list", key));
    values.clear();
    for (const nlohmann::json& one : *found) {
      // A number above 2^63 is negative as a signed one.
      const auto number = one.is_number_integer() ? one.get<std::int64_t>() : -1;
      if (number < 0 || number > std::numeric_limits<int>::max())
        return fail(fmt::format("\"{}\" is not a list of counts", key));
      values.push_back(static_cast<int>(number));
    }
  }
  void read(const char* key, std::uint64_t& value) {
    const nlohmann::json* found = find(key);
    if (found == nullptr) return;
    if (!found->is_number_unsigned()) return fail(fmt::format("\"{}\" is not a count", key));
    value = found->get<std::uint64_t>();
  }
  void read(const char* key, double& value) {
    const nlohmann::json* found = find(key);
    if (found == nullptr) return;
    if (!found->is_number()) return fail(fmt::format("\"{}\" is not a number", key));
    value = found->get<double>();
  }
  void read(const char* key, bool& value) {
    const nlohmann::json* found = find(key);
    if (found == nullptr) return;
    if (!found->is_boolean()) return fail(fmt::format("\"{}\" is not true or false", key));
    value = found->get<bool>();
  }
  void read(const char* key, std::string& value) {
    const nlohmann::json* found = find(key);
    if (found == nullptr) return;
    if (!found->is_string()) return fail(fmt::format("\"{}\" is not a text", key));
    value = found->get<std::string>();
  }
  void read(const char* key, Seconds& value) { read(key, value.value); }
  // One of the words of `values`.
  template <typename E, std::size_t kCount>
  void read(const char* key, E& value, const std::array<E, kCount>& values) {
    std::string word;
    read(key, word);
    if (error_) return;
    std::vector<std::string> words;
    for (const E one : values) {
      if (word == to_string(one)) {
        value = one;
        return;
      }
      words.push_back(to_string(one));
    }
    fail(fmt::format("\"{}\" is not one of {}", key, join(words, ", ")));
  }
  template <typename T, typename... Values>
  void read(const char* key, std::optional<T>& value, const Values&... values) {
    if (!has(key)) return;
    T given{};
    read(key, given, values...);
    value = given;
  }
  // Keeps `value` when the key is missing: those that earlier versions did not write.
  template <typename T, typename... Values>
  void read_if(const char* key, T& value, const Values&... values) {
    if (has(key)) read(key, value, values...);
  }
  bool has(const char* key) const { return object_.is_object() && object_.contains(key); }
  // The value of `key` for a reader of its own; null when it is missing.
  const nlohmann::json& nested(const char* key) {
    static const nlohmann::json nothing;
    const nlohmann::json* found = find(key);
    return found == nullptr ? nothing : *found;
  }
  // Takes the value of a nested Result, or its error.
  template <typename T>
  void take(T& value, Result<T> result) {
    if (result) {
      value = std::move(*result);
    } else if (!error_) {
      error_ = result.error();
    }
  }

 private:
  const nlohmann::json* find(const char* key) {
    if (error_) return nullptr;
    const auto found = object_.find(key);
    if (found != object_.end()) return &*found;
    fail(fmt::format("\"{}\" is missing", key));
    return nullptr;
  }

  const nlohmann::json& object_;
  const char* what_;
  std::optional<Error> error_;
};

template <typename T>
Result<T> finish(const JsonReader& reader, T value) {
  if (reader.error()) return *reader.error();
  return value;
}

}  // namespace regatta::workload
