#include "regatta/network/lab/internal/control.h"

#include <array>
#include <cerrno>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <sys/time.h>

#include "regatta/base/os/socket.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::lab {
namespace {

constexpr int kClientSeconds = 10;
constexpr int kHolderSeconds = 2;  // a silent client must not keep the holder from the others

// Its name comes from that of the cluster, so nobody can choose another path.
Result<std::string> path_in(const std::string& folder) {
  std::string path = folder + "/control.sock";
  if (os::unix_address(path)) return path;
  return Error{
      Code::kInvalidInput,
      path + ": too long for a socket; shorten the name of the cluster, or XDG_RUNTIME_DIR"};
}

void limit_waits(int fd, int seconds) {
  const timeval limit{seconds, 0};
  ::setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &limit, sizeof limit);
  ::setsockopt(fd, SOL_SOCKET, SO_SNDTIMEO, &limit, sizeof limit);
}

// Sends the text and tells the other side that it is complete.
Status send_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t count = ::send(fd, text.data(), text.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return os::errno_error("control socket");
    text.remove_prefix(static_cast<std::size_t>(count));
  }
  ::shutdown(fd, SHUT_WR);
  return {};
}

Result<std::string> receive_all(int fd) {
  std::string text;
  std::array<char, 16384> block{};
  for (;;) {
    const ssize_t count = ::recv(fd, block.data(), block.size(), 0);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0 && (errno == EAGAIN || errno == EWOULDBLOCK)) {
      return Error{Code::kTimeout, "control socket: no answer"};
    }
    if (count < 0) return os::errno_error("control socket");
    if (count == 0) return text;
    text.append(block.data(), static_cast<std::size_t>(count));
  }
}

nlohmann::json parse(const std::string& text) {
  return nlohmann::json::parse(text, nullptr, false);
}

}  // namespace

Result<nlohmann::json> request(const LabInfo& lab, const nlohmann::json& message) {
  REGATTA_TRY(path, path_in(lab.folder));
  const auto socket = os::connect_unix(path);
  if (!socket) return gone(lab.name);
  limit_waits(socket->get(), kClientSeconds);
  REGATTA_TRY_DO(send_all(socket->get(), message.dump()));
  REGATTA_TRY(text, receive_all(socket->get()));
  const nlohmann::json answer = parse(text);
  if (!answer.is_object()) {
    return Error{
        Code::kUnavailable,
        fmt::format("lab {}: its holder gave no answer; take it down with regatta lab down {} and "
                    "bring it up again",
                    lab.name, lab.name)};
  }
  if (answer.contains("error")) {
    return Error{static_cast<Code>(answer.value("code", 0)),
                 answer.value("error", std::string("unknown error"))};
  }
  return answer;
}

Result<os::UniqueFd> listen_for_requests(const std::string& folder) {
  REGATTA_TRY(path, path_in(folder));
  return os::listen_unix(path);
}

void serve_one(const os::UniqueFd& listener, const RequestHandler& handler) {
  const os::UniqueFd client = os::accept_connection(listener, 0);
  if (!client) return;
  limit_waits(client.get(), kHolderSeconds);
  const auto text = receive_all(client.get());
  if (!text) return;
  const nlohmann::json message = parse(*text);
  if (!message.is_object()) return;
  const auto answer = handler(message);
  const nlohmann::json reply =
      answer ? *answer
             : nlohmann::json{{"error", answer.error().message},
                              {"code", static_cast<int>(answer.error().code)}};
  static_cast<void>(send_all(client.get(), reply.dump()).has_value());
}

nlohmann::json links_to_json(const std::vector<LinkState>& states) {
  nlohmann::json links = nlohmann::json::array();
  for (const LinkState& state : states) {
    links.push_back({{"name", state.name},
                     {"a", state.a},
                     {"b", state.b},
                     {"up", state.up},
                     {"rate_Bps", state.rate.value},
                     {"drop_share", state.drop_share},
                     {"has_fault", state.has_fault},
                     {"sent_by_a_bytes", state.sent_by_a.value},
                     {"sent_by_b_bytes", state.sent_by_b.value}});
  }
  return links;
}

std::vector<LinkState> links_from_json(const nlohmann::json& json) {
  std::vector<LinkState> states;
  for (const auto& link : json) {
    LinkState state;
    link.at("name").get_to(state.name);
    link.at("a").get_to(state.a);
    link.at("b").get_to(state.b);
    link.at("up").get_to(state.up);
    link.at("rate_Bps").get_to(state.rate.value);
    link.at("drop_share").get_to(state.drop_share);
    link.at("has_fault").get_to(state.has_fault);
    link.at("sent_by_a_bytes").get_to(state.sent_by_a.value);
    link.at("sent_by_b_bytes").get_to(state.sent_by_b.value);
    states.push_back(std::move(state));
  }
  return states;
}

}  // namespace regatta::lab
