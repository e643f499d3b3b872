#include "regatta/platform/node_agent/internal/server_facts.h"

#include <algorithm>
#include <string>
#include <variant>

#include <sys/wait.h>
#include <unistd.h>

#include "regatta/base/os/process.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/gpu/device/discover.h"
#include "regatta/platform/node_protocol/node_message.h"

namespace regatta::node_agent {
namespace {

constexpr long long kMib = 1 << 20;

sched::ClusterNode facts_of(const device::DiscoveredServer& server) {
  sched::ClusterNode facts;
  facts.name = "this";
  facts.cpu_milli = 1000 * std::max(server.threads, 1);
  facts.memory_mib = static_cast<int>(server.memory.value / kMib);
  facts.nics = server.type.nic_count;
  facts.numa_nodes = std::max(server.type.numa_nodes, 1);
  // Without accelerators every core counts as a device there; a job asks for cores as such.
  if (server.type.device.kind == topo::DeviceKind::kCpu) {
    facts.device_type = "cpu";
    return facts;
  }
  facts.device_type = server.type.device.name;
  facts.devices = std::min(server.type.device_count, sched::kNodeDevicesMax);
  facts.device_memory_mib = static_cast<int>(server.type.device.memory.value / kMib);
  return facts;
}

[[noreturn]] void discover_into(int fd) {
  const auto server = device::discover_server({});
  if (!server) ::_exit(1);
  node_protocol::NodeHello hello;
  hello.facts = facts_of(*server);
  const std::string bytes = node_protocol::encode(node_protocol::NodeMessage(hello));
  const bool is_written =
      ::write(fd, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size());
  ::_exit(is_written ? 0 : 1);
}

}  // namespace

Result<sched::ClusterNode> discover_server_facts() {
  REGATTA_TRY(pipe, os::make_pipe());
  const pid_t child = ::fork();
  if (child < 0) return os::errno_error("fork");
  if (child == 0) discover_into(pipe.write_end.get());
  pipe.write_end.reset();
  std::string bytes;
  char block[4096];
  ssize_t count = 0;
  while ((count = ::read(pipe.read_end.get(), block, sizeof block)) > 0)
    bytes.append(block, static_cast<std::size_t>(count));
  REGATTA_TRY(state, os::wait_for(child));
  const auto message = node_protocol::decode_node_message(bytes);
  const auto* hello = message ? std::get_if<node_protocol::NodeHello>(&*message) : nullptr;
  if (!state.is_success() || hello == nullptr)
    return Error{Code::kUnavailable,
                 "the devices of this server cannot be found out; give --devices and "
                 "--device-type"};
  return hello->facts;
}

}  // namespace regatta::node_agent
