// api/internal/json_object.h: writes one object of JSON, key by key.
#pragma once

#include <concepts>
#include <cstdint>
#include <string>
#include <string_view>

#include <fmt/format.h>

#include "regatta/base/core/yaml_map.h"

namespace regatta::api {

class JsonObject {
 public:
  void add(std::string_view key, std::string_view text) {
    begin(key);
    append_json_quoted(text, out_);
  }
  void add(std::string_view key, const char* text) { add(key, std::string_view(text)); }
  void add(std::string_view key, bool value) { add_raw(key, value ? "true" : "false"); }
  template <std::integral T>
  requires(!std::same_as<T, bool>) void add(std::string_view key, T value) {
    begin(key);
    fmt::format_to(std::back_inserter(out_), "{}", value);
  }
  void add(std::string_view key, double value) {
    begin(key);
    fmt::format_to(std::back_inserter(out_), "{:.6g}", value);
  }
  // Numbers beyond 2^53, which a script language would round, are texts.
  void add_revision(std::string_view key, std::int64_t value) {
    begin(key);
    fmt::format_to(std::back_inserter(out_), "\"{}\"", value);
  }
  // A value that is JSON already.
  void add_raw(std::string_view key, std::string_view json) {
    begin(key);
    out_ += json;
  }
  std::string take() {
    if (out_.empty()) out_ = '{';
    out_ += '}';
    return std::move(out_);
  }

 private:
  void begin(std::string_view key) {
    out_ += out_.empty() ? '{' : ',';
    append_json_quoted(key, out_);
    out_ += ':';
  }

  std::string out_;
};

// A list of values that are JSON already.
inline void append_item(std::string& list, std::string_view json) {
  list += list.empty() ? "[" : ",";
  list += json;
}
inline std::string finished_list(std::string list) {
  return list.empty() ? "[]" : std::move(list) + "]";
}

}  // namespace regatta::api
