// node_protocol/node_message.h: what the agent of a server says to the controller, as values and as
// bytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/text.h"
#include "regatta/platform/control/node.h"
#include "regatta/platform/sched/cluster_snapshot.h"

namespace regatta::node_protocol {

inline constexpr int kProtocolVersion = 1;

// Bounds of what is accepted; a message beyond them is refused.
inline constexpr std::size_t kMessageBytesMax = std::size_t{1} << 20;
inline constexpr std::size_t kLogPartBytesMax = std::size_t{256} << 10;
inline constexpr std::size_t kNameBytesMax = 128;

// The first message of a connection. Times are of the agent's CLOCK_BOOTTIME.
struct NodeHello {
  int protocol_version = kProtocolVersion;
  std::vector<std::string> capabilities = {};
  sched::ClusterNode facts;  // without health and history
  std::string address;       // at which other nodes reach this one
  std::string journal_id;    // of the agent's journal: another one knows nothing of earlier starts
  std::string boot_id;
  std::int64_t sent_ns = 0;
  std::string software;  // version of the agent, for people
};

struct NodeReports {
  bool is_complete = false;  // all that the journal knows
  std::vector<control::ReplicaReport> reports;
};

struct NodeHeartbeat {
  std::int64_t sent_ns = 0;
  std::int64_t sequence = 0;         // from 1 in each connection
  std::uint32_t failed_devices = 0;  // a bit for each
};

// A part of the output of a rank, for the LogRequest with this number.
struct LogPart {
  std::int64_t request = 0;
  std::int64_t offset = 0;  // of its first byte in all that the rank has written
  std::string data = {};    // up to kLogPartBytesMax
  bool is_last = false;     // no part follows
  std::string error = {};   // why there is none
};

// For a new certificate of the same node over the authenticated connection.
struct CertificateRequest {
  std::string request;  // PKCS #10, PEM
};

// Where the figures of a node's devices come from.
enum class ReadingSource : std::uint8_t {
  kNone,
  kNvml,
  kCgroups,   // of the replicas that have the devices
  kProcesses  // of these replicas
};
inline constexpr EnumNames<4> kReadingSourceNames = {"none", "nvml", "cgroups", "processes"};
inline constexpr std::uint8_t kUnknownPercent = 255;
inline constexpr std::size_t kSharedTenantsMax = 256;

// A tenant of the daemon of shared GPUs on a device.
struct SharedTenant {
  std::string name;
  int device = 0;
  int use_percent = 0;  // of the device's time
  int memory_mib = 0;

  bool operator==(const SharedTenant&) const = default;
};

// Use of the devices that have changed since the connection's last readings.
struct DeviceReadings {
  ReadingSource source = ReadingSource::kNone;
  std::uint32_t devices = 0;           // a bit for each that follows
  std::vector<std::uint8_t> use;       // percent of the latest second, or kUnknownPercent
  std::vector<std::uint8_t> memory;    // percent in use, or kUnknownPercent
  bool has_shared = false;             // `shared` replaces what was sent before
  std::vector<SharedTenant> shared{};  // up to kSharedTenantsMax
};

// std::monostate: a kind that this version does not know; skip it.
using NodeMessage = std::variant<std::monostate, NodeHello, NodeReports, NodeHeartbeat, LogPart,
                                 CertificateRequest, DeviceReadings>;

std::string encode(const NodeMessage& message);
// kInvalidInput: these bytes are no message, or a field, which is named, is out of its range.
Result<NodeMessage> decode_node_message(std::string_view bytes);

// A node's name is part of its certificate and of keys: letters, digits, '.', '-' and '_', 1 to
// kNameBytesMax.
Status check_node_name(std::string_view name);

}  // namespace regatta::node_protocol
