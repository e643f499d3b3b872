// fuzz/json_fuzz.cc: any bytes as JSON of every kind, and as the file of measured rates.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <nlohmann/json.hpp>

#include "regatta/base/core/json.h"
#include "regatta/model/cost/rates.h"

namespace {

using namespace regatta;  // NOLINT(google-build-using-namespace): a program of its own

// Reads every value below `reader` as a number that it rarely is.
void read_all(const JsonReader& reader) {
  static_cast<void>(reader.as<int>(IntRange{-1, 1}));
  if (reader.raw().is_array())
    for (const JsonReader& item : reader.items())
      read_all(item);
  if (reader.raw().is_object())
    for (const auto& [key, member] : reader.members())
      read_all(member);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto root = JsonReader::parse(text, "fuzz.json");
  if (!root) {
    REGATTA_CHECK(root.error().message.rfind("fuzz.json: ", 0) == 0);
    return 0;
  }
  read_all(*root);
  const Status status = root->status();
  REGATTA_CHECK(status || status.error().message.rfind("fuzz.json: ", 0) == 0);
  REGATTA_CHECK(JsonReader::parse(json_line(root->raw()), "again.json").has_value());
  const auto rates = cost::parse_rates(text, "fuzz.json");
  if (rates)
    REGATTA_CHECK(cost::parse_rates(cost::rates_to_json(*rates), "again.json").has_value());
  return 0;
}
