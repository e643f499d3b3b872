#include "regatta/network/simulate/internal/packet_level.h"

#include <gmock/gmock.h>

#include "regatta/network/simulate/test_cluster.h"
#include "regatta/network/simulate/test_scenario.h"

namespace regatta::simulate {
namespace {

using testing::HasSubstr;

std::string error_of(const std::string& text) {
  static const SimulatedNetwork network(test_cluster(4, 2));
  const auto outcome = run_scenario(parse(text), network);
  return outcome ? "it ran" : outcome.error().message;
}

TEST(PacketLevel, RefuseWhatOnlyFlowsCanDo) {
  EXPECT_THAT(error_of("level: packet\ntraffic: [{pattern: step, dp: 8, forward: 10us, backward: "
                       "20us, gradients: 64MiB}]\n"),
              HasSubstr("write aggregate: false"));
}

TEST(PacketLevel, NameTheItemWhoseMessagesAreTooLong) {
  const std::string text =
      "\npacket: {mtu: 1B}\n"
      "traffic:\n  - {pattern: message, from: s0/0, to: s1/0, bytes: 1MB}\n"
      "  - {pattern: message, from: s0/0, to: s1/0, bytes: 5GB}\n";
  for (const std::string level : {"level: packet", "level: mixed"})
    EXPECT_EQ(error_of(level + text),
              "scenario.yaml:5: a message of 5000000000 bytes in packets of 1 are more than can be "
              "counted; take a larger packet.mtu, or the flow level");
}

TEST(PacketLevel, NameTheScenarioOfWhatIsWrongWithAllOfIt) {
  std::string text = "level: packet\ntraffic:\n";
  for (int i = 0; i < 5; ++i)
    text += "  - {pattern: message, from: s0/0, to: s1/0, bytes: 1B, start: 1000000s}\n";
  EXPECT_THAT(error_of(text), HasSubstr("scenario.yaml: pauses of 5e+06 s in all are more than"));
}

}  // namespace
}  // namespace regatta::simulate
