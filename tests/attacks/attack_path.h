// tests/attacks/attack_path.h: where the programs that attack lie.
#pragma once

#include <string>

namespace regatta {

// The path of the program that was built as regatta-attack-NAME.
std::string attack(const std::string& name);

}  // namespace regatta
