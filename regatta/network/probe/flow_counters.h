// probe/flow_counters.h: what each TCP connection of a network namespace has carried so far, asked
// of the kernel often and cheaply. Acts: Linux.
// Source: sock_diag(7), linux/inet_diag.h, linux/tcp.h.
//
// There are two methods. A dump walks the hash table of all connections of the machine; that
// costs the same when there are few. Asking for known connections one by one costs by their number,
// and does not see new ones. So new ones are looked for by a dump, twice a second as a rule,
// and in between the cheaper method is taken: both are timed. What the interfaces carried since the
// last look tells for a few microseconds how much there is to find: nothing, and no connection is
// asked; else those that moved a moment ago, and the others where these do not account for it.
// Where interfaces cannot be asked, or tell what they carried late (drivers may read their hardware
// once a second; each dump shows it), a few of the connections that have been quiet for a while are
// asked each time; when one of them wakes, all are asked again.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include <sys/types.h>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"

namespace regatta::probe {

// In the order of bytes on the wire; of IPv4 the first four.
struct Endpoint {
  std::array<std::uint8_t, 16> address{};
  std::uint16_t port = 0;

  friend auto operator<=>(const Endpoint&, const Endpoint&) = default;
};

struct Connection {
  bool is_ipv6 = false;
  Endpoint local;
  Endpoint remote;

  friend auto operator<=>(const Connection&, const Connection&) = default;
};

// "10.0.0.1:4711", "[fd00::1]:4711". IPv4 that came in as IPv6 is written as IPv4.
std::string endpoint_text(const Endpoint& endpoint, bool is_ipv6);
// Where both ends of a connection are watched: which of the two counts it, half of them each. True
// at one end and false at the other.
bool is_counted_here(const Connection& connection);
// The same connection as its other end has it.
Connection reversed(const Connection& connection);
bool is_loopback(const Connection& connection);

// Since the connection was made, as they were at `at`.
struct ConnectionCounters {
  Connection connection;
  std::uint64_t inode = 0;        // of the socket: names it among the descriptors of a process
  std::uint64_t cookie = 0;       // names it for ever
  std::uint64_t sent_bytes = 0;   // with what was sent again
  std::uint64_t acked_bytes = 0;  // of them arrived, as far as is known
  std::uint64_t received_bytes = 0;
  std::uint64_t sent_segments = 0;  // with bytes, with what was sent again
  std::uint64_t retransmits = 0;    // of them
  Seconds round_trip;               // smoothed
  Seconds at;                       // CLOCK_MONOTONIC
};

struct CounterOptions {
  Seconds look_for_new{0.5};
  Seconds quiet_after{3.0};     // without a byte
  std::size_t quiet_share = 5;  // one in so many quiet ones is asked each time
  bool asks_interfaces = true;  // false: only to test what happens where that does not work
  Seconds interface_pace;       // above 0: only to test interfaces that tell so seldom
  // Connections that are told by dumps alone, because somebody else counts them. Null: none.
  std::function<bool(const Connection&)> is_left_out = {};
};

// One socket into the network namespace that the calling thread was in when open() ran. Not thread
// safe.
class FlowCounters {
 public:
  static Result<FlowCounters> open(const CounterOptions& options = {});
  FlowCounters(FlowCounters&&) noexcept;
  FlowCounters& operator=(FlowCounters&&) noexcept;
  ~FlowCounters();

  // All established connections; valid until the next call. What was asked now, or cannot have
  // moved more than a little (16 KiB by all), has the time of the call. What has ended is among
  // them until it is asked, or new ones are looked for.
  Result<const std::vector<ConnectionCounters>*> read();
  // Questions to the kernel about a connection so far, without dumps.
  std::uint64_t asked() const;

 private:
  struct Impl;
  explicit FlowCounters(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Inodes of the sockets that the process has open; none when it is gone or may not be looked at.
std::vector<std::uint64_t> sockets_of(pid_t pid, const std::string& proc = "/proc");

}  // namespace regatta::probe
