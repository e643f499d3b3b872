#include "regatta/gpu/sharing/internal/daemon/tenant_store.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "regatta/base/os/unique_fd.h"

namespace regatta::sharing {
namespace {

// What a lease counts for while it is not known whether its last change was made.
std::uint64_t counted(const LeaseRecord& lease) {
  return std::max(lease.leased, lease.next);
}

Error no_page() {
  return {Code::kConflict, "the page is not the one that this client was given"};
}

}  // namespace

TenantStore::TenantStore(MappedState state, std::string socket, std::vector<Bytes> capacity)
    : state_(std::move(state)),
      socket_(std::move(socket)),
      capacity_(std::move(capacity)),
      accounts_(kTenantsMax),
      clients_of_(kTenantsMax),
      tenant_pages_(kTenantsMax),
      client_pages_(kClientsMax),
      swappable_(kClientsMax),
      is_checkpointable_(kTenantsMax) {}

Result<TenantStore> TenantStore::open(MappedState state, std::string socket,
                                      std::vector<Bytes> capacity, bool opens_when_lost) {
  if (socket.size() >= sizeof regatta_tenant_page{}.socket - 4) {
    return Error{Code::kInvalidInput,
                 socket + ": is too long for the address of a socket; give a shorter path"};
  }
  TenantStore tenant_store(std::move(state), std::move(socket), std::move(capacity));
  tenant_store.opens_when_lost_ = opens_when_lost;
  REGATTA_TRY_DO(tenant_store.load_drained());
  for (int client = 0; client < kClientsMax; ++client) {
    const ClientRecord& record = tenant_store.state_->clients[client];
    if (record.live == 0) continue;
    tenant_store.clients_of_[record.tenant].push_back(client);
    tenant_store.client_of_[record.pid] = client;
    for (int device = 0; device < kDevicesMax; ++device)
      tenant_store.account(static_cast<int>(record.tenant), device).leased +=
          counted(record.leases[device]);
  }
  for (int tenant = 0; tenant < kTenantsMax; ++tenant) {
    if (tenant_store.state_->tenants[tenant].live == 0) continue;
    for (int device = 0; device < kDevicesMax; ++device)
      tenant_store.account(tenant, device).quota =
          tenant_store.state_->tenants[tenant].quota[device];
    REGATTA_TRY(page, tenant_store.make_tenant_page(tenant));
    tenant_store.tenant_pages_[tenant] = std::move(page);
  }
  tenant_store.publish_parts();
  return tenant_store;
}

std::optional<int> TenantStore::find_client(ProcessId process) const {
  const auto found = client_of_.find(process.pid);
  if (found == client_of_.end() || state_->clients[found->second].start != process.start)
    return std::nullopt;
  return found->second;
}

Result<int> TenantStore::add_client(int tenant, ProcessId process) {
  if (clients_of_[tenant].size() >= kClientsPerTenantMax) {
    return Error{Code::kExhausted, fmt::format("tenant {}: has {} processes, which is the most",
                                               tenant_name(tenant), kClientsPerTenantMax)};
  }
  int client = next_free_;
  while (client < next_free_ + kClientsMax && state_->clients[client % kClientsMax].live != 0)
    ++client;
  if (client == next_free_ + kClientsMax) {
    return Error{Code::kExhausted,
                 fmt::format("the daemon knows {} processes, which is the most", kClientsMax)};
  }
  client %= kClientsMax;
  next_free_ = (client + 1) % kClientsMax;
  ClientRecord& record = state_->clients[client];
  record = ClientRecord{};
  record.pid = process.pid;
  record.start = process.start;
  record.tenant = static_cast<std::uint32_t>(tenant);
  store(record.live, 1U);
  client_of_[process.pid] = client;
  clients_of_[tenant].push_back(client);
  if (clients_of_[tenant].size() == 1) publish_parts();
  return client;
}

void TenantStore::remove_client(int client) {
  ClientRecord& record = state_->clients[client];
  const int tenant = static_cast<int>(record.tenant);
  store(record.live, 0U);
  for (int device = 0; device < kDevicesMax; ++device) {
    unsigned long long held = counted(record.leases[device]);
    regatta_lease_reclaim(&account(tenant, device), &held);
  }
  drop_swappable(client);
  client_pages_[client] = SharedPage();
  if (const auto known = client_of_.find(record.pid);
      known != client_of_.end() && known->second == client) {
    client_of_.erase(known);
  }
  std::erase(clients_of_[tenant], client);
  publish(tenant);
  if (clients_of_[tenant].empty()) publish_parts();
}

Result<os::UniqueFd> TenantStore::create_client_page(int client) {
  REGATTA_TRY(page, SharedPage::create(REGATTA_CLIENT_PAGE_NAME, false));
  os::UniqueFd fd = page.take_fd();
  store(state_->clients[client].page_inode, page.inode());
  client_pages_[client] = std::move(page);
  return fd;
}

Status TenantStore::adopt_client_page(int client, os::UniqueFd fd) {
  ClientRecord& record = state_->clients[client];
  REGATTA_TRY(page, SharedPage::map(std::move(fd)));
  if (record.page_inode == 0 || page.inode() != record.page_inode) return no_page();
  page.take_fd();
  client_pages_[client] = std::move(page);
  for (int device = 0; device < kDevicesMax; ++device)
    settle(client, device);
  adopt_swappable(client);
  publish(static_cast<int>(record.tenant));
  return {};
}

// The counter's generation says whether the change that was written down last was made. Writing
// twice what follows from that does no harm, so a daemon may be killed here, too.
void TenantStore::settle(int client, int device) {
  ClientRecord& record = state_->clients[client];
  LeaseRecord& lease = record.leases[device];
  regatta_account& of_tenant = account(static_cast<int>(record.tenant), device);
  of_tenant.leased -= counted(lease);
  const unsigned generation = regatta_lease_word_generation(
      regatta_lease_counter_read(&client_page(client)->lease_counters[device]));
  if (generation == lease.generation) {
    store(lease.next, lease.leased);
  } else {
    store(lease.leased, lease.next);
    store(lease.generation, generation);
  }
  of_tenant.leased += lease.leased;
}

template <typename F>
std::int64_t TenantStore::change(int client, int device, F&& difference) {
  ClientRecord& record = state_->clients[client];
  LeaseRecord& lease = record.leases[device];
  regatta_lease_counter& counter = client_page(client)->lease_counters[device];
  const std::uint32_t generation = (lease.generation + 1) & 0xffffU;
  std::int64_t by = 0;
  for (bool is_made = false; !is_made;) {
    const unsigned long long word = regatta_lease_counter_read(&counter);
    const unsigned long long spare = regatta_lease_word_spare(word);
    by = difference(spare);
    if (by == 0) {
      store(lease.next, lease.leased);
      return 0;
    }
    store(lease.next, lease.leased + static_cast<std::uint64_t>(by));
    // A client that wrote nonsense into its lease counter gets nonsense; no word overflows.
    const auto now =
        std::min<unsigned long long>(spare + static_cast<std::uint64_t>(by), REGATTA_MEMORY_MAX);
    is_made = regatta_lease_counter_replace(&counter, word, generation, now) != 0;
  }
  store(lease.leased, lease.next);
  store(lease.generation, generation);
  account(static_cast<int>(record.tenant), device).leased += static_cast<std::uint64_t>(by);
  return by;
}

// Takes what is spare in the lease counters of the tenant's other clients until there is room for
// `wanted`.
void TenantStore::recall(int tenant, int device, int except, std::uint64_t wanted) {
  for (const int client : clients_of_[tenant]) {
    const std::uint64_t room = regatta_account_room(&account(tenant, device));
    const regatta_account& of_tenant = account(tenant, device);
    if (room >= wanted) return;
    if (client == except || !has_client_page(client)) continue;
    // Where the quota was lowered, there is more to come back than is wanted.
    const std::uint64_t over =
        of_tenant.leased > of_tenant.quota ? of_tenant.leased - of_tenant.quota : 0;
    const std::uint64_t lacking = wanted - room + over;
    const std::uint64_t held = state_->clients[client].leases[device].leased;
    change(client, device, [&](std::uint64_t spare) {
      return -static_cast<std::int64_t>(std::min({spare, held, lacking}));
    });
  }
}

std::uint64_t TenantStore::unswappable_bytes(int client, int device) const {
  return counted(state_->clients[client].leases[device]);
}

bool TenantStore::lease(int client, int device, std::uint64_t least) {
  if (device < 0 || device >= device_count() || least > REGATTA_MEMORY_MAX ||
      !has_client_page(client))
    return false;
  ClientRecord& record = state_->clients[client];
  const int tenant = static_cast<int>(record.tenant);
  regatta_account& of_tenant = account(tenant, device);
  if (regatta_account_room(&of_tenant) < least) recall(tenant, device, client, least);
  const std::uint64_t size = lease_size(client, device, least);
  if (size != 0) {
    change(client, device, [&](std::uint64_t) { return static_cast<std::int64_t>(size); });
  }
  publish(tenant);
  return size != 0;
}

TenantStore::Holding TenantStore::holding(int client, int device) const {
  const ClientRecord& record = state_->clients[client];
  if (!has_client_page(client)) return {counted(record.leases[device]), 0};
  const std::uint64_t leased = record.leases[device].leased;
  const std::uint64_t spare = regatta_lease_word_spare(
      regatta_lease_counter_read(&client_page(client)->lease_counters[device]));
  return {leased, std::min(leased, spare)};
}

TenantStore::Holding TenantStore::tenant_holding(int tenant, int device) const {
  Holding sum;
  for (const int client : clients_of_[tenant]) {
    const Holding one = holding(client, device);
    sum.leased += one.leased;
    sum.spare += one.spare;
  }
  return sum;
}

}  // namespace regatta::sharing
