// simulate/test_scenario.h: parses valid scenarios, for tests.
#pragma once

#include <string>

#include <gtest/gtest.h>

#include "regatta/network/simulate/scenario_yaml.h"

namespace regatta::simulate {

inline Scenario parse(const std::string& text) {
  const auto scenario = parse_scenario(text, "scenario.yaml");
  EXPECT_TRUE(scenario) << scenario.error().message << "\n" << text;
  return scenario ? *scenario : Scenario{};
}

}  // namespace regatta::simulate
