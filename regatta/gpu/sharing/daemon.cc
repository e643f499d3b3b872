#include "regatta/gpu/sharing/daemon.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/core.h>
#include <unistd.h>

#include "regatta/base/os/log.h"
#include "regatta/base/os/process.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/gpu/sharing/internal/daemon/daemon_loop.h"
#include "regatta/gpu/sharing/internal/daemon/listener.h"

namespace regatta::sharing {
namespace {

constexpr std::uint64_t kHoldNs = 100'000'000;
// A connection for requests, one for events, a pidfd and an address space for each client, as many
// for those that are none yet, and the rest.
constexpr std::size_t kDescriptorsMost = 4 * kClientsMax + kClientsMax / 2;
// With fewer it could not serve an operator beside some clients.
constexpr std::size_t kDescriptorsLeast = 64;

}  // namespace

Status serve(const DaemonOptions& options, const std::atomic<bool>& stop) {
  if (options.gpus.size() > kDevicesMax) {
    return Error{
        Code::kInvalidInput,
        fmt::format("--gpu: is given {} times, and a daemon has {} GPUs at most; leave the "
                    "others out",
                    options.gpus.size(), kDevicesMax)};
  }
  if (const auto allowed = os::raise_descriptor_limit(kDescriptorsMost); !allowed) {
    REGATTA_TRY_DO(os::raise_descriptor_limit(kDescriptorsLeast));
    os::log_warning("gpu daemon: " + allowed.error().message);  // then with fewer clients
  }
  REGATTA_TRY(state, MappedState::open(options.state));
  std::error_code error;  // tenants' processes may be in other folders
  const std::string socket = std::filesystem::absolute(options.socket, error).string();
  if (error) return os::errno_error(options.socket, error.value());
  REGATTA_TRY(tenant_store,
              TenantStore::open(std::move(state), socket,
                                {.devices = options.gpus, .host = options.host_memory},
                                options.opens_when_lost));
  REGATTA_TRY(tenant_cgroups, TenantCgroups::open(options.state));
  if (options.policy) REGATTA_TRY_DO(tenant_store.set_policy(*options.policy));
  bool has_clients = false;
  for (const ClientRecord& client : tenant_store.state().clients)
    has_clients = has_clients || client.live != 0;
  REGATTA_TRY(poll, EventPoll::create());
  REGATTA_TRY(listener, open_listener(socket));
  // Tenants that an earlier daemon gave a turn reconnect within this time.
  REGATTA_TRY(turn_manager,
              TurnManager::create(tenant_store, options.turns, has_clients ? kHoldNs : 0));
  REGATTA_TRY(engines,
              EngineShares::create(tenant_store, options.engine_rates, options.engine_sessions));
  REGATTA_TRY(residency_manager, ResidencyManager::create(tenant_store, options.residency));
  DaemonLoop daemon(
      {.tenant_store = std::move(tenant_store),
       .tenant_cgroups = std::move(tenant_cgroups),
       .turn_manager = std::move(turn_manager),
       .engines = std::move(engines),
       .residency_manager = std::move(residency_manager),
       .device_memory = DeviceMemory(static_cast<int>(options.gpus.size()), options.nvml)},
      std::move(poll), ConnectionTable(std::move(listener)));
  REGATTA_TRY_DO(daemon.adopt_clients());
  const Status status = daemon.run(stop);
  ::unlink(socket.c_str());
  return status;
}

}  // namespace regatta::sharing
