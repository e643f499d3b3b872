#include "regatta/network/fabric/internal/followers.h"

#include <fmt/core.h>

namespace regatta::fabric {

Error circle_of_waits(const Traffic& traffic, const std::vector<std::uint32_t>& waits_for) {
  std::vector<std::uint32_t> waits_on(waits_for.size(), 0);
  for (const Traffic::Wait& wait : traffic.waits())
    if (waits_for[wait.before] != 0) waits_on[wait.flow_and_after / 2] = wait.before;
  std::vector<bool> is_seen(waits_for.size(), false);
  std::uint32_t flow = 0;
  while (waits_for[flow] == 0)
    ++flow;
  // Who waits and whom it waits for, until one comes again.
  for (; !is_seen[flow]; flow = waits_on[flow])
    is_seen[flow] = true;
  return {Code::kInvalidInput,
          fmt::format("flow {} waits for itself, through others or directly; remove one of the "
                      "waits of that circle",
                      flow)};
}

}  // namespace regatta::fabric
