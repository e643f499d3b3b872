#include "tests/attacks/attack_path.h"

#include <string>

namespace regatta {

std::string attack(const std::string& name) {
  return std::string(REGATTA_ATTACKS) + "/regatta-attack-" + name;
}

}  // namespace regatta
