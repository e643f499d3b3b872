// fabric/internal/packet/test_simulate.h: simulations of packets that tests expect to succeed.
#pragma once

#include <utility>

#include <gtest/gtest.h>

#include "regatta/network/fabric/internal/packet/test_packet_setup.h"

namespace regatta::fabric {

inline PacketReport simulate(const TestPacketSetup& one, const PacketOptions& options = {}) {
  auto report = simulate_packets(one.setup(), one.traffic, options);
  EXPECT_TRUE(report) << report.error().message;
  return *std::move(report);
}

}  // namespace regatta::fabric
