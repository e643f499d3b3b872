#include "regatta/gpu/sharing/internal/daemon/client_table.h"

#include <algorithm>
#include <utility>

#include <fmt/core.h>

namespace regatta::sharing {

ClientTable::ClientTable(StateFile& state)
    : state_(&state), of_tenant_(kTenantsMax), pages_(kClientsMax) {
  for (int client = 0; client < kClientsMax; ++client) {
    const ClientRecord& record = state_->clients[client];
    if (record.live == 0) continue;
    at(of_tenant_, record.tenant).push_back(client);
    of_pid_[record.pid] = client;
  }
}

std::optional<int> ClientTable::find(ProcessId process) const {
  const auto found = find(process.pid);
  return found && state_->clients[*found].start == process.start ? found : std::nullopt;
}

std::optional<int> ClientTable::find(pid_t pid) const {
  const auto found = of_pid_.find(pid);
  if (found == of_pid_.end()) return std::nullopt;
  return found->second;
}

Result<int> ClientTable::add(int tenant, ProcessId process) {
  if (of_tenant(tenant).size() >= kClientsPerTenantMax) {
    return Error{Code::kExhausted, fmt::format("tenant {}: has {} processes, which is the most",
                                               state_->tenants[tenant].name, kClientsPerTenantMax)};
  }
  int client = next_free_;
  while (client < next_free_ + kClientsMax && state_->clients[client % kClientsMax].live != 0)
    ++client;
  if (client == next_free_ + kClientsMax) {
    return Error{Code::kExhausted,
                 fmt::format("the daemon has {} clients, which is the most", kClientsMax)};
  }
  client %= kClientsMax;
  next_free_ = (client + 1) % kClientsMax;
  ClientRecord& record = state_->clients[client];
  record = ClientRecord{};
  record.pid = process.pid;
  record.start = process.start;
  record.tenant = static_cast<std::uint32_t>(tenant);
  store(record.live, 1U);
  of_pid_[process.pid] = client;
  at(of_tenant_, tenant).push_back(client);
  return client;
}

void ClientTable::remove(int client) {
  ClientRecord& record = state_->clients[client];
  store(record.live, 0U);
  at(pages_, client) = SharedPage();
  const auto known = of_pid_.find(record.pid);
  if (known != of_pid_.end() && known->second == client) of_pid_.erase(known);
  std::erase(at(of_tenant_, record.tenant), client);
}

Result<os::UniqueFd> ClientTable::create_page(int client) {
  REGATTA_TRY(made, SharedPage::create(REGATTA_CLIENT_PAGE_NAME, false));
  os::UniqueFd fd = made.release_fd();
  store(state_->clients[client].page_inode, made.inode());
  at(pages_, client) = std::move(made);
  return fd;
}

Status ClientTable::adopt_page(int client, os::UniqueFd fd) {
  const std::uint64_t inode = state_->clients[client].page_inode;
  REGATTA_TRY(mapped, SharedPage::map(std::move(fd)));
  if (inode == 0 || mapped.inode() != inode)
    return Error{Code::kConflict, "the page is not the one that this client was given"};
  mapped.release_fd();
  at(pages_, client) = std::move(mapped);
  return {};
}

Result<os::UniqueFd> open_client_page_of(const ProcessStat& process, std::uint64_t inode) {
  auto page = open_memory_file_of(process, REGATTA_CLIENT_PAGE_NAME, inode);
  if (page || page.error().code != Code::kNotFound) return page;
  return open_memory_file_of(process, REGATTA_CLIENT_PAGE_OLD_NAME, inode);
}

}  // namespace regatta::sharing
