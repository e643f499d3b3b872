#include <algorithm>
#include <array>
#include <string>

#include <arpa/inet.h>

#include "regatta/network/probe/flow_counters.h"

namespace regatta::probe {
namespace {

bool is_mapped(const Endpoint& endpoint) {
  constexpr std::array<std::uint8_t, 12> kMapped{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};
  return std::equal(kMapped.begin(), kMapped.end(), endpoint.address.begin());
}

}  // namespace

std::string endpoint_text(const Endpoint& endpoint, bool is_ipv6) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  const bool is_wide = is_ipv6 && !is_mapped(endpoint);
  const std::uint8_t* address = endpoint.address.data() + (is_ipv6 && !is_wide ? 12 : 0);
  ::inet_ntop(is_wide ? AF_INET6 : AF_INET, address, text.data(), text.size());
  const std::string host = text.data();
  return (is_wide ? "[" + host + "]" : host) + ":" + std::to_string(endpoint.port);
}

Connection reversed(const Connection& connection) {
  return {connection.is_ipv6, connection.remote, connection.local};
}

bool is_counted_here(const Connection& connection) {
  const bool is_lower = connection.local < connection.remote;
  const bool is_odd = (connection.local.port ^ connection.remote.port) % 2 != 0;
  return is_lower == is_odd;
}

bool is_loopback(const Connection& connection) {
  const auto& address = connection.remote.address;
  if (!connection.is_ipv6) return address[0] == 127;
  if (is_mapped(connection.remote)) return address[12] == 127;
  return address[15] == 1 && std::all_of(address.begin(), address.end() - 1,
                                         [](std::uint8_t byte) { return byte == 0; });
}

}  // namespace regatta::probe
