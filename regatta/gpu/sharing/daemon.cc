#include "regatta/gpu/sharing/daemon.h"

#include <array>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fmt/core.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include "regatta/base/core/log.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/descriptors.h"
#include "regatta/base/os/errno_text.h"
#include "regatta/base/os/process.h"
#include "regatta/gpu/sharing/control.h"
#include "regatta/gpu/sharing/internal/daemon/door.h"
#include "regatta/gpu/sharing/internal/daemon/loop.h"

namespace regatta::sharing {
namespace {

constexpr std::size_t kConnectionsMax = 3 * kClientsMax;
constexpr std::uint64_t kHoldNs = 100'000'000;

}  // namespace

bool Daemon::watch(int fd, Source source, int number) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.u64 = static_cast<std::uint64_t>(source) << 32 | static_cast<std::uint32_t>(number);
  return ::epoll_ctl(epoll_.get(), EPOLL_CTL_ADD, fd, &event) == 0;
}

// Clients that an earlier daemon left: the dead are buried, the living watched, and their purses
// opened anew. Where that is not allowed they keep what they have and come back with their next
// call.
Status Daemon::adopt_clients() {
  std::size_t adopted = 0;
  for (int client = 0; client < kClientsMax; ++client) {
    const ClientRecord& record = books_.state().clients[client];
    if (record.live == 0) continue;
    if (!watch_process(client)) {
      bury(client);
      continue;
    }
    ++adopted;
    if (record.page_inode == 0) continue;
    auto page = open_memory_file_of(record.pid, REGATTA_PURSES_PAGE_NAME, record.page_inode);
    if (page) static_cast<void>(books_.adopt_purses(client, std::move(*page)).has_value());
    engines_.begin(books_, client);
  }
  // Cgroups of tenants that a reboot ended, or that an earlier daemon had no time to forget.
  REGATTA_TRY(lost, membership_.leave(
                        [&](const Group& group) { return !books_.find_tenant(group.tenant); }));
  if (lost != 0) log_info(fmt::format("gpu daemon: forgets {} cgroups", lost));
  look_at_cgroups();
  end_unheld();
  if (adopted != 0) log_info(fmt::format("gpu daemon: goes on with {} processes", adopted));
  return {};
}

// Waits for the end of the client's process; false when it has ended, or its pid is another's now.
bool Daemon::watch_process(int client) {
  const ClientRecord& record = books_.state().clients[client];
  auto pidfd = os::open_pidfd(record.pid);
  if (!pidfd) return false;
  const auto process = read_process(record.pid);
  if (!process || process->id.start != record.start || process->is_ending) return false;
  pidfds_[client] = std::move(*pidfd);
  return watch(pidfds_[client].get(), Source::kProcess, client);
}

bool Daemon::has_ended(int client) const {
  pollfd entry{pidfds_[client].get(), POLLIN, 0};
  return pidfds_[client] && ::poll(&entry, 1, 0) == 1;
}

// With it ends what it had of the device's time, whatever it was doing.
void Daemon::bury(int client) {
  const int tenant = tenant_of(client);
  if (connection_of_[client] >= 0) hang_up(connection_of_[client]);
  if (bell_of_[client] >= 0) hang_up(bell_of_[client]);
  pidfds_[client].reset();
  engines_.end(books_, client, os::monotonic_ns());
  residences_.forget_client(client);
  books_.remove_client(client);
  residences_.stir();
  end_if_unheld(tenant);
  if (books_.state().tenants[tenant].live != 0) times_.look(books_, tenant);
  if (!books_.has_clients(tenant)) times_.set_tenants(books_);
}

// A tenant ends when neither a process nor a cgroup is left of it. One that keeps a cgroup keeps
// its debts of time, too.
void Daemon::end_if_unheld(int tenant) {
  if (books_.state().tenants[tenant].live == 0 || books_.has_clients(tenant)) return;
  if (membership_.has_group(books_.tenant_name(tenant))) return;
  times_.forget(tenant);
  engines_.forget(tenant);
  residences_.forget_tenant(tenant);
  books_.remove_tenant(tenant);
}

void Daemon::end_unheld() {
  for (int tenant = 0; tenant < kTenantsMax; ++tenant)
    end_if_unheld(tenant);
  times_.set_tenants(books_);
}

// Nothing tells of the end of a cgroup in every version, so they are looked at now and then.
void Daemon::look_at_cgroups() {
  last_look_ = os::monotonic_now();
  if (membership_.drop_removed()) end_unheld();
}

// The ends that epoll has not told yet. Whether there were any.
bool Daemon::bury_dead(int tenant) {
  const std::vector<int> clients = books_.clients_of(tenant);
  bool any = false;
  for (const int client : clients) {
    if (!has_ended(client)) continue;
    bury(client);
    any = true;
  }
  return any;
}

void Daemon::accept_all() {
  for (;;) {
    os::UniqueFd fd(::accept4(door_.get(), nullptr, nullptr, SOCK_CLOEXEC | SOCK_NONBLOCK));
    if (!fd) return;
    const int number = fd.get();
    ucred peer{};
    socklen_t size = sizeof peer;
    const bool is_known = ::getsockopt(number, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0;
    if (!is_known || peer.pid <= 0 || connection_count_ >= kConnectionsMax) continue;
    if (!watch(number, Source::kConnection, number)) continue;
    const auto index = static_cast<std::size_t>(number);
    if (index >= connections_.size()) connections_.resize(index + 64);
    connections_[index] = {std::move(fd), peer};
    ++connection_count_;
  }
}

void Daemon::hang_up(int number) {
  Connection& connection = connections_[number];
  if (!connection.fd) return;
  const int client = connection.client;
  const bool is_bell = connection.is_bell;
  connection = Connection();
  --connection_count_;
  if (client < 0) return;
  (is_bell ? bell_of_ : connection_of_)[client] = -1;
  if (is_bell) times_.listen(books_, client, false);
}

void Daemon::reply(Connection& connection, const Reply& answer, std::array<int, 2> fds) {
  // One that does not read its answers is not waited for.
  if (!send_message(connection.fd.get(), as_bytes(answer), fds)) hang_up(connection.fd.get());
}

void Daemon::hear(int number) {
  Connection& connection = connections_[number];
  if (!connection.fd) return;
  auto message = receive_message(number, kLongestRequest);
  if (!message) {
    if (message.error().code != Code::kTimeout) hang_up(number);
    return;
  }
  if (message->bytes.empty()) return hang_up(number);
  // A connection is of the process that made it, not of those that inherited it.
  if (message->sender != connection.peer.pid) {
    return reply(connection, failed({Code::kInvalidInput,
                                     "this connection is another process's; "
                                     "connect anew"}));
  }
  if (message->bytes.front() == '{') return answer_operator(connection, *message);
  Request request;
  if (message->bytes.size() != sizeof request) return hang_up(number);
  std::memcpy(&request, message->bytes.data(), sizeof request);
  if (request.ask == Ask::kHello) return answer_hello(connection, request, *message);
  if (request.ask == Ask::kPlace) return answer_place(connection);
  if (request.ask == Ask::kLease || request.ask == Ask::kMovable || request.ask == Ask::kSession ||
      request.ask == Ask::kBind)
    return answer_client(connection, request);
  if (request.ask == Ask::kMoved && connection.client >= 0) return residences_.stir();
  if (request.ask == Ask::kBell) return answer_bell(connection, request);
  if (request.ask == Ask::kRing && connection.is_bell)
    return times_.look(books_, tenant_of(connection.client));
  hang_up(number);
}

Status Daemon::run(const std::atomic<bool>& stop) {
  if (!watch(door_.get(), Source::kDoor, 0) || !watch(times_.timer(), Source::kTimer, 0) ||
      !watch(engines_.timer(), Source::kEngines, 0) ||
      !watch(residences_.timer(), Source::kResidences, 0))
    return os::errno_error("cannot wait for clients");
  std::array<epoll_event, 64> events{};
  while (!stop) {
    const int count = ::epoll_wait(epoll_.get(), events.data(), events.size(), 500);
    if (count < 0 && errno != EINTR) return os::errno_error("cannot wait for clients");
    if (os::monotonic_now() - last_look_ >= Seconds{0.5}) look_at_cgroups();
    for (int i = 0; i < count; ++i) {
      const auto number = static_cast<int>(events[i].data.u64 & 0xffffffffU);
      switch (static_cast<Source>(events[i].data.u64 >> 32)) {
        case Source::kDoor:
          accept_all();
          break;
        case Source::kConnection:
          hear(number);
          break;
        case Source::kProcess:
          if (has_ended(number)) bury(number);
          break;
        case Source::kTimer:
          times_.acknowledge_timer();
          break;
        case Source::kEngines:
          engines_.acknowledge_timer();
          engines_.step(books_, os::monotonic_ns());
          break;
        case Source::kResidences:
          residences_.acknowledge_timer();
          break;
      }
    }
    residences_.step(books_, times_);
    times_.step(books_);
  }
  return {};
}

Status serve(const DaemonOptions& options, const std::atomic<bool>& stop) {
  if (options.gpus.size() > kDevicesMax) {
    return Error{
        Code::kInvalidInput,
        fmt::format("--gpu: is given {} times, and a daemon has {} GPUs at most; leave the "
                    "others out",
                    options.gpus.size(), kDevicesMax)};
  }
  if (const auto allowed = os::allow_descriptors(4 * kClientsMax); !allowed)
    log_warning("gpu daemon: " + allowed.error().message);  // fewer clients than it could have
  REGATTA_TRY(state, State::open(options.state));
  std::error_code error;  // a process of a tenant may be in another folder
  const std::string socket = std::filesystem::absolute(options.socket, error).string();
  if (error) return os::errno_error(options.socket, error.value());
  REGATTA_TRY(books, Books::open(std::move(state), socket, options.gpus, options.opens_when_lost));
  books.set_host_memory(options.host_memory);
  REGATTA_TRY(membership, Membership::open(options.state));
  if (options.policy) REGATTA_TRY_DO(books.set_policy(*options.policy));
  bool has_clients = false;
  for (const ClientRecord& client : books.state().clients)
    has_clients = has_clients || client.live != 0;
  os::UniqueFd epoll(::epoll_create1(EPOLL_CLOEXEC));
  if (!epoll) return os::errno_error("cannot wait for clients");
  REGATTA_TRY(door, open_door(socket));
  // Those who were told by the daemon before that it is their turn come back within this time.
  REGATTA_TRY(times, Timekeeper::create(books, options.dispatch, has_clients ? kHoldNs : 0));
  REGATTA_TRY(engines, Engines::create(books, options.engine_rates, options.engine_sessions));
  REGATTA_TRY(residences, Residences::create(books, options.residences));
  Daemon daemon(std::move(books), std::move(membership), std::move(times), std::move(engines),
                std::move(residences), std::move(epoll), std::move(door));
  REGATTA_TRY_DO(daemon.adopt_clients());
  const Status status = daemon.run(stop);
  ::unlink(socket.c_str());
  return status;
}

}  // namespace regatta::sharing
