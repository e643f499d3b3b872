// Any bytes as a JSON text: parse_json() accepts what another parser accepts, but for keys that
// come twice and its bounds, and writes a text that reads as the same tree.
#include <cstddef>
#include <cstdint>
#include <string_view>

#include <nlohmann/json.hpp>

#include "regatta/base/core/yaml_map.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto tree = regatta::parse_json(text, "text");
  if (!tree) return 0;
  if (!nlohmann::json::accept(text)) __builtin_trap();
  const auto again = regatta::parse_json(regatta::json_text(*tree), "text");
  if (!again || regatta::json_text(*again) != regatta::json_text(*tree)) __builtin_trap();
  return 0;
}
