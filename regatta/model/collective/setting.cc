#include "regatta/model/collective/setting.h"

#include <array>

#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"

namespace regatta::collective {
namespace {

constexpr std::array kNames = {"automatic", "exchange",     "doubling", "halving", "double-tree",
                               "ring",      "hierarchical", "direct",   "tree",    "pairwise",
                               "bruck",     "rail-local",   "one-shot", "staged",  "in-place"};
static_assert(kNames.size() == static_cast<std::size_t>(Algorithm::kInPlace) + 1);

}  // namespace

std::string to_string(Algorithm algorithm) {
  return enum_name(kNames, algorithm);
}

std::optional<Algorithm> algorithm_named(const std::string& name) {
  return parse_enum<Algorithm>(kNames, name);
}

std::string describe(const Setting& setting) {
  std::string text = to_string(setting.algorithm);
  if (setting.chunk_bytes > 0)
    text += ", chunks of " + format_bytes(Bytes{static_cast<long long>(setting.chunk_bytes)});
  if (setting.connections > 0)
    text += ", " + std::to_string(setting.connections) +
            (setting.connections == 1 ? " connection" : " connections");
  return text;
}

}  // namespace regatta::collective
