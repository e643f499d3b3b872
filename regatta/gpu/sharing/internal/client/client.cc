#include "regatta/gpu/sharing/internal/client/client.h"

#include <algorithm>
#include <cstring>
#include <memory>
#include <string>

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/gpu/sharing/internal/client/tenant_page.h"

namespace regatta::sharing {
namespace {

constexpr Seconds kRetry{0.001};
// So long the others are waited for that make room: every stay ends sooner, and so does the queue.
constexpr Seconds kRoomPatience{7200.0};
constexpr Seconds kRetryMost{0.02};

// Maps a page at `where`, in place of what is there, or at any address.
Result<void*> map_shared(int fd, int protection, void* where) {
  void* memory = ::mmap(where, REGATTA_PAGE_SIZE, protection,
                        MAP_SHARED | (where != nullptr ? MAP_FIXED : 0), fd, 0);
  if (memory == MAP_FAILED) return os::errno_error("cannot map a page of regatta gpu daemon");
  return memory;
}

Result<ClientReply> read_reply(const DaemonMessage& message) {
  ClientReply reply;
  if (message.bytes.size() != sizeof reply)
    return Error{Code::kUnavailable, "the daemon went away"};
  std::memcpy(&reply, message.bytes.data(), sizeof reply);
  return reply;
}

Error was_forked() {
  return {Code::kConflict, "process " + std::to_string(::getpid()) +
                               ": was forked from a client of the daemon; connect anew"};
}

// Others make room meanwhile, or this process itself, which may need what is locked.
void wait_unlocked(std::unique_lock<std::mutex>& lock, Seconds& pause) {
  lock.unlock();
  os::sleep_for(pause);
  pause = std::min(Seconds{2 * pause.value}, kRetryMost);
  lock.lock();
}

// Whether the daemon may be gone, and another one may come.
bool is_lost(const Error& error) {
  return error.code == Code::kUnavailable || error.code == Code::kTimeout;
}

Result<os::UniqueFd> ask_for_place_once(const std::string& path, Seconds timeout) {
  REGATTA_TRY(socket, connect_to_daemon(path, timeout));
  const ClientRequest request{.type = RequestType::kFindTenant};
  REGATTA_TRY_DO(send_message(socket.get(), as_bytes(request)));
  REGATTA_TRY(message, receive_message(socket.get(), sizeof(ClientReply)));
  REGATTA_TRY(reply, read_reply(message));
  if (reply.status != ReplyStatus::kGranted) return to_error(reply);
  if (!message.fds[0]) return Error{Code::kUnavailable, path + ": the daemon gave no page"};
  return std::move(message.fds[0]);
}

// The page of the tenant whose cgroup this process is in.
Result<os::UniqueFd> ask_for_place(const std::string& path, Seconds timeout) {
  const Seconds end = os::monotonic_now() + timeout;
  for (;;) {
    auto page = ask_for_place_once(path, timeout);
    if (page || !is_lost(page.error()) || os::monotonic_now() > end) return page;
    os::sleep_for(kRetry);
  }
}

}  // namespace

Result<std::unique_ptr<Client>> Client::connect(Seconds timeout) {
  const auto page = find_tenant_page();
  if (page) return connect(*page, timeout);
  // Where no daemon ever was, nobody waits for one.
  const std::string socket = kDefaultSocket;
  const std::string folder = socket.substr(0, socket.rfind('/'));
  if (::access(folder.c_str(), X_OK) != 0) return page.error();
  return connect_by_cgroup(kDefaultSocket, timeout);
}

Result<std::unique_ptr<Client>> Client::connect_by_cgroup(const std::string& socket,
                                                          Seconds timeout) {
  REGATTA_TRY(page, ask_for_place(socket, timeout));
  return connect_to(socket, page.get(), timeout);
}

Result<std::unique_ptr<Client>> Client::connect(int tenant_page, Seconds timeout) {
  return connect_to("", tenant_page, timeout);
}

Result<std::unique_ptr<Client>> Client::connect_to(const std::string& socket, int tenant_page,
                                                   Seconds timeout) {
  std::unique_ptr<Client> client(new Client(timeout));
  client->path_ = socket;
  REGATTA_TRY_DO(client->open_pages(tenant_page));
  REGATTA_TRY_DO(client->reserve_slowly(0, 0));
  return client;
}

Client::~Client() {
  if (tenant_ != nullptr) ::munmap(tenant_, REGATTA_PAGE_SIZE);
  if (client_page_ != nullptr) ::munmap(client_page_, REGATTA_PAGE_SIZE);
  if (fork_marker_ != nullptr) ::munmap(const_cast<unsigned*>(fork_marker_), REGATTA_PAGE_SIZE);
}

Error Client::no_device(int device) {
  return {Code::kInvalidInput, "GPU " + std::to_string(device) + ": there is none of this number"};
}

Status Client::open_pages(int tenant_page) {
  REGATTA_TRY(page, map_shared(tenant_page, PROT_READ, nullptr));
  tenant_ = static_cast<regatta_tenant_page*>(page);
  if (tenant_->magic != REGATTA_TENANT_MAGIC || tenant_->version != REGATTA_TENANT_VERSION) {
    return Error{Code::kInvalidInput,
                 "the tenant's page is of another version; start the program again"};
  }
  // In a container the daemon's socket has another path than the page tells.
  if (path_.empty())
    path_.assign(tenant_->socket, ::strnlen(tenant_->socket, sizeof tenant_->socket));
  void* mark = ::mmap(nullptr, REGATTA_PAGE_SIZE, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (mark == MAP_FAILED) return os::errno_error("cannot map a page");
  fork_marker_ = static_cast<unsigned*>(mark);
  if (::madvise(mark, REGATTA_PAGE_SIZE, MADV_WIPEONFORK) != 0)
    return os::errno_error("cannot mark a page");
  *fork_marker_ = 1;
  return {};
}

// The pages that came with the answer to a hello: the tenant's, and lease counters where there were
// none.
Status Client::accept_pages(DaemonMessage& message) {
  if (message.fds[0]) {
    const auto page = map_shared(message.fds[0].get(), PROT_READ, tenant_);
    if (!page) return page.error();
  }
  if (message.fds[1]) {
    REGATTA_TRY(page, map_shared(message.fds[1].get(), PROT_READ | PROT_WRITE, client_page_));
    client_page_ = static_cast<regatta_client_page*>(page);
    client_page_fd_ = std::move(message.fds[1]);
  }
  if (client_page_ == nullptr)
    return Error{Code::kUnavailable, "the daemon gave no lease counters"};
  return {};
}

Result<os::UniqueFd> Client::open_event_connection() {
  if (!is_joined_process()) return was_forked();
  const std::scoped_lock lock(mutex_);
  socket_.reset();
  REGATTA_TRY_DO(handshake());
  REGATTA_TRY(event_connection, connect_to_daemon(path_, timeout_));
  ClientRequest request{.type = RequestType::kEventConnection};
  std::memcpy(request.token, tenant_->token, sizeof request.token);
  REGATTA_TRY_DO(send_message(event_connection.get(), as_bytes(request)));
  REGATTA_TRY(message, receive_message(event_connection.get(), sizeof(ClientReply)));
  REGATTA_TRY(reply, read_reply(message));
  if (reply.status != ReplyStatus::kGranted) return to_error(reply);
  return event_connection;
}

Status Client::handshake(Seconds timeout) {
  REGATTA_TRY(socket, connect_to_daemon(path_, timeout));
  ClientRequest request{.type = RequestType::kHandshake};
  std::memcpy(request.token, tenant_->token, sizeof request.token);
  REGATTA_TRY_DO(send_message(socket.get(), as_bytes(request), {client_page_fd_.get(), -1}));
  REGATTA_TRY(message, receive_message(socket.get(), sizeof(ClientReply)));
  REGATTA_TRY(reply, read_reply(message));
  if (reply.status != ReplyStatus::kGranted) return to_error(reply);
  REGATTA_TRY_DO(accept_pages(message));
  socket_ = std::move(socket);
  return {};
}

// kExhausted: refused, or to be asked again later. kUnavailable, kTimeout: no answer, and it is not
// known whether there was one.
Status Client::ask_for(const ClientRequest& request, bool* is_later) {
  REGATTA_TRY_DO(send_message(socket_.get(), as_bytes(request)));
  REGATTA_TRY(message, receive_message(socket_.get(), sizeof(ClientReply)));
  REGATTA_TRY(reply, read_reply(message));
  if (reply.status == ReplyStatus::kGranted) return {};
  if (reply.status == ReplyStatus::kFailed) return to_error(reply);
  if (reply.status == ReplyStatus::kRetryLater && is_later != nullptr) *is_later = true;
  return refused(request);
}

Error Client::refused(const ClientRequest& request) const {
  std::string why = "its memory on GPU " + std::to_string(request.device) +
                    " is used up; free some or raise its --memory";
  if (request.type == RequestType::kOpenSession)
    why = "its sessions of the codec are all open; close one";
  if (request.type == RequestType::kPin) {
    why =
        "shared and managed memory would keep this process on its GPU, and others would have no "
        "room beside it; take less memory, or let the others have less";
  }
  return {Code::kExhausted, std::string("tenant ") + tenant_->name + ": " + why};
}

Status Client::ask_until_answered(const ClientRequest& request) {
  if (!is_joined_process()) return was_forked();
  std::unique_lock lock(mutex_);
  const Seconds begin = os::monotonic_now();
  Seconds end = begin + timeout_;
  Seconds pause = kRetry;
  for (;;) {
    Status status;
    bool is_later = false;
    if (!socket_) status = handshake();
    if (status) status = ask_for(request, &is_later);
    if (is_later && os::monotonic_now() < begin + kRoomPatience) {
      wait_unlocked(lock, pause);
      end = os::monotonic_now() + timeout_;
      continue;
    }
    if (status || !is_lost(status.error())) return status;
    socket_.reset();
    if (os::monotonic_now() > end) return status;
    os::sleep_for(kRetry);
  }
}

Status Client::reserve_slowly(int device, std::uint64_t bytes) {
  return reserve_slowly(device, bytes, timeout_, kRoomPatience);
}

// Takes it from the lease counter, or has the daemon put there what is lacking: false, to be taken
// then.
Result<bool> Client::take_or_lease(int device, std::uint64_t bytes, bool* is_later) {
  // What a daemon granted that then died is in the lease counter, though it did not say so.
  if (regatta_lease_counter_take(&client_page_->lease_counters[device], bytes) != 0) return true;
  const std::uint64_t there = spare(device);
  if (there >= bytes) return false;
  REGATTA_TRY_DO(ask_for({.type = RequestType::kLease,
                          .device = static_cast<std::uint32_t>(device),
                          .least = bytes - there},
                         is_later));
  return false;
}

// Waits for the daemon and for those who make room, so long each.
Status Client::reserve_slowly(int device, std::uint64_t bytes, Seconds timeout,
                              Seconds room_timeout) {
  if (!is_joined_process()) return was_forked();
  std::unique_lock lock(mutex_);
  const Seconds begin = os::monotonic_now();
  Seconds end = begin + timeout;  // with a daemon that does not answer
  Seconds pause = kRetry;
  for (;;) {
    Status status;
    bool is_later = false;
    if (!socket_) status = handshake();
    const bool is_greeted = status.has_value();
    if (is_greeted) {
      const auto is_taken = take_or_lease(device, bytes, &is_later);
      if (is_taken && *is_taken) return {};
      if (is_taken) continue;
      status = is_taken.error();
    }
    if (is_later && os::monotonic_now() < begin + room_timeout) {
      wait_unlocked(lock, pause);
      end = os::monotonic_now() + timeout;
      continue;
    }
    if (!is_lost(status.error())) return status;
    socket_.reset();
    if (os::monotonic_now() > end) return status;
    if (is_greeted) continue;  // at once: there may be a new daemon already
    os::sleep_for(kRetry);
  }
}

Status Client::try_reserve_within(Seconds timeout, int device, std::uint64_t bytes) {
  if (device < 0 || device >= REGATTA_DEVICES_MAX) return no_device(device);
  if (!is_joined_process()) return was_forked();
  const std::unique_lock lock(mutex_, std::try_to_lock);
  if (!lock) return Error{Code::kConflict, "another thread asks the daemon"};
  const Seconds end = os::monotonic_now() + timeout;
  Status status;
  if (socket_) set_socket_timeout(socket_.get(), timeout);
  if (!socket_) status = handshake(timeout);
  while (status) {
    const auto is_taken = take_or_lease(device, bytes, nullptr);
    if (is_taken && *is_taken) break;
    if (!is_taken) status = is_taken.error();
    if (is_taken && os::monotonic_now() > end)
      status = Error{Code::kTimeout, "the daemon does not answer in time"};
  }
  // An answer that comes later would be taken for that to the next question.
  if (!status && is_lost(status.error())) socket_.reset();
  if (socket_) set_socket_timeout(socket_.get(), timeout_);
  return status;
}

Status Client::lease_swappable(int device, std::uint64_t total) {
  if (device < 0 || device >= REGATTA_DEVICES_MAX) return no_device(device);
  return ask_until_answered({.type = RequestType::kLeaseSwappable,
                             .device = static_cast<std::uint32_t>(device),
                             .least = total});
}

Status Client::pin() {
  return ask_until_answered({.type = RequestType::kPin});
}

Status Client::open_session(int device, regatta_engine engine) {
  if (!is_joined_process()) return was_forked();
  if (device < 0 || device >= REGATTA_DEVICES_MAX) return no_device(device);
  const ClientRequest request{.type = RequestType::kOpenSession,
                              .device = static_cast<std::uint32_t>(device),
                              .least = static_cast<std::uint64_t>(engine)};
  const std::scoped_lock lock(mutex_);
  const Seconds end = os::monotonic_now() + timeout_;
  Status status;
  if (!socket_) status = handshake();
  const unsigned before = client_page_->engine_usage[device][engine].sessions;
  for (;;) {
    if (status) status = ask_for(request);
    // What a daemon granted that then died is in the page, though it did not say so.
    if (status || client_page_->engine_usage[device][engine].sessions != before) return {};
    if (!is_lost(status.error())) return status;
    socket_.reset();
    if (os::monotonic_now() > end) return status;
    os::sleep_for(kRetry);
    status = handshake();
  }
}

void Client::close_session(int device, regatta_engine engine) {
  if (!is_joined_process() || device < 0 || device >= REGATTA_DEVICES_MAX) return;
  const std::scoped_lock lock(mutex_);
  unsigned& sessions = client_page_->engine_usage[device][engine].sessions;
  if (__atomic_load_n(&sessions, __ATOMIC_RELAXED) != 0)
    __atomic_fetch_sub(&sessions, 1U, __ATOMIC_RELAXED);
}

Status Client::notify_residency_changed(int device) {
  if (!is_joined_process()) return was_forked();
  const std::scoped_lock lock(mutex_);
  if (!socket_) REGATTA_TRY_DO(handshake());
  const ClientRequest request{.type = RequestType::kResidencyChanged,
                              .device = static_cast<std::uint32_t>(device)};
  const Status sent = send_message(socket_.get(), as_bytes(request));
  if (!sent) socket_.reset();
  return sent;
}

}  // namespace regatta::sharing
