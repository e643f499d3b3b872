#include "regatta/model/collective/setting.h"

#include <array>

#include "regatta/base/core/units.h"

namespace regatta::collective {
namespace {

constexpr std::array kNames = {"automatic", "exchange",     "doubling", "halving", "double-tree",
                               "ring",      "hierarchical", "direct",   "tree",    "pairwise",
                               "bruck",     "rail-local",   "one-shot", "staged",  "in-place"};
static_assert(kNames.size() == static_cast<std::size_t>(Algorithm::kInPlace) + 1);

}  // namespace

std::string to_string(Algorithm algorithm) {
  return kNames[static_cast<std::size_t>(algorithm)];
}

std::optional<Algorithm> algorithm_named(const std::string& name) {
  for (std::size_t i = 0; i < kNames.size(); ++i)
    if (name == kNames[i]) return static_cast<Algorithm>(i);
  return std::nullopt;
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
