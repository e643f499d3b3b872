// fuzz/scenario_fuzz.cc: any bytes as a scenario, and what can be run of it on a small cluster.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/network/simulate/run_scenario.h"
#include "regatta/network/simulate/scenario_yaml.h"
#include "regatta/network/simulate/test_cluster.h"

namespace {

// Larger ones are valid but make the fuzzer slow.
bool is_small(const regatta::simulate::Scenario& scenario) {
  if (scenario.traffic.size() > 8 || scenario.failures.size() > 4) return false;
  for (const regatta::simulate::TrafficItem& item : scenario.traffic) {
    const regatta::simulate::SimulatedStep& step = item.step;
    if (item.repeat > 3 || item.bytes.value > (1 << 20) || step.micro_batches > 8) return false;
    if (step.activations.value > (1 << 20) || step.gradients.value > (1 << 20)) return false;
  }
  return scenario.packet.mtu.value >= 512 && scenario.packet.buffer.value >= (1 << 16);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace regatta;  // NOLINT(google-build-using-namespace): one function
  static const simulate::SimulatedNetwork network(simulate::test_cluster(4, 2));
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto scenario = simulate::parse_scenario(text, "fuzz.yaml");
  if (!scenario) {
    REGATTA_CHECK(scenario.error().message.rfind("fuzz.yaml:", 0) == 0);
    return 0;
  }
  if (!is_small(*scenario)) return 0;
  const auto outcome = simulate::run_scenario(*scenario, network);
  if (!outcome) REGATTA_CHECK(outcome.error().message.rfind("fuzz.yaml:", 0) == 0);
  return 0;
}
