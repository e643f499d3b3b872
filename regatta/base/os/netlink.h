// os/netlink.h: interfaces, addresses, routes and shaping of one network namespace, by rtnetlink
// through libnl.
// Source: rtnetlink(7), tc-tbf(8), the API reference of libnl 3.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::os {

struct Interface {
  std::string name;
  int index = 0;
  bool admin_up = false;  // switched on
  bool carrier = false;   // switched on, and so is the peer
  Bytes sent;
  Bytes received;
  long long packets_sent = 0;
  long long packets_dropped = 0;  // on sending or receiving
};

// Token bucket: `rate` of frames on the wire, `burst` at full speed after a pause, at most `queue`
// waiting (the rest is dropped).
struct EgressShape {
  BytesPerSecond rate;
  Bytes burst;
  Bytes queue;
};

struct NextHop {
  int interface_index = 0;
  std::string gateway;  // IPv4
};

// One socket into the network namespace that the calling thread was in when open() ran; it stays
// there wherever the thread goes. Not thread safe. Every change is acknowledged by the kernel
// before the call returns; errors name the interface or destination.
class Netlink {
 public:
  static Result<Netlink> open();
  ~Netlink();
  Netlink(Netlink&&) noexcept;
  Netlink& operator=(Netlink&&) noexcept;

  // A cable from `name` here to `peer_name` in the namespace `peer_namespace`, both switched off.
  Status add_veth(const std::string& name, const std::string& peer_name,
                  const UniqueFd& peer_namespace);

  Result<Interface> interface(const std::string& name);
  Result<std::vector<Interface>> interfaces();

  // Switching off makes the kernel forget the routes through the interface; its address stays.
  Status set_up(const std::string& name, bool up);
  // Largest IP packet, and largest packet before segmentation (0: as it is).
  Status set_sizes(const std::string& name, int mtu, int gso_max_size);
  Status add_address(const std::string& name, const std::string& address, int prefix_length);

  // Sets or changes the egress shape. Rates above 2 GB/s are out of the bucket's range and of what
  // a software cable carries: they remove it.
  Status set_shape(const std::string& name, const EgressShape& shape);

  // Adds or replaces the route to destination/32; several hops share it by the kernel's hash.
  Status set_route(const std::string& destination, const std::vector<NextHop>& hops);
  // Success when there is none.
  Status remove_route(const std::string& destination);

 private:
  struct Impl;
  explicit Netlink(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta::os
