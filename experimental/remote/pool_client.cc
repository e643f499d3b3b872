#include "experimental/remote/pool_client.h"

#include <algorithm>
#include <cstdlib>
#include <optional>

#include <fcntl.h>
#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "experimental/remote/internal/rdma_packet_port.h"
#include "experimental/remote/internal/rendezvous.h"
#include "experimental/remote/internal/socket.h"
#include "experimental/remote/internal/tls_channel.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/socket.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::remote {
namespace {

using nlohmann::json;

struct Answered {
  std::string text;
  os::UniqueFd connection;
};

Result<Answered> ask(const std::string& server, const PoolAccess& access, const json& request) {
  REGATTA_TRY(fd, connect_tcp(server));
  auto channel = access.is_plain
                     ? Result<std::unique_ptr<StreamChannel>>(make_tcp_channel(std::move(fd)))
                     : connect_tls(std::move(fd), secret_of_token(access.token), kBeginTimeout);
  if (!channel) {
    const bool is_refused = channel.error().code == Code::kUnsupported;
    return Error{channel.error().code,
                 server + ": " +
                     (is_refused ? "the token is not this server's, or only one end is without "
                                   "encryption; see --token-file and --plain"
                                 : channel.error().message)};
  }
  static_cast<void>(send_text(**channel, request.dump()));
  auto answer = receive_text(**channel);
  if (!answer) {
    const bool may_encrypt = access.is_plain && answer.error().code == Code::kUnavailable;
    return Error{answer.error().code,
                 server + ": " + answer.error().message +
                     (may_encrypt ? "; if it is with encryption, leave --plain out" : "")};
  }
  return Answered{std::move(*answer), (*channel)->release()};
}

Result<std::vector<PoolDevice>> view_server(const std::string& server, const PoolAccess& access) {
  REGATTA_TRY(answer, ask(server, access, {{"request", "show"}, {"token", access.token}}));
  return pool_devices(server, answer.text);
}

json reserve_request(const SliceRequest& slice, const std::string& token) {
  json request{{"request", "reserve"},   {"token", token},
               {"name", slice.name},     {"memory_bytes", slice.memory},
               {"gpu", slice.gpu},       {"compute_ppm", slice.compute_ppm},
               {"weight", slice.weight}, {"priority", slice.priority}};
  return request;
}

}  // namespace

Result<std::vector<std::string>> parse_servers(const std::string& text) {
  std::vector<std::string> servers;
  std::string rest = text + ",";
  for (std::size_t start = 0, end = 0; (end = rest.find(',', start)) != std::string::npos;
       start = end + 1) {
    const std::string one = rest.substr(start, end - start);
    if (one.empty()) continue;
    REGATTA_TRY_DO(os::parse_host_port(one));
    if (std::ranges::count(servers, one) == 0) servers.push_back(one);
  }
  if (servers.empty())
    return Error{Code::kInvalidInput, "--servers: name at least one, like gpu-1:7000,gpu-2:7000"};
  return servers;
}

std::vector<ServerView> view_servers(const std::vector<std::string>& servers,
                                     const PoolAccess& access) {
  std::vector<ServerView> views;
  views.reserve(servers.size());
  for (const std::string& server : servers)
    views.push_back({server, view_server(server, access)});
  return views;
}

Result<SliceLease> lease_slice(const std::vector<std::string>& servers, const PoolAccess& access,
                               SliceRequest request, bool needs_rdma) {
  std::vector<PoolDevice> devices;
  std::optional<Error> problem;  // the last
  for (const ServerView& view : view_servers(servers, access)) {
    if (view.devices)
      devices.insert(devices.end(), view.devices->begin(), view.devices->end());
    else
      problem = view.devices.error();
  }
  if (devices.empty() && problem) return *problem;
  const SliceRequirements slice{
      {static_cast<long long>(request.memory)}, request.compute_ppm, needs_rdma};
  for (;;) {
    auto chosen = choose_device(devices, slice);
    if (!chosen) return chosen.error();
    const PoolDevice device = devices[*chosen];
    request.gpu = device.gpu;
    auto answer = ask(device.server, access, reserve_request(request, access.token));
    if (answer)
      return SliceLease{device.server, device.gpu, answer->text, std::move(answer->connection)};
    // Another program was faster, or the name is taken there; only the last such answer is
    // reported.
    devices.erase(devices.begin() + static_cast<std::ptrdiff_t>(*chosen));
    if (devices.empty()) return answer.error();
  }
}

Status check_encryption(const RemoteProgramOptions& options) {
  const char* const option = options.transport == "rdma"     ? "--transport rdma"
                             : !options.rdma_address.empty() ? "--rdma-address"
                                                             : nullptr;
  if (options.is_plain || option == nullptr) return {};
  return Error{Code::kInvalidInput,
               std::string(option) +
                   ": RDMA is not encrypted; add --plain where nobody else is in the network, or "
                   "leave it out"};
}

Error run_with_lease(SliceLease lease, const RemoteProgramOptions& options,
                     const std::vector<std::string>& program) {
  if (::access(options.library.c_str(), R_OK) != 0)
    return {Code::kInvalidInput,
            options.library + ": is not there; it belongs beside this program"};
  const auto transport = parse_transport(options.transport);
  if (!transport) return transport.error();
  if (const Status allowed = check_encryption(options); !allowed) return allowed.error();
  if (!options.rdma_address.empty()) {
    const auto gid = rdma::gid_of(options.rdma_address);
    if (!gid) return {gid.error().code, "--rdma-address: " + gid.error().message};
  }
  if (*transport == TransportChoice::kRdma) {
    const Status found =
        find_rdma(options.rdma_address.empty() ? os::local_endpoint(lease.connection.get()).host
                                               : options.rdma_address);
    if (!found)
      return {
          found.error().code,
          found.error().message + "; name one with --rdma-address, or run with --transport tcp"};
  }
  if (::fcntl(lease.connection.get(), F_SETFD, 0) != 0)
    return os::errno_error("cannot keep the reservation");
  const char* const others = std::getenv("LD_PRELOAD");
  const std::string preload =
      options.library + (others != nullptr && *others != '\0' ? std::string(":") + others : "");
  ::setenv("LD_PRELOAD", preload.c_str(), 1);
  ::setenv("REGATTA_GPU_SERVER", lease.server.c_str(), 1);
  ::setenv("REGATTA_GPU_TICKET", lease.ticket.c_str(), 1);
  ::setenv("REGATTA_GPU_PLAIN", options.is_plain ? "1" : "0", 1);
  ::setenv("REGATTA_GPU_TRANSPORT", options.transport.c_str(), 1);
  ::setenv("REGATTA_GPU_RDMA_ADDRESS", options.rdma_address.c_str(), 1);
  ::setenv("REGATTA_GPU_VERBOSE", options.is_verbose ? "1" : "0", 1);
  std::vector<char*> words;
  words.reserve(program.size() + 1);
  for (const std::string& word : program)
    words.push_back(const_cast<char*>(word.c_str()));
  words.push_back(nullptr);
  ::execvp(words.front(), words.data());
  Error error = os::errno_error(program.front() + ": cannot be started");
  error.code = Code::kInvalidInput;
  return error;
}

}  // namespace regatta::remote
