// probe/flow_counters.h: bytes and segments of each TCP connection of a network namespace so far,
// queried from the kernel often and cheaply. Acts: Linux. internal/poll_schedule.h decides when.
// Source: sock_diag(7), linux/inet_diag.h, linux/tcp.h.
//
// There are two methods. A dump walks the hash table of all connections of the machine, at the same
// cost when there are few. Queries for known connections cost by their number, and do not find new
// ones. So a dump finds new ones, usually twice a second; in between the cheaper method runs: both
// are timed. The byte counters of the interfaces, read in a few microseconds, limit the queries:
// without new bytes, no connection is queried; else those that moved a moment ago, and the others
// where these do not account for the bytes. Where interfaces cannot be queried, or report late
// (drivers may read their hardware once a second; each dump shows it), each read queries a few of
// the connections that have been quiet for a while; when one of them wakes, all are queried again.
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

// Bytes in wire order; IPv4 uses the first four.
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

// "10.0.0.1:4711", "[fd00::1]:4711". IPv4-mapped IPv6 is written as IPv4.
std::string endpoint_text(const Endpoint& endpoint, bool is_ipv6);
// Which of two watched ends counts a connection, half of them each: true at one end and false at
// the other.
bool is_counted_here(const Connection& connection);
// The same connection as seen from its other end.
Connection reversed(const Connection& connection);
bool is_loopback(const Connection& connection);

// Counts since the connection was made, as of `at`.
struct ConnectionCounters {
  Connection connection;
  std::uint64_t inode = 0;        // of the socket: identifies it among the descriptors of a process
  std::uint64_t cookie = 0;       // identifies the connection for ever
  std::uint64_t sent_bytes = 0;   // including retransmits
  std::uint64_t acked_bytes = 0;  // of them known to have arrived
  std::uint64_t received_bytes = 0;
  std::uint64_t sent_segments = 0;  // with payload, including retransmits
  std::uint64_t retransmits = 0;    // of them
  Seconds round_trip;               // smoothed
  Seconds at;                       // CLOCK_MONOTONIC
};

struct CounterOptions {
  Seconds look_for_new{0.5};
  Seconds quiet_after{3.0};     // without a byte
  std::size_t quiet_share = 5;  // one in so many quiet ones is queried each time
  bool asks_interfaces = true;  // false: only to test the fallback
  Seconds interface_pace;       // above 0: only to test interfaces that report this seldom
  // Connections reported by dumps alone, because another program counts them. Null: none.
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

  // All established connections; valid until the next call. Connections that were queried now, or
  // cannot have moved more than a little (16 KiB by all), have the time of the call. Ended ones are
  // included until they are queried or new ones are looked for.
  Result<const std::vector<ConnectionCounters>*> read();
  // Number of queries for single connections so far, without dumps.
  std::uint64_t asked() const;

 private:
  struct Impl;
  explicit FlowCounters(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Inodes of the open sockets of the process; none when it has ended or may not be inspected.
std::vector<std::uint64_t> sockets_of(pid_t pid, const std::string& proc = "/proc");

}  // namespace regatta::probe
