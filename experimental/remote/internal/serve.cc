#include "experimental/remote/internal/serve.h"

#include <algorithm>
#include <cerrno>
#include <fstream>
#include <thread>

#include <fcntl.h>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/time.h>
#include <unistd.h>

#include "experimental/remote/internal/host_process.h"
#include "experimental/remote/internal/rdma_packet_port.h"
#include "experimental/remote/internal/rendezvous.h"
#include "experimental/remote/internal/reservations.h"
#include "experimental/remote/internal/socket.h"
#include "experimental/remote/internal/table.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/log.h"
#include "regatta/base/os/socket.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/gpu/sharing/control.h"

namespace regatta::remote {
namespace {

using nlohmann::json;

constexpr int kMostHandshakes = 256;

void set_patience(int fd, time_t seconds) {
  timeval limit{.tv_sec = seconds};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

// Returns when the other end closes; it has nothing to say.
void wait_for_end(int fd) {
  char byte = 0;
  ssize_t came = 0;
  do {
    came = ::recv(fd, &byte, 1, 0);
  } while (came > 0 || (came < 0 && errno == EINTR));
}

class GpuServer {
 public:
  explicit GpuServer(const GpuServerOptions& options) : options_(options), reservations_(options) {}

  // A connection, from its first word on.
  void serve(os::UniqueFd fd) {
    os::enable_keepalive(fd.get());
    set_patience(fd.get(), 5);
    const bool is_welcome = ++handshakes_ <= kMostHandshakes;
    const auto asked = is_welcome ? receive_text(fd.get(), false)
                                  : Result<std::string>(Error{Code::kExhausted, "too many ask"});
    const auto ticket = asked ? answer(*asked, fd) : Result<std::string>(asked.error());
    --handshakes_;
    if (!ticket) static_cast<void>(send_refusal(fd.get(), ticket.error()));
    if (ticket && !ticket->empty()) keep_reservation(fd.get(), *ticket);
  }

 private:
  // The ticket that this connection keeps; empty: nothing more is said on it here.
  Result<std::string> answer(const std::string& text, const os::UniqueFd& fd) {
    try {
      const json request = json::parse(text);
      const std::string what = request.value("ask", "");
      if (what == "open") return open(request, fd);
      if (what == "join") return join(request, fd);
      if (!is_same_secret(request.value("token", ""), options_.token))
        return Error{Code::kUnsupported, "the token is not this server's; see --token-file"};
      if (what == "show") return show(fd);
      if (what == "reserve") return reserve(request, fd);
    } catch (const json::exception&) {
    }
    return Error{Code::kInvalidInput, "this is no request; see docs/formats/gpu_remote.md"};
  }

  Result<std::string> show(const os::UniqueFd& fd) {
    REGATTA_TRY(books, sharing::send_control_request(options_.daemon_socket, R"({"ask":"ps"})"));
    json shown = json::parse(books);
    const std::string at =
        options_.rdma_address.empty() ? os::local_endpoint(fd.get()).host : options_.rdma_address;
    shown["rdma"] = find_rdma(at).has_value();
    static_cast<void>(send_text(fd.get(), shown.dump()));
    return std::string();
  }

  Result<std::string> reserve(const json& request, const os::UniqueFd& fd) {
    const SliceRequest slice{.name = request.value("name", ""),
                             .memory = request.value("memory_bytes", std::uint64_t{0}),
                             .gpu = request.value("gpu", 0),
                             .compute_ppm = request.value("compute_ppm", 0U),
                             .weight = request.value("weight", 0U),
                             .priority = request.value("priority", "")};
    REGATTA_TRY(ticket, reservations_.reserve(slice));
    os::log_info(fmt::format("tenant {}: reserved", slice.name));
    static_cast<void>(send_text(fd.get(), ticket));
    return ticket;
  }

  void keep_reservation(int fd, const std::string& ticket) {
    set_patience(fd, 0);
    wait_for_end(fd);
    reservations_.end(ticket);
  }

  // Not for the host processes of others, which are started meanwhile: they would keep it open.
  static Result<os::UniqueFd> copy_of(const os::UniqueFd& fd) {
    os::UniqueFd copy(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
    if (!copy) return os::errno_error("cannot pass the connection on");
    return copy;
  }

  // The host process gets a copy of the connection: what is refused is said on ours.
  Result<std::string> open(const json& request, const os::UniqueFd& fd) {
    if (request.value("table", "") != std::to_string(table_mark()))
      return Error{Code::kUnsupported,
                   "the program's library is of another build of regatta than this server"};
    set_patience(fd.get(), 0);
    REGATTA_TRY(copy, copy_of(fd));
    REGATTA_TRY(key, reservations_.open(request.value("ticket", ""), std::move(copy)));
    static_cast<void>(send_text(fd.get(), key));
    return std::string();
  }

  Result<std::string> join(const json& request, const os::UniqueFd& fd) {
    set_patience(fd.get(), 0);
    const Reservations::Joining joining{.number = request.value("connection", std::uint64_t{0}),
                                        .offer = request.value("rdma", "")};
    if (joining.offer.size() > kCardTextMax)
      return Error{Code::kInvalidInput, "the queue pair is not of this build of regatta"};
    REGATTA_TRY(copy, copy_of(fd));
    REGATTA_TRY_DO(reservations_.join(request.value("ticket", ""), request.value("key", ""),
                                      joining, std::move(copy)));
    return std::string();
  }

  const GpuServerOptions options_;
  Reservations reservations_;
  std::atomic<int> handshakes_ = 0;
};

}  // namespace

bool is_same_secret(std::string_view given, std::string_view right) {
  unsigned different = given.size() == right.size() ? 0 : 1;
  for (std::size_t i = 0; i < right.size(); ++i) {
    const char letter = given.empty() ? '\0' : given[i % given.size()];
    different |= static_cast<unsigned char>(letter ^ right[i]);
  }
  return different == 0;
}

Result<std::string> read_token(const std::string& path) {
  constexpr std::size_t kShortest = 16;
  const auto wrong = [&](const std::string& why) {
    return Error{Code::kInvalidInput, "--token-file: " + printable(path, 200) + ": " + why};
  };
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno != ENOENT) return wrong(os::errno_text() + "; name a file that this user may read");
    return wrong(
        "there is no such file; make one that all machines of the pool share, like: "
        "(umask 077; head -c 24 /dev/urandom | base64 > token)");
  }
  // Also the end of a pipe, as a shell gives it for what a program prints.
  if (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode))
    return wrong("is no file; name the file that holds the token");
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return wrong("others may read it; make it yours alone with chmod 600");
  std::ifstream file(path);
  if (!file) return wrong(os::errno_text() + "; name a file that this user may read");
  std::string token;
  std::getline(file, token);
  if (token.size() < kShortest)
    return wrong(
        fmt::format("its first line has {} letters, and a token at least {}; write one "
                    "of that length",
                    token.size(), kShortest));
  return token;
}

// What every program of others will need: a daemon that takes orders from here, and a driver.
static Status check_parts(const GpuServerOptions& options) {
  REGATTA_TRY_DO(sharing::send_control_request(options.daemon_socket, R"({"ask":"policy"})"));
  return load_driver(options.driver).and_then([](const auto&) { return Status(); });
}

Status serve_gpus(const GpuServerOptions& options, const std::atomic<bool>& stop) {
  if (!options.rdma_address.empty()) {
    const Status found = find_rdma(options.rdma_address);
    if (!found) return Error{found.error().code, "--rdma-address: " + found.error().message};
  }
  REGATTA_TRY_DO(check_parts(options));
  const auto listener = listen_tcp(options.listen);
  if (!listener) return Error{listener.error().code, "--listen: " + listener.error().message};
  // Threads of connections may outlive this function: the process ends after it.
  static auto* const server = new GpuServer(options);
  // With port 0 the system chose one.
  os::log_info(fmt::format("{}:{}: lends GPUs of the daemon at {}",
                           options.listen.substr(0, options.listen.rfind(':')),
                           os::local_endpoint(listener->get()).port, options.daemon_socket));
  while (!stop) {
    pollfd waiting{listener->get(), POLLIN, 0};
    if (::poll(&waiting, 1, 200) != 1) continue;
    os::UniqueFd fd = os::accept_connection(*listener, 0);
    if (!fd) continue;
    std::thread([socket = fd.release()] { server->serve(os::UniqueFd(socket)); }).detach();
  }
  return {};
}

}  // namespace regatta::remote
