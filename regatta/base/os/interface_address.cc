#include <arpa/inet.h>
#include <ifaddrs.h>
#include <netinet/in.h>

#include "regatta/base/os/netlink.h"

namespace regatta::os {

std::map<std::uint32_t, std::string> interfaces_by_address() {
  std::map<std::uint32_t, std::string> all;
  ifaddrs* first = nullptr;
  if (::getifaddrs(&first) != 0) return all;
  for (const ifaddrs* one = first; one != nullptr; one = one->ifa_next) {
    if (one->ifa_addr == nullptr || one->ifa_addr->sa_family != AF_INET) continue;
    const auto* address = reinterpret_cast<const sockaddr_in*>(one->ifa_addr);
    all[::ntohl(address->sin_addr.s_addr)] = one->ifa_name;
  }
  ::freeifaddrs(first);
  return all;
}

bool is_own_address(std::uint32_t address) {
  return interfaces_by_address().contains(address);
}

}  // namespace regatta::os
