// os/netlink.h: network interfaces, addresses, routes and shaping over netlink, and the counters of
// drivers.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::os {

// Interfaces, addresses, routes and shaping of one network namespace.
// Source: rtnetlink(7), tc-tbf(8), the API reference of libnl 3.

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

// Indices of the two ends of a cable; 0: the kernel chooses.
struct VethIndices {
  int own = 0;
  int peer = 0;
};

struct NextHop {
  int interface_index = 0;
  std::string gateway;  // IPv4
};

// A socket in the network namespace of the thread that called open(); it stays there when the
// thread moves. Not thread safe. The kernel acknowledges every change before the call returns;
// errors name the interface or destination.
class Netlink {
 public:
  static Result<Netlink> open();
  ~Netlink();
  Netlink(Netlink&&) noexcept;
  Netlink& operator=(Netlink&&) noexcept;

  // A cable from `name` here to `peer_name` in the namespace `peer_namespace`, both switched off.
  Status add_veth(const std::string& name, const std::string& peer_name,
                  const UniqueFd& peer_namespace, const VethIndices& indices = {});
  // The other end of a cable goes with it.
  Status remove_link(const std::string& name);

  Result<Interface> interface(const std::string& name);
  Result<std::vector<Interface>> interfaces();

  // Switching off makes the kernel forget the routes through the interface; its address stays.
  Status set_up(const std::string& name, bool up);
  // Largest IP packet, and largest packet before segmentation (0: as it is).
  Status set_sizes(const std::string& name, int mtu, int gso_max_size);
  Status add_address(const std::string& name, const std::string& address, int prefix_length);

  // Sets or changes the egress shape. A rate above 2 GB/s removes it: neither the token bucket nor
  // a software cable reaches it.
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

// Reports when a network interface of the calling thread's network namespace loses or gains its
// carrier.

struct CarrierEvent {
  std::string interface;  // "nic0"
  bool up = false;        // the interface is on and its cable has a live peer
};

// Not thread safe: one thread waits. The loopback interface is left out.
class CarrierWatch {
 public:
  // Subscribes in the network namespace that the calling thread is in.
  static Result<CarrierWatch> open();
  ~CarrierWatch();
  CarrierWatch(CarrierWatch&&) noexcept;
  CarrierWatch& operator=(CarrierWatch&&) noexcept;

  // Interfaces as they are now, by name.
  std::vector<CarrierEvent> state() const;

  // The next change of an interface, or nothing after `limit`. An interface that is removed counts
  // as down.
  Result<std::optional<CarrierEvent>> next(Seconds limit);

  // Readable when next() has an event to read: for callers with a poll loop of their own.
  int fd() const;

 private:
  struct Impl;
  explicit CarrierWatch(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Says when an IPv4 address is added to an interface of the calling thread's network namespace, or
// removed: interfaces_by_address() has the addresses. Not thread safe.
class AddressWatch {
 public:
  static Result<AddressWatch> open();
  // Readable when consume_change() has something to read.
  int fd() const { return socket_.get(); }
  // Whether addresses may have changed since the last call. Never waits.
  bool consume_change();

 private:
  explicit AddressWatch(UniqueFd socket) : socket_(std::move(socket)) {}
  UniqueFd socket_;
};

// The counters that a network device's driver keeps (`ethtool -S`).

// Name and value, in the driver's order; empty when the driver keeps none. kNotFound when there is
// no such device.
using EthtoolCounters = std::vector<std::pair<std::string, std::uint64_t>>;
Result<EthtoolCounters> ethtool_counters(const std::string& device);

// The same for a device that executes commands (linux/ethtool.h) by `ask`, as the ioctl SIOCETHTOOL
// does: 0, or errno. kUnavailable when its replies contradict each other.
using EthtoolAsk = std::function<int(void* command)>;
Result<EthtoolCounters> ethtool_counters_by(const std::string& device, const EthtoolAsk& ask);

// The devices of this machine by name, the loopback apart.
Result<std::vector<std::string>> network_devices();

// Whether the device has a carrier.
bool has_carrier(const std::string& device);

// Names of interfaces of this network namespace by IPv4 address: 10.0.0.1 is 0x0a000001. Empty when
// the kernel gives none. Source: getifaddrs(3).
std::map<std::uint32_t, std::string> interfaces_by_address();

// Whether an interface in any state has the address.
bool is_own_address(std::uint32_t address);

}  // namespace regatta::os
