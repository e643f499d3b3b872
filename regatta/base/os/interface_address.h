// os/interface_address.h: which IPv4 addresses the interfaces of this network namespace have.
// Source: getifaddrs(3).
#pragma once

#include <cstdint>
#include <map>
#include <string>

namespace regatta::os {

// Names of interfaces by address: 10.0.0.1 is 0x0a000001. Empty where the kernel does not tell.
std::map<std::uint32_t, std::string> interfaces_by_address();

// Whether an interface has it, whatever state it is in.
bool is_own_address(std::uint32_t address);

}  // namespace regatta::os
