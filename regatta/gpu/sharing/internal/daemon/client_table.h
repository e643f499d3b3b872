// sharing/internal/daemon/client_table.h: the records of all clients (processes of tenants), and
// the page that each of them shares with the daemon.
#pragma once

#include <optional>
#include <unordered_map>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/gpu/sharing/internal/daemon/process_id.h"
#include "regatta/gpu/sharing/internal/daemon/shared_page.h"
#include "regatta/gpu/sharing/internal/ledger/page_layout.h"
#include "regatta/gpu/sharing/state.h"

namespace regatta::sharing {

// The most clients of one tenant, so that no tenant shuts out the others.
constexpr int kClientsPerTenantMax = kClientsMax / 4;

class ClientTable {
 public:
  // Indexes the clients in `state`.
  explicit ClientTable(StateFile& state);

  std::optional<int> find(ProcessId process) const;
  // The last one of this number, which may have ended.
  std::optional<int> find(pid_t pid) const;
  const std::vector<int>& of_tenant(int tenant) const { return at(of_tenant_, tenant); }
  bool tenant_has_any(int tenant) const { return !of_tenant(tenant).empty(); }
  int tenant_of(int client) const { return static_cast<int>(state_->clients[client].tenant); }

  // kExhausted when the tenant or the daemon has too many clients.
  Result<int> add(int tenant, ProcessId process);
  void remove(int client);

  // Makes the client's page; returns its descriptor for the client.
  Result<os::UniqueFd> create_page(int client);
  // Maps the page that an earlier daemon made; kConflict when it is another one.
  Status adopt_page(int client, os::UniqueFd fd);
  bool has_page(int client) const { return page(client) != nullptr; }

  // Fields of the page; null for a client without one.
  regatta_lease_counter* lease_counter(int client, int device) const {
    return has_page(client) ? &page(client)->lease_counters[device] : nullptr;
  }
  const regatta_work* work(int client, int device) const {
    return has_page(client) ? &page(client)->works[device] : nullptr;
  }
  const regatta_work_marks* work_marks(int client, int device) const {
    return has_page(client) ? &page(client)->work_marks[device] : nullptr;
  }
  regatta_engine_usage* engine_usage(int client, int device) const {
    return has_page(client) ? page(client)->engine_usage[device] : nullptr;
  }
  regatta_residency_state* residency(int client, int device) const {
    return has_page(client) ? &page(client)->residency[device] : nullptr;
  }
  regatta_process* process(int client) const {
    return has_page(client) ? &page(client)->process : nullptr;
  }

 private:
  regatta_client_page* page(int client) const {
    return at(pages_, client).as<regatta_client_page>();
  }

  StateFile* state_;
  std::vector<std::vector<int>> of_tenant_;
  std::unordered_map<pid_t, int> of_pid_;
  std::vector<SharedPage> pages_;
  int next_free_ = 0;  // where the search for a free record begins
};

// The client's page in its process, as open_memory_file_of(). An earlier daemon may have made it
// under the old name.
Result<os::UniqueFd> open_client_page_of(const ProcessStat& process, std::uint64_t inode);

}  // namespace regatta::sharing
