#include "experimental/remote/internal/serve.h"

#include <algorithm>
#include <cctype>
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
#include "regatta/base/core/json.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/log.h"
#include "regatta/base/os/socket.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/gpu/sharing/control.h"

namespace regatta::remote {
namespace {

// Bounds the threads of connections together with the daemon's number of tenants: only a connection
// that holds a reservation outlives its handshake.
constexpr int kHandshakesMax = 256;

void set_patience(int fd, time_t seconds) {
  timeval limit{.tv_sec = seconds};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

// Returns when the peer, which sends nothing, closes.
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

  // Serves a connection from its first message on.
  void serve(os::UniqueFd fd) {
    os::enable_keepalive(fd.get());
    set_patience(fd.get(), 5);
    const bool is_accepted = ++handshakes_ <= kHandshakesMax;
    const auto request =
        is_accepted
            ? receive_text(fd.get(), false)
            : Result<std::string>(Error{Code::kExhausted, "the server has too many clients"});
    const auto ticket = request ? answer(*request, fd) : Result<std::string>(request.error());
    --handshakes_;
    if (!ticket) static_cast<void>(send_refusal(fd.get(), ticket.error()));
    if (ticket && !ticket->empty()) keep_reservation(fd.get(), *ticket);
  }

 private:
  enum class Command { kOpen, kJoin, kShow, kReserve };

  // The ticket of the reservation that this connection holds; empty: the server is done with it.
  Result<std::string> answer(const std::string& text, const os::UniqueFd& fd) {
    static const Choices<Command> commands = {{"open", Command::kOpen},
                                              {"join", Command::kJoin},
                                              {"show", Command::kShow},
                                              {"reserve", Command::kReserve}};
    REGATTA_TRY(request, JsonReader::parse(text, "the request"));
    // "ask" is the old name of the key, until the next minor version.
    const auto command = request.at(request.has("ask") ? "ask" : "request").as<Command>(commands);
    REGATTA_TRY_DO(request.status());
    if (command == Command::kOpen) return open(request, fd);
    if (command == Command::kJoin) return join(request, fd);
    if (!is_same_secret(text_of(request, "token"), options_.token))
      return Error{Code::kUnsupported, "the token is not this server's; see --token-file"};
    return command == Command::kShow ? show(fd) : reserve(request, fd);
  }

  static std::string text_of(const JsonReader& request, const char* key) {
    std::string text;
    request.read_if(key, text);
    return text;
  }

  // Adds whether the server has RDMA to what its daemon lists.
  Result<std::string> show(const os::UniqueFd& fd) {
    REGATTA_TRY(listing,
                sharing::send_control_request(options_.daemon_socket, R"({"request":"ps"})"));
    REGATTA_TRY(root, JsonReader::parse(listing, options_.daemon_socket));
    const std::string address =
        options_.rdma_address.empty() ? os::local_endpoint(fd.get()).host : options_.rdma_address;
    nlohmann::json shown = root.raw();
    shown["rdma"] = find_rdma(address).has_value();
    static_cast<void>(send_text(fd.get(), shown.dump()));
    return std::string();
  }

  Result<std::string> reserve(const JsonReader& request, const os::UniqueFd& fd) {
    SliceRequest slice;
    request.read_if("name", slice.name);
    request.read_if("memory_bytes", slice.memory);
    request.read_if("gpu", slice.gpu);
    request.read_if("compute_ppm", slice.compute_ppm);
    request.read_if("weight", slice.weight);
    request.read_if("priority", slice.priority);
    REGATTA_TRY_DO(request.status());
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

  // Host processes that start meanwhile do not inherit it.
  static Result<os::UniqueFd> copy_of(const os::UniqueFd& fd) {
    os::UniqueFd copy(::fcntl(fd.get(), F_DUPFD_CLOEXEC, 3));
    if (!copy) return os::errno_error("cannot pass the connection on");
    return copy;
  }

  // The host process gets a copy of the connection; the server reports a refusal on its own.
  Result<std::string> open(const JsonReader& request, const os::UniqueFd& fd) {
    if (text_of(request, "table") != std::to_string(table_mark()))
      return Error{Code::kUnsupported,
                   "the program's library is of another build of regatta than this server"};
    set_patience(fd.get(), 0);
    REGATTA_TRY(copy, copy_of(fd));
    REGATTA_TRY(key, reservations_.open(text_of(request, "ticket"), std::move(copy)));
    static_cast<void>(send_text(fd.get(), key));
    return std::string();
  }

  Result<std::string> join(const JsonReader& request, const os::UniqueFd& fd) {
    set_patience(fd.get(), 0);
    Reservations::Joining joining;
    request.read_if("connection", joining.number);
    request.read_if("rdma", joining.offer);
    if (joining.offer.size() > kCardTextMax)
      return Error{Code::kInvalidInput, "the queue pair is not of this build of regatta"};
    const std::string ticket = text_of(request, "ticket");
    const std::string key = text_of(request, "key");
    REGATTA_TRY_DO(request.status());
    REGATTA_TRY(copy, copy_of(fd));
    REGATTA_TRY_DO(reservations_.join(ticket, key, joining, std::move(copy)));
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
  // Accepts a pipe, too, as the shell passes for the output of a program.
  if (!S_ISREG(status.st_mode) && !S_ISFIFO(status.st_mode))
    return wrong("is no file; name the file that holds the token");
  if ((status.st_mode & (S_IRWXG | S_IRWXO)) != 0)
    return wrong("others may read it; make it yours alone with chmod 600");
  // The owner may change what it says, and with it who may use the GPUs.
  if (status.st_uid != ::geteuid() && status.st_uid != 0)
    return wrong("belongs to another user; take a copy of your own, or give it to this user");
  std::ifstream file(path);
  if (!file) return wrong(os::errno_text() + "; name a file that this user may read");
  std::string token;
  std::getline(file, token);
  const auto letters = static_cast<std::size_t>(
      std::ranges::count_if(token, [](unsigned char letter) { return std::isgraph(letter) != 0; }));
  if (letters < kShortest)
    return wrong(
        fmt::format("its first line has {} letters besides blanks, and a token at least {}; "
                    "write one of that length",
                    letters, kShortest));
  return token;
}

// Every remote program needs a daemon that accepts requests from this process, and a driver.
static Status check_parts(const GpuServerOptions& options) {
  REGATTA_TRY_DO(sharing::send_control_request(options.daemon_socket, R"({"request":"policy"})"));
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
  // Threads of connections may outlive this function, after which the process ends.
  static auto* const server = new GpuServer(options);
  // With port 0 the system chooses the port.
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
