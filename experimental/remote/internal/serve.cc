#include "experimental/remote/internal/serve.h"

#include <algorithm>
#include <cctype>
#include <cerrno>
#include <fstream>
#include <system_error>
#include <thread>
#include <utility>

#include <fcntl.h>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <poll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "experimental/remote/internal/handshakes.h"
#include "experimental/remote/internal/host_process.h"
#include "experimental/remote/internal/rdma_packet_port.h"
#include "experimental/remote/internal/rendezvous.h"
#include "experimental/remote/internal/reservations.h"
#include "experimental/remote/internal/sandbox.h"
#include "experimental/remote/internal/socket.h"
#include "experimental/remote/internal/table.h"
#include "experimental/remote/internal/tls_channel.h"
#include "regatta/base/core/json.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/log.h"
#include "regatta/base/os/socket.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/gpu/sharing/control.h"

namespace regatta::remote {
namespace {

// From the first byte of a connection until its request is read.
constexpr Seconds kRequestTimeout{5};

// Returns when the peer, which sends nothing, closes.
void wait_for_end(int fd) {
  pollfd waiting{fd, POLLIN, 0};
  while (::poll(&waiting, 1, -1) < 0 && errno == EINTR)
    continue;
}

class GpuServer {
 public:
  explicit GpuServer(const GpuServerOptions& options)
      : options_(options), token_secret_(secret_of_token(options.token)), reservations_(options) {}

  // Serves a connection, in a thread of its own, unless there are too many that have not said yet
  // what they want.
  void accept(os::UniqueFd fd) {
    const std::string peer = os::peer_endpoint(fd.get()).host;
    if (!handshakes_.begin(peer)) return;
    try {
      std::thread([this, peer, socket = std::move(fd)]() mutable {
        serve(std::move(socket), peer);
      }).detach();
    } catch (const std::system_error& error) {
      handshakes_.end(peer);
      os::log_warning(
          fmt::format("{}: closed a connection: no thread is left for it; raise the "
                      "limit of processes: {}",
                      peer, error.what()));
    }
  }

 private:
  void serve(os::UniqueFd fd, const std::string& peer) {
    os::enable_keepalive(fd.get());
    auto channel = begin(std::move(fd));
    if (!channel) return handshakes_.end(peer);
    const auto request = receive_text(**channel);
    handshakes_.end(peer);
    const auto ticket =
        request ? answer(*request, **channel) : Result<std::string>(request.error());
    if (!ticket) static_cast<void>(send_refusal(**channel, ticket.error()));
    if (ticket && !ticket->empty()) keep_reservation((*channel)->fd(), *ticket);
  }

  Result<std::unique_ptr<StreamChannel>> begin(os::UniqueFd fd) {
    const Seconds deadline = os::monotonic_now() + kRequestTimeout;
    auto channel = options_.is_plain
                       ? Result<std::unique_ptr<StreamChannel>>(make_tcp_channel(std::move(fd)))
                       : accept_tls(std::move(fd), find_key_, kRequestTimeout);
    if (channel) (*channel)->set_deadline(deadline);
    return channel;
  }

  std::optional<std::string> find_key(std::string_view identity) {
    if (identity == token_secret_.identity) return token_secret_.key;
    return reservations_.find_key(identity);
  }

  enum class Command { kOpen, kJoin, kShow, kReserve };

  // The ticket of the reservation that this connection holds; empty: the server is done with it.
  Result<std::string> answer(const std::string& text, StreamChannel& channel) {
    static const Choices<Command> commands = {{"open", Command::kOpen},
                                              {"join", Command::kJoin},
                                              {"show", Command::kShow},
                                              {"reserve", Command::kReserve}};
    REGATTA_TRY(request, JsonReader::parse(text, "the request"));
    // "ask" is the old name of the key, until the next minor version.
    const auto command = request.at(request.has("ask") ? "ask" : "request").as<Command>(commands);
    REGATTA_TRY_DO(request.status());
    if (command == Command::kOpen) return open(request, channel);
    if (command == Command::kJoin) return join(request, channel);
    if (!is_same_secret(text_of(request, "token"), options_.token))
      return Error{Code::kUnsupported, "the token is not this server's; see --token-file"};
    return command == Command::kShow ? show(channel) : reserve(request, channel);
  }

  static std::string text_of(const JsonReader& request, const char* key) {
    std::string text;
    request.read_if(key, text);
    return text;
  }

  // Adds whether the server has RDMA to what its daemon lists.
  Result<std::string> show(StreamChannel& channel) {
    REGATTA_TRY(listing,
                sharing::send_control_request(options_.daemon_socket, R"({"request":"ps"})"));
    REGATTA_TRY(root, JsonReader::parse(listing, options_.daemon_socket));
    const std::string address = options_.rdma_address.empty()
                                    ? os::local_endpoint(channel.fd()).host
                                    : options_.rdma_address;
    nlohmann::json shown = root.raw();
    shown["rdma"] = options_.is_plain && find_rdma(address).has_value();
    static_cast<void>(send_text(channel, shown.dump()));
    return std::string();
  }

  Result<std::string> reserve(const JsonReader& request, StreamChannel& channel) {
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
    static_cast<void>(send_text(channel, ticket));
    return ticket;
  }

  void keep_reservation(int fd, const std::string& ticket) {
    wait_for_end(fd);
    reservations_.end(ticket);
  }

  // Host processes that start meanwhile do not inherit it.
  static Result<os::UniqueFd> copy_of(StreamChannel& channel) {
    os::UniqueFd copy(::fcntl(channel.fd(), F_DUPFD_CLOEXEC, 3));
    if (!copy) return os::errno_error("cannot pass the connection on");
    return copy;
  }

  // The host process gets a copy of the connection; the server reports a refusal on its own.
  Result<std::string> open(const JsonReader& request, StreamChannel& channel) {
    if (text_of(request, "table") != std::to_string(table_mark()))
      return Error{Code::kUnsupported,
                   "the program's library is of another build of regatta than this server"};
    REGATTA_TRY(copy, copy_of(channel));
    REGATTA_TRY(key, reservations_.open(text_of(request, "ticket"), std::move(copy)));
    static_cast<void>(send_text(channel, key));
    return std::string();
  }

  Result<std::string> join(const JsonReader& request, StreamChannel& channel) {
    Reservations::Joining joining;
    request.read_if("connection", joining.number);
    request.read_if("rdma", joining.offer);
    if (!options_.is_plain && !joining.offer.empty())
      return Error{Code::kInvalidInput, "this server encrypts, which it cannot with RDMA"};
    if (joining.offer.size() > kCardTextMax)
      return Error{Code::kInvalidInput, "the queue pair is not of this build of regatta"};
    const std::string ticket = text_of(request, "ticket");
    const std::string key = text_of(request, "key");
    REGATTA_TRY_DO(request.status());
    REGATTA_TRY(copy, copy_of(channel));
    REGATTA_TRY_DO(reservations_.join(ticket, key, joining, std::move(copy)));
    // Without encryption the host process is the one that answers.
    if (!options_.is_plain) static_cast<void>(send_text(channel, kPassedOn));
    return std::string();
  }

  const GpuServerOptions options_;
  const SharedSecret token_secret_;
  const FindKey find_key_ = [this](std::string_view identity) { return find_key(identity); };
  Reservations reservations_;
  Handshakes handshakes_;
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
  // The file is found once: what is read is what was examined, whatever the path names meanwhile.
  const os::UniqueFd found(::open(path.c_str(), O_PATH | O_CLOEXEC));
  struct stat status {};
  if (!found || ::fstat(found.get(), &status) != 0) {
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
  std::ifstream file(fmt::format("/proc/self/fd/{}", found.get()));
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
  if (!options.rdma_address.empty() && !options.is_plain) {
    return Error{Code::kInvalidInput,
                 "--rdma-address: RDMA is not encrypted; add --plain where nobody else is in the "
                 "network, or leave it out"};
  }
  if (!options.rdma_address.empty()) {
    const Status found = find_rdma(options.rdma_address);
    if (!found) return Error{found.error().code, "--rdma-address: " + found.error().message};
  }
  if (::geteuid() == 0) REGATTA_TRY_DO(check_host_user(options.host_user));
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
    if (fd) server->accept(std::move(fd));
  }
  return {};
}

}  // namespace regatta::remote
