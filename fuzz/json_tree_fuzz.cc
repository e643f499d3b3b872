// Any bytes as a JSON text: parse_json() accepts what another parser accepts, but for keys that
// come twice and its bounds, and writes a text that reads as the same tree. Numbers beyond a double
// are JSON; the other parser refuses them, and ours leaves that to the reader of a number.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <nlohmann/json.hpp>

#include "regatta/base/core/yaml_map.h"

namespace {

constexpr int kNumberTooLarge = 406;  // of the other parser's errors

bool is_json(std::string_view text) {
  try {
    static_cast<void>(nlohmann::json::parse(text));
    return true;
  } catch (const nlohmann::json::exception& error) {
    return error.id == kNumberTooLarge;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto tree = regatta::parse_json(text, "text");
  if (!tree) return 0;
  if (!is_json(text)) __builtin_trap();
  const auto again = regatta::parse_json(regatta::json_text(*tree), "text");
  if (!again || regatta::json_text(*again) != regatta::json_text(*tree)) __builtin_trap();
  return 0;
}
