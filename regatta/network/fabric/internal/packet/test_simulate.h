// fabric/internal/packet/test_simulate.h: simulations of packets that tests expect to succeed.
#pragma once

#include <utility>

#include <gtest/gtest.h>

#include "regatta/network/fabric/internal/packet/test_scene.h"

namespace regatta::fabric {

inline PacketReport simulate(const TestScene& one, const PacketOptions& options = {}) {
  auto report = simulate_packets(one.scene(), one.traffic, options);
  EXPECT_TRUE(report) << report.error().message;
  return *std::move(report);
}

}  // namespace regatta::fabric
