#include "regatta/network/fabric/internal/design_remedy.h"

#include <algorithm>
#include <cmath>
#include <optional>
#include <vector>

#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"

namespace regatta::fabric {
namespace {

using Check = std::function<bool(const DesignRequest&)>;

constexpr int kMostDoubled = 8;

// At least `rate`, and what it is written as: three digits.
BytesPerSecond readable(BytesPerSecond rate) {
  const double step = std::pow(10, std::floor(std::log10(rate.value * 8)) - 2);
  return {std::ceil(rate.value * 8 / step * (1 - 1e-12)) * step / 8};
}

// The fastest usual rate up to `rate` with which the request can be met.
template <typename With>
std::optional<BytesPerSecond> fastest_up_to(BytesPerSecond rate, const Check& can_be_made,
                                            With&& with) {
  using namespace literals;  // NOLINT(google-build-using-namespace): one function
  for (const BytesPerSecond one : {3200_Gbps, 1600_Gbps, 800_Gbps, 400_Gbps, 200_Gbps, 100_Gbps,
                                   50_Gbps, 25_Gbps, 10_Gbps, 1_Gbps})
    if (one <= rate && can_be_made(with(one))) return one;
  return std::nullopt;
}

}  // namespace

std::string rate_remedy(const DesignRequest& request, bool has_uplink, BytesPerSecond chip_least,
                        const Check& can_be_made) {
  std::vector<std::string> paths;
  const auto port = fastest_up_to(request.port, can_be_made, [&](BytesPerSecond rate) {
    DesignRequest other = request;
    other.port = rate;
    if (!has_uplink) other.uplink = rate;
    return other;
  });
  if (port) paths.push_back("ports of " + format_bits_per_second(*port));
  if (has_uplink) {
    const auto uplink = fastest_up_to(request.uplink, can_be_made, [&](BytesPerSecond rate) {
      DesignRequest other = request;
      other.uplink = rate;
      return other;
    });
    if (uplink) paths.push_back("uplinks of " + format_bits_per_second(*uplink));
  }
  DesignRequest faster = request;
  faster.chip = readable(std::max(request.chip, chip_least));
  for (int doubled = 0; doubled < kMostDoubled && !can_be_made(faster); ++doubled)
    faster.chip = readable(faster.chip * 2);
  if (can_be_made(faster)) paths.push_back("a chip of " + format_bits_per_second(faster.chip));
  if (paths.empty()) return "take fewer GPUs";
  return "take " + join(paths, ", or ");
}

}  // namespace regatta::fabric
