#include "regatta/gpu/sharing/internal/daemon/books.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

#include "regatta/base/os/errno_text.h"

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

Books::Books(State state, std::string socket, std::vector<Bytes> capacity)
    : state_(std::move(state)),
      socket_(std::move(socket)),
      capacity_(std::move(capacity)),
      accounts_(kTenantsMax),
      clients_of_(kTenantsMax),
      tenant_pages_(kTenantsMax),
      purses_(kClientsMax),
      movable_(kClientsMax),
      leaves_(kTenantsMax) {}

Result<Books> Books::open(State state, std::string socket, std::vector<Bytes> capacity,
                          bool opens_when_lost) {
  if (socket.size() >= sizeof regatta_tenant_page{}.socket - 4) {
    return Error{Code::kInvalidInput,
                 socket + ": is too long for the address of a socket; give a shorter path"};
  }
  Books books(std::move(state), std::move(socket), std::move(capacity));
  books.opens_when_lost_ = opens_when_lost;
  REGATTA_TRY_DO(books.load_drained());
  for (int client = 0; client < kClientsMax; ++client) {
    const ClientRecord& record = books.state_->clients[client];
    if (record.live == 0) continue;
    books.clients_of_[record.tenant].push_back(client);
    books.client_of_[record.pid] = client;
    for (int device = 0; device < kDevicesMax; ++device)
      books.account(static_cast<int>(record.tenant), device).leased +=
          counted(record.leases[device]);
  }
  for (int tenant = 0; tenant < kTenantsMax; ++tenant) {
    if (books.state_->tenants[tenant].live == 0) continue;
    for (int device = 0; device < kDevicesMax; ++device)
      books.account(tenant, device).quota = books.state_->tenants[tenant].quota[device];
    REGATTA_TRY(page, books.make_tenant_page(tenant));
    books.tenant_pages_[tenant] = std::move(page);
  }
  books.publish_parts();
  return books;
}

std::optional<int> Books::find_client(ProcessId process) const {
  const auto found = client_of_.find(process.pid);
  if (found == client_of_.end() || state_->clients[found->second].start != process.start)
    return std::nullopt;
  return found->second;
}

Result<int> Books::add_client(int tenant, ProcessId process) {
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

void Books::remove_client(int client) {
  ClientRecord& record = state_->clients[client];
  const int tenant = static_cast<int>(record.tenant);
  store(record.live, 0U);
  for (int device = 0; device < kDevicesMax; ++device) {
    unsigned long long held = counted(record.leases[device]);
    regatta_lease_reclaim(&account(tenant, device), &held);
  }
  drop_movable(client);
  purses_[client] = Page();
  if (const auto known = client_of_.find(record.pid);
      known != client_of_.end() && known->second == client) {
    client_of_.erase(known);
  }
  std::erase(clients_of_[tenant], client);
  publish(tenant);
  if (clients_of_[tenant].empty()) publish_parts();
}

Result<os::UniqueFd> Books::make_purses(int client) {
  REGATTA_TRY(page, Page::create(REGATTA_PURSES_PAGE_NAME, false));
  os::UniqueFd fd = page.take_fd();
  store(state_->clients[client].page_inode, page.inode());
  purses_[client] = std::move(page);
  return fd;
}

Status Books::adopt_purses(int client, os::UniqueFd fd) {
  ClientRecord& record = state_->clients[client];
  REGATTA_TRY(page, Page::map(std::move(fd)));
  if (record.page_inode == 0 || page.inode() != record.page_inode) return no_page();
  page.take_fd();
  purses_[client] = std::move(page);
  for (int device = 0; device < kDevicesMax; ++device)
    settle(client, device);
  adopt_movable(client);
  publish(static_cast<int>(record.tenant));
  return {};
}

// The purse's turn says whether the change that was written down last was made. Writing twice what
// follows from that does no harm, so a daemon may be killed here, too.
void Books::settle(int client, int device) {
  ClientRecord& record = state_->clients[client];
  LeaseRecord& lease = record.leases[device];
  regatta_account& of_tenant = account(static_cast<int>(record.tenant), device);
  of_tenant.leased -= counted(lease);
  const unsigned turn = regatta_word_turn(regatta_purse_read(&purses(client)->purses[device]));
  if (turn == lease.turn) {
    store(lease.next, lease.leased);
  } else {
    store(lease.leased, lease.next);
    store(lease.turn, turn);
  }
  of_tenant.leased += lease.leased;
}

template <typename F>
std::int64_t Books::change(int client, int device, F&& difference) {
  ClientRecord& record = state_->clients[client];
  LeaseRecord& lease = record.leases[device];
  regatta_purse& purse = purses(client)->purses[device];
  const std::uint32_t turn = (lease.turn + 1) & 0xffffU;
  std::int64_t by = 0;
  for (bool is_made = false; !is_made;) {
    const unsigned long long word = regatta_purse_read(&purse);
    const unsigned long long spare = regatta_word_spare(word);
    by = difference(spare);
    if (by == 0) {
      store(lease.next, lease.leased);
      return 0;
    }
    store(lease.next, lease.leased + static_cast<std::uint64_t>(by));
    // A client that wrote nonsense into its purse gets nonsense; no word overflows.
    const auto now =
        std::min<unsigned long long>(spare + static_cast<std::uint64_t>(by), REGATTA_MEMORY_MAX);
    is_made = regatta_purse_replace(&purse, word, turn, now) != 0;
  }
  store(lease.leased, lease.next);
  store(lease.turn, turn);
  account(static_cast<int>(record.tenant), device).leased += static_cast<std::uint64_t>(by);
  return by;
}

// Takes what is spare in the purses of the tenant's other clients until there is room for `wanted`.
void Books::recall(int tenant, int device, int except, std::uint64_t wanted) {
  for (const int client : clients_of_[tenant]) {
    const std::uint64_t room = regatta_account_room(&account(tenant, device));
    const regatta_account& of_tenant = account(tenant, device);
    if (room >= wanted) return;
    if (client == except || !has_purses(client)) continue;
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

std::uint64_t Books::stays(int client, int device) const {
  return counted(state_->clients[client].leases[device]);
}

bool Books::lease(int client, int device, std::uint64_t least) {
  if (device < 0 || device >= device_count() || least > REGATTA_MEMORY_MAX || !has_purses(client))
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

Books::Holding Books::holding(int client, int device) const {
  const ClientRecord& record = state_->clients[client];
  if (!has_purses(client)) return {counted(record.leases[device]), 0};
  const std::uint64_t leased = record.leases[device].leased;
  const std::uint64_t spare =
      regatta_word_spare(regatta_purse_read(&purses(client)->purses[device]));
  return {leased, std::min(leased, spare)};
}

Books::Holding Books::tenant_holding(int tenant, int device) const {
  Holding sum;
  for (const int client : clients_of_[tenant]) {
    const Holding one = holding(client, device);
    sum.leased += one.leased;
    sum.spare += one.spare;
  }
  return sum;
}

}  // namespace regatta::sharing
