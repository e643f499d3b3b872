// fuzz/failure_tables_fuzz.cc: any bytes as a table of failure mixes, of lives of GPUs and of
// faults, and as failures of a cluster's nodes.

#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/platform/cluster_replay/node_events.h"
#include "regatta/platform/cluster_replay/trace_tables.h"
#include "regatta/platform/reliability/failure_log.h"
#include "regatta/platform/reliability/failure_mix.h"

namespace {

void check_log(const regatta::Result<regatta::reliability::FailureLog>& log) {
  if (!log) {
    REGATTA_CHECK(log.error().message.starts_with("fuzz.csv:"));
    return;
  }
  for (const auto& unit : log->units)
    for (const auto& stay : unit.stays)
      REGATTA_CHECK(stay.start <= stay.end && stay.end <= log->end);
}

// Events of three nodes of two devices are in order, and nodes fail and return in turn.
void check_events(std::string_view text) {
  using namespace regatta;  // NOLINT(google-build-using-namespace): one function
  std::vector<sched::ClusterNode> nodes;
  cluster_replay::add_servers(nodes, {.device_type = "h100", .servers = 3, .devices = 2});
  const auto traced = cluster_replay::read_node_failures(
      text, "fuzz.csv", nodes, {.from = {3600}, .duration = 100 * reliability::kDay});
  if (!traced) {
    REGATTA_CHECK(traced.error().message.starts_with("fuzz.csv:"));
    return;
  }
  std::array<bool, 3> is_failed{};
  Seconds last{};
  for (const cluster_replay::NodeEvent& event : traced->events) {
    const bool fails = event.health == sched::NodeHealth::kFailed;
    REGATTA_CHECK(event.at >= last && is_failed.at(static_cast<std::size_t>(event.node)) != fails);
    is_failed.at(static_cast<std::size_t>(event.node)) = fails;
    last = event.at;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace regatta;  // NOLINT(google-build-using-namespace): one function
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto mixes = reliability::read_failure_mixes(text, "fuzz.csv");
  if (!mixes) REGATTA_CHECK(mixes.error().message.starts_with("fuzz.csv:"));
  if (mixes)
    for (const auto& mix : *mixes)
      static_cast<void>(reliability::with_rates(mix, 8, reliability::kDay));
  check_log(reliability::read_gpu_lives(text, "fuzz.csv"));
  check_log(reliability::read_server_faults(text, "fuzz.csv", 4));
  check_events(text);
  return 0;
}
