#include "regatta/vgpu/daemon/daemon.h"

#include <array>
#include <cstring>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "regatta/core/log.h"
#include "regatta/os/clock.h"
#include "regatta/os/descriptors.h"
#include "regatta/os/errno_text.h"
#include "regatta/os/process.h"
#include "regatta/vgpu/client/messages.h"
#include "regatta/vgpu/daemon/books.h"
#include "regatta/vgpu/daemon/control.h"
#include "regatta/vgpu/daemon/door.h"
#include "regatta/vgpu/daemon/engines.h"
#include "regatta/vgpu/daemon/membership.h"
#include "regatta/vgpu/daemon/peer.h"
#include "regatta/vgpu/daemon/process_id.h"
#include "regatta/vgpu/daemon/residences.h"
#include "regatta/vgpu/daemon/timekeeper.h"

namespace regatta::vgpu {
namespace {

constexpr std::size_t kConnectionsMax = 3 * kClientsMax;
constexpr std::uint64_t kHoldNs = 100'000'000;

struct Connection {
  os::UniqueFd fd;
  ucred peer{};
  int client = -1;  // after its hello
  bool is_bell = false;
};

class Daemon {
 public:
  Daemon(Books books, Membership membership, Timekeeper times, Engines engines,
         Residences residences, os::UniqueFd epoll, os::UniqueFd door)
      : books_(std::move(books)),
        membership_(std::move(membership)),
        times_(std::move(times)),
        engines_(std::move(engines)),
        residences_(std::move(residences)),
        epoll_(std::move(epoll)),
        door_(std::move(door)),
        pidfds_(kClientsMax),
        connection_of_(kClientsMax, -1),
        bell_of_(kClientsMax, -1) {}

  Status adopt_clients();
  Status run(const std::atomic<bool>& stop);

 private:
  enum class Source : std::uint32_t { kDoor, kConnection, kProcess, kTimer, kEngines, kResidences };

  bool watch(int fd, Source source, int number);
  void accept_all();
  void hear(int number);
  void hang_up(int number);
  bool watch_process(int client);
  bool has_ended(int client) const;
  void bury(int client);
  bool bury_dead(int tenant);
  void end_if_unheld(int tenant);
  void end_unheld();
  void look_at_cgroups();
  Result<int> client_for_hello(const Request& request, ProcessId process, bool has_page);
  void answer_place(Connection& connection);
  void answer_hello(Connection& connection, const Request& request, Message& message);
  void answer_lease(Connection& connection, const Request& request);
  void answer_movable(Connection& connection, const Request& request);
  void answer_session(Connection& connection, const Request& request);
  void answer_bell(Connection& connection, const Request& request);
  void answer_operator(Connection& connection, const Message& message);
  int tenant_of(int client) const {
    return static_cast<int>(books_.state().clients[client].tenant);
  }
  void reply(Connection& connection, const Reply& answer, std::array<int, 2> fds = {-1, -1});

  Books books_;
  Membership membership_;
  Timekeeper times_;
  Engines engines_;
  Residences residences_;
  os::UniqueFd epoll_;
  os::UniqueFd door_;
  std::vector<os::UniqueFd> pidfds_;     // of each client
  std::vector<int> connection_of_;       // of each client, -1: none
  std::vector<int> bell_of_;             // likewise
  std::vector<Connection> connections_;  // by descriptor
  std::size_t connection_count_ = 0;
  Seconds last_look_{0.0};  // at the cgroups
};

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
  engines_.end(books_, client, now_ns());
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
  if (request.ask == Ask::kLease) return answer_lease(connection, request);
  if (request.ask == Ask::kPlace) return answer_place(connection);
  if (request.ask == Ask::kMovable) return answer_movable(connection, request);
  if (request.ask == Ask::kSession) return answer_session(connection, request);
  if (request.ask == Ask::kMoved && connection.client >= 0) return residences_.stir();
  if (request.ask == Ask::kBell) return answer_bell(connection, request);
  if (request.ask == Ask::kRing && connection.is_bell)
    return times_.look(books_, tenant_of(connection.client));
  hang_up(number);
}

// The client that says hello: one that is known, or a new one.
Result<int> Daemon::client_for_hello(const Request& request, ProcessId process, bool has_page) {
  const auto tenant = books_.find_tenant_of(request.token);
  if (!tenant) {
    return Error{Code::kNotFound,
                 "process " + std::to_string(process.pid) +
                     ": belongs to no tenant of now; start it with regatta gpu run"};
  }
  const auto own = membership_.tenant_of(process.pid);
  if (own && *own != books_.tenant_name(*tenant)) {
    return Error{Code::kInvalidInput, "process " + std::to_string(process.pid) +
                                          ": its cgroup is of tenant " + *own +
                                          ", and it asks as another one"};
  }
  if (const auto known = books_.find_client(process)) {
    const ClientRecord& record = books_.state().clients[*known];
    if (static_cast<int>(record.tenant) != *tenant) {
      return Error{Code::kInvalidInput,
                   "process " + std::to_string(process.pid) + ": belongs to tenant " +
                       books_.tenant_name(static_cast<int>(record.tenant)) + " already"};
    }
    if (has_page || record.page_inode == 0) return *known;
    if (has_mapped(process.pid, REGATTA_PURSES_PAGE_NAME, record.page_inode)) {
      return Error{Code::kConflict, "process " + std::to_string(process.pid) +
                                        ": is a client already; a process has one account"};
    }
    // After exec(): what it had is gone with the program that had it.
    os::UniqueFd pidfd = std::move(pidfds_[*known]);
    if (connection_of_[*known] >= 0) hang_up(connection_of_[*known]);
    if (bell_of_[*known] >= 0) hang_up(bell_of_[*known]);
    engines_.end(books_, *known, now_ns());
    books_.remove_client(*known);
  }
  const bool was_absent = !books_.has_clients(*tenant);
  REGATTA_TRY(client, books_.add_client(*tenant, process));
  if (was_absent) times_.set_tenants(books_);
  if (watch_process(client)) return client;
  bury(client);
  return Error{Code::kNotFound, "process " + std::to_string(process.pid) + ": is gone"};
}

// The page of the tenant that the process belongs to by its cgroup.
void Daemon::answer_place(Connection& connection) {
  const auto peer = read_peer(connection.fd.get(), connection.peer.pid);
  if (!peer) return reply(connection, failed(peer.error()));
  const auto name = membership_.tenant_of(peer->cgroups);
  const auto tenant = name ? books_.find_tenant(*name) : std::nullopt;
  if (tenant) return reply(connection, Reply(), {books_.tenant_page(*tenant), -1});
  return reply(connection,
               failed({Code::kNotFound,
                       "process " + std::to_string(connection.peer.pid) +
                           ": its cgroup belongs to no tenant; start it with regatta gpu run, or "
                           "give its cgroup to a tenant with regatta gpu enroll"}));
}

void Daemon::answer_hello(Connection& connection, const Request& request, Message& message) {
  if (connection.client >= 0) return hang_up(connection.fd.get());  // once is enough
  const auto process = read_process(connection.peer.pid);
  if (!process) return reply(connection, failed(process.error()));
  const bool has_page = static_cast<bool>(message.fds[0]);
  const auto client = client_for_hello(request, process->id, has_page);
  if (!client) return reply(connection, failed(client.error()));
  os::UniqueFd purses;
  Status status;
  const bool had_purses = books_.has_purses(*client);
  if (has_page && !had_purses) {
    status = books_.adopt_purses(*client, std::move(message.fds[0]));
  } else if (!has_page) {
    auto made = books_.make_purses(*client);
    if (made) purses = std::move(*made);
    if (!made) status = made.error();
  }
  if (!status) return reply(connection, failed(status.error()));
  if (!had_purses) engines_.begin(books_, *client);
  const int number = connection.fd.get();
  if (connection_of_[*client] >= 0 && connection_of_[*client] != number)
    hang_up(connection_of_[*client]);
  connection_of_[*client] = number;
  connection.client = *client;
  residences_.stir();
  const int tenant = static_cast<int>(books_.state().clients[*client].tenant);
  reply(connection, Reply(), {books_.tenant_page(tenant), purses.get()});
}

void Daemon::answer_bell(Connection& connection, const Request& request) {
  if (connection.client >= 0) return hang_up(connection.fd.get());
  const auto process = read_process(connection.peer.pid);
  const auto client = process ? books_.find_client(process->id) : std::nullopt;
  if (!client || !books_.has_purses(*client) ||
      books_.find_tenant_of(request.token) != tenant_of(*client)) {
    return reply(connection, failed({Code::kInvalidInput, "a client says hello first"}));
  }
  if (bell_of_[*client] >= 0) hang_up(bell_of_[*client]);
  const int number = connection.fd.get();
  connection.client = *client;
  connection.is_bell = true;
  bell_of_[*client] = number;
  times_.listen(books_, *client, true);
  reply(connection, Reply());
}

void Daemon::answer_lease(Connection& connection, const Request& request) {
  if (connection.client < 0 || connection.is_bell)
    return reply(connection, failed({Code::kInvalidInput, "a client says hello first"}));
  const int client = connection.client;
  const int device = request.device < kDevicesMax ? static_cast<int>(request.device) : -1;
  if (device >= 0 && books_.is_drained(device))
    return reply(connection, failed(Books::drained_error(device)));
  const int tenant = static_cast<int>(books_.state().clients[client].tenant);
  if (device >= 0 && device < books_.device_count()) {
    const auto room = residences_.room_for(books_, tenant, device, request.least);
    if (room == Residences::Room::kLater) return reply(connection, {.answer = Answer::kLater});
    if (room == Residences::Room::kNever) return reply(connection, {.answer = Answer::kRefused});
  }
  bool is_granted = books_.lease(client, device, request.least);
  if (!is_granted && bury_dead(tenant) && connection.client >= 0)
    is_granted = books_.lease(client, device, request.least);
  if (!connection.fd) return;  // it was this one that had died
  Reply answer;
  if (!is_granted) answer.answer = Answer::kRefused;
  reply(connection, answer);
}

// What the client may have on the device stands in its page before the answer comes.
void Daemon::answer_movable(Connection& connection, const Request& request) {
  if (connection.client < 0 || connection.is_bell)
    return reply(connection, failed({Code::kInvalidInput, "a client says hello first"}));
  const int client = connection.client;
  const int device = request.device < kDevicesMax ? static_cast<int>(request.device) : -1;
  const bool is_more = device >= 0 && request.least > books_.movable(client, device);
  if (is_more && books_.is_drained(device))
    return reply(connection, failed(Books::drained_error(device)));
  bool is_granted = books_.set_movable(client, device, request.least);
  if (!is_granted && bury_dead(tenant_of(client)) && connection.client >= 0)
    is_granted = books_.set_movable(client, device, request.least);
  if (!connection.fd) return;  // it was this one that had died
  residences_.stir();
  residences_.step(books_, times_);
  reply(connection, {.answer = is_granted ? Answer::kDone : Answer::kRefused});
}

void Daemon::answer_session(Connection& connection, const Request& request) {
  if (connection.client < 0 || connection.is_bell)
    return reply(connection, failed({Code::kInvalidInput, "a client says hello first"}));
  const int client = connection.client;
  const bool is_known = request.least == REGATTA_ENCODE || request.least == REGATTA_DECODE;
  if (request.device >= static_cast<unsigned>(books_.device_count()) || !is_known)
    return reply(connection, {.answer = Answer::kRefused});
  const auto device = static_cast<int>(request.device);
  if (books_.is_drained(device)) return reply(connection, failed(Books::drained_error(device)));
  const auto engine = static_cast<regatta_engine>(request.least);
  bool is_open = engines_.open_session(books_, client, device, engine);
  if (!is_open && bury_dead(tenant_of(client)) && connection.client >= 0)
    is_open = engines_.open_session(books_, client, device, engine);
  if (!connection.fd) return;  // it was this one that had died
  reply(connection, {.answer = is_open ? Answer::kDone : Answer::kRefused});
}

void Daemon::answer_operator(Connection& connection, const Message& message) {
  if (const auto allowed =
          check_operator(books_, membership_, connection.peer.pid, connection.peer.uid);
      !allowed) {
    return reply(connection, failed(allowed.error()));
  }
  const auto process = read_process(connection.peer.pid);
  if (!process) return reply(connection, failed(process.error()));
  times_.look(books_);  // for what is shown
  engines_.step(books_, now_ns());
  const auto answer =
      answer_control({books_, membership_, times_, engines_}, message.bytes, process->id);
  end_unheld();
  residences_.stir();
  if (!answer) return reply(connection, failed(answer.error()));
  int page = -1;
  if (answer->tenant >= 0) {
    const auto client = books_.find_client(process->id);
    if (!client || !watch_process(*client)) {
      if (client) bury(*client);
      return;
    }
    page = books_.tenant_page(answer->tenant);
  }
  // Text of any length goes in a memory file.
  const os::UniqueFd text(::memfd_create("regatta-gpu-answer", MFD_CLOEXEC));
  const auto size = static_cast<ssize_t>(answer->text.size());
  if (!text || ::write(text.get(), answer->text.data(), answer->text.size()) != size)
    return reply(connection, failed(os::errno_error("cannot write the answer")));
  reply(connection, Reply(), {text.get(), page});
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
          engines_.step(books_, now_ns());
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

}  // namespace

Status serve(const DaemonOptions& options, const std::atomic<bool>& stop) {
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

}  // namespace regatta::vgpu
