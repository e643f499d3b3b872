// fabric/test_address.h: parses IPv4 addresses of flows, for tests.
#pragma once

#include <cstdint>
#include <sstream>
#include <string>

namespace regatta::fabric {

// "10.0.0.1": 0x0a000001.
inline std::uint32_t address(const std::string& text) {
  std::istringstream in(text);
  std::uint32_t number = 0;
  char dot = 0;
  for (unsigned part = 0; in >> part; in >> dot)
    number = number << 8U | part;
  return number;
}

}  // namespace regatta::fabric
