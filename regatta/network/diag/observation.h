// diag/observation.h: observations of a network by the probers on its servers, its switches, and
// the senders of other traffic. Time is divided into windows of equal length, numbered alike on all
// servers; a probe belongs to the window in which it was due.
#pragma once

#include <cstdint>
#include <optional>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/units.h"

namespace regatta::diag {

using Window = std::int64_t;  // starts at its number times the length of a window

// Load of the server from the start of the window until the report was written, measured by late
// wake-ups of the prober and by its packets to itself over loopback.
struct HostState {
  Seconds worst_gap;               // largest delay of a wake-up or of an answer over loopback
  std::uint32_t control_sent = 0;  // packets over loopback
  std::uint32_t control_lost = 0;  // not back yet
  std::uint32_t overflows = 0;     // packets dropped at a full receive buffer
};

// One window of probe `probe` (paths 2 k and 2 k + 1) at its sender.
struct SentCount {
  std::uint32_t probe = 0;
  std::uint16_t sent = 0;
  std::uint16_t answered = 0;  // by now
};

// The same at its receiver, by the sender's windows.
struct ArrivedCount {
  std::uint32_t probe = 0;
  std::uint16_t arrived = 0;
};

// Complete counts of one server, including zeros. A window may be reported again when answers
// arrived late: counts only grow.
struct ProbeReport {
  NodeId server;
  Window window = 0;
  HostState host;
  std::vector<SentCount> sent;
  std::vector<ArrivedCount> arrived;
};

// Other forms of a probe's packet, each sent more rarely: what a network does with them need not be
// what it does with small packets of the probes' own type of service.
enum class PacketVariant : std::uint8_t {
  kLarge,  // as large as the sender's MTU allows
  kUser,   // of the type of service of users' packets, so by their routes; of several sizes
};
inline constexpr int kPacketVariants = 2;
inline constexpr int kWindowsPerCycle = 8;  // each probe sends one packet of each variant

// One cycle of one variant at a server, as ProbeReport for one window: windows are cycles, and the
// counts are 0 or 1.
struct VariantReport {
  NodeId server;
  PacketVariant variant = PacketVariant::kLarge;
  Window cycle = 0;  // starts at its number times kWindowsPerCycle windows
  std::vector<SentCount> sent;
  std::vector<ArrivedCount> arrived;
};

// Each sees the carrier of a cable by itself.
enum class CarrierSource : std::uint8_t {
  kServer,    // its prober, at its NIC
  kSwitches,  // those at its ends, by their counters
  kLab,       // the kernel of an emulated network
};
inline constexpr int kCarrierSources = 3;

// The carrier of a cable was lost or restored, as one source sees it: the cable has none as long as
// any of them says so.
struct CarrierEvent {
  LinkId link;
  bool up = false;
  CarrierSource source = CarrierSource::kServer;
};

// Ports of cables by number: 2 k is the end a of cable k, 2 k + 1 its end b.
using PortNumber = std::uint32_t;

// A port has heard which port is at the other end of its cable.
struct HeardPort {
  PortNumber port = 0;
  PortNumber heard = 0;
};

// The counts of a port since any beginning, at a time of the clock that numbers the windows; none:
// it is not known.
struct PortReading {
  PortNumber port = 0;
  Seconds at;
  std::optional<std::uint64_t> in_packets;
  std::optional<std::uint64_t> in_errors;
  std::optional<std::uint64_t> in_drops;  // without an error
  std::optional<std::uint64_t> out_errors;
  std::optional<std::uint64_t> out_drops;
};

// The IPv4 addresses of all interfaces of a server, by interface; 10.0.0.1 is 0x0a000001.
struct ServerAddresses {
  NodeId server;
  std::vector<std::vector<std::uint32_t>> interfaces;
};

// Other packets of a known round trip: those of a connection, by its retransmits, or of a
// traceroute up to the queried router. They raise no suspicion; they help to choose among the
// suspects of the probes.
struct PassiveCount {
  Window window = 0;
  std::vector<std::uint32_t> links;  // directed, by fabric::number_of
  std::uint32_t sent = 0;
  std::uint32_t lost = 0;  // at most `sent`
  // The queried router of a traceroute: it may answer although it forwards nothing.
  NodeId asked;
  // Loss share without a fault, above 0: full queues, routers that do not answer.
  double background = 0.02;
};

inline constexpr int kLossWindows = 3;
// A link that goes on losing packets as before lets so many losses be missing once in e^7 times.
inline constexpr double kLossesMissing = 7;

// The recent losses of probes over a directed link between switches. Not a verdict: a loss that
// several links of its path explain equally well counts for each of them.
struct LinkLoss {
  std::uint32_t link = 0;  // by fabric::number_of
  double now = 0;          // share in the last kLossWindows windows
  // Share that it may still lose: that of the last 17 windows or, if it is less, that of now; 0
  // once so many packets have crossed it without a loss as would have lost kLossesMissing before.
  double left = 0;
  bool is_blind = false;  // no probe that counts has crossed it: the shares are unknown

  friend bool operator==(const LinkLoss&, const LinkLoss&) = default;
};

}  // namespace regatta::diag
