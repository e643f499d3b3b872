#include "experimental/remote/internal/reservations.h"

#include <csignal>
#include <vector>

#include <fmt/core.h>
#include <poll.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "experimental/remote/internal/hexadecimal.h"
#include "regatta/base/core/mutex.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/process.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/gpu/sharing/messages.h"

namespace regatta::remote {
namespace {

constexpr int kStartPatienceMs = 20'000;

std::string random_text() {
  char bytes[16] = {};
  if (::getrandom(bytes, sizeof bytes, 0) != sizeof bytes) std::abort();
  return hexadecimal({bytes, sizeof bytes});
}

// The last line that a program wrote into the file: its error message.
std::string last_line(int file) {
  std::string text(4096, '\0');
  struct stat status {};
  if (::fstat(file, &status) != 0) return {};
  const off_t skipped = std::max<off_t>(0, status.st_size - static_cast<off_t>(text.size()));
  const ssize_t size = ::pread(file, text.data(), text.size(), skipped);
  text.resize(size > 0 ? static_cast<std::size_t>(size) : 0);
  while (!text.empty() && text.back() == '\n')
    text.pop_back();
  const std::size_t start = text.rfind('\n');
  text = start == std::string::npos ? text : text.substr(start + 1);
  const std::string_view prefix = "regatta: ";
  return printable(text.starts_with(prefix) ? text.substr(prefix.size()) : text, 500);
}

}  // namespace

Result<Reservations::Child> Reservations::start(const std::vector<std::string>& tenant) const {
  int ends[2] = {-1, -1};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0)
    return os::errno_error("cannot make a socket for a host process");
  Child child{.control = os::UniqueFd(ends[0])};
  os::UniqueFd theirs(ends[1]);
  const os::UniqueFd complaints(::memfd_create("regatta-gpu-host", MFD_CLOEXEC));
  std::vector<std::string> words = {options_.regatta, "gpu", "run", "--socket",
                                    options_.daemon_socket};
  words.insert(words.end(), tenant.begin(), tenant.end());
  words.insert(words.end(), {"--", options_.host_program, options_.driver, options_.host_user});
  if (!options_.rdma_address.empty()) words.push_back(options_.rdma_address);
  REGATTA_TRY(pid, os::spawn(words, {.stdin_fd = theirs.get(), .stderr_fd = complaints.get()}));
  child.pid = pid;
  // No other process inherits it, so it ends with the process.
  theirs.reset();
  pollfd waiting{child.control.get(), POLLIN, 0};
  const int came = ::poll(&waiting, 1, kStartPatienceMs);
  const auto ready =
      came == 1 ? sharing::receive_message(child.control.get(), 16)
                : Result<sharing::DaemonMessage>(Error{Code::kTimeout, "it does not start"});
  if (ready && ready->bytes == "ready") return child;
  const int status = stop(child);
  const std::string why = last_line(complaints.get());
  return Error{status == 2 ? Code::kInvalidInput : Code::kConflict,
               why.empty() ? "the host process cannot be started" : why};
}

int Reservations::stop(Child& child) {
  if (child.pid <= 0) return 0;
  ::kill(child.pid, SIGKILL);
  const auto ended = os::wait_for(child.pid);
  child.pid = 0;
  return ended ? ended->shell_status() : 0;
}

std::map<std::string, Reservations::Reservation>::iterator Reservations::find(
    const std::string& ticket) {
  auto found = all_.end();
  for (auto at = all_.begin(); at != all_.end(); ++at)
    if (is_same_secret(ticket, at->first)) found = at;
  return found;
}

Result<std::string> Reservations::reserve(const SliceRequest& request) {
  std::vector<std::string> words = {"--name=" + request.name,
                                    fmt::format("--memory={}B", request.memory),
                                    fmt::format("--gpu={}", request.gpu)};
  if (request.compute_ppm != 0)
    words.push_back(fmt::format("--compute={}", request.compute_ppm / 1e4));
  if (request.weight != 0) words.push_back(fmt::format("--weight={}", request.weight));
  if (!request.priority.empty()) words.push_back("--priority=" + request.priority);
  REGATTA_TRY(tenant_holder, start(words));
  const std::string ticket = random_text();
  const MutexLock lock(mutex_);
  all_[ticket] = {.name = request.name,
                  .secret = secret_of_ticket(ticket),
                  .tenant_holder = std::move(tenant_holder)};
  return ticket;
}

void Reservations::end(const std::string& ticket) {
  const MutexLock lock(mutex_);
  const auto at = all_.find(ticket);
  if (at == all_.end()) return;
  for (auto& [key, host] : at->second.hosts)
    stop(host);
  stop(at->second.tenant_holder);
  all_.erase(at);
}

Result<std::string> Reservations::open(const std::string& ticket, os::UniqueFd anchor) {
  const Error over{Code::kConflict, "the reservation is over, or never was; reserve anew"};
  std::string name;
  {
    const MutexLock lock(mutex_);
    const auto at = find(ticket);
    if (at == all_.end()) return over;
    name = at->second.name;
    // Programs of the reservation start and end; their host processes end by themselves.
    std::erase_if(at->second.hosts, [](auto& host) {
      const auto ended = os::try_wait(host.second.pid);
      return ended && ended->has_value();
    });
  }
  REGATTA_TRY(host, start({"--name=" + name}));
  const std::uint64_t number = 0;
  std::string key = random_text();
  Status given = sharing::send_message(
      host.control.get(),
      std::string(sharing::as_bytes(number)) + (options_.is_plain ? std::string() : key),
      {anchor.get(), -1});
  const MutexLock lock(mutex_);
  const auto at = find(ticket);
  if (!given || at == all_.end()) {
    stop(host);
    return given ? over : given.error();
  }
  at->second.hosts[key] = std::move(host);
  return key;
}

std::optional<std::string> Reservations::find_key(std::string_view identity) {
  const MutexLock lock(mutex_);
  for (const auto& [ticket, reservation] : all_)
    if (reservation.secret.identity == identity) return reservation.secret.key;
  return std::nullopt;
}

Status Reservations::join(const std::string& ticket, const std::string& key, const Joining& joining,
                          os::UniqueFd fd) {
  const MutexLock lock(mutex_);
  const auto at = find(ticket);
  if (at == all_.end()) return Error{Code::kConflict, "the reservation is over"};
  const auto host = at->second.hosts.find(key);
  if (host == at->second.hosts.end() || joining.number == 0)
    return Error{Code::kConflict, "there is no host process of this program"};
  return sharing::send_message(host->second.control.get(),
                               std::string(sharing::as_bytes(joining.number)) + joining.offer,
                               {fd.get(), -1});
}

}  // namespace regatta::remote
