// tests/attacks/attack_path.h: where the programs that attack lie.
#pragma once

#include <string>

namespace regatta {

inline std::string attack(const std::string& name) {
  return std::string(REGATTA_ATTACKS) + "/regatta-attack-" + name;
}

}  // namespace regatta
