#include "regatta/network/fabric/internal/packet/flow_event_log.h"

#include <utility>
#include <vector>

#include <gtest/gtest.h>

namespace regatta::fabric::packet {
namespace {

TEST(PacketFlowEventLog, RecordsNothingUntilItIsEnabled) {
  FlowEventLog log;
  log.add(1, FlowEvent::kStarted);
  EXPECT_EQ(log.size(), 0U);
  log.enable();
  log.add(1, FlowEvent::kSent);
  EXPECT_EQ(log.size(), 1U);
}

TEST(PacketFlowEventLog, ReturnsTheEventsOfARangeInOrder) {
  FlowEventLog log;
  log.enable();
  log.add(5, FlowEvent::kStarted);
  log.add(5, FlowEvent::kSent);
  log.add(~0U, FlowEvent::kArrived);
  std::vector<std::pair<std::uint32_t, FlowEvent>> events;
  log.for_each(1, 3,
               [&](std::uint32_t flow, FlowEvent event) { events.emplace_back(flow, event); });
  EXPECT_EQ(events, (std::vector<std::pair<std::uint32_t, FlowEvent>>{{5, FlowEvent::kSent},
                                                                      {~0U, FlowEvent::kArrived}}));
  log.clear();
  EXPECT_EQ(log.size(), 0U);
}

}  // namespace
}  // namespace regatta::fabric::packet
