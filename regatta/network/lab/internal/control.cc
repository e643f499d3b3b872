#include "regatta/network/lab/internal/control.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <string_view>
#include <utility>

#include <fmt/core.h>
#include <nlohmann/json.hpp>
#include <sys/socket.h>
#include <sys/time.h>

#include "regatta/base/os/socket.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::lab {
namespace {

constexpr timeval kAnswerLimit{.tv_sec = 10, .tv_usec = 0};
constexpr Seconds kRequestLimit{2};  // from the connection of a client to its request

// Its name comes from that of the cluster, so nobody can choose another path.
Result<std::string> path_in(const std::string& folder) {
  std::string path = folder + "/control.sock";
  if (os::unix_address(path)) return path;
  return Error{
      Code::kInvalidInput,
      path + ": too long for a socket; shorten the name of the cluster, or XDG_RUNTIME_DIR"};
}

// Sends the line and tells the other side that it is complete.
Status send_line(int fd, const std::string& line) {
  for (std::string_view left = line; !left.empty();) {
    const ssize_t count = ::send(fd, left.data(), left.size(), MSG_NOSIGNAL);
    if (count < 0 && errno == EINTR) continue;
    if (count < 0) return os::errno_error("control socket");
    left.remove_prefix(as_index(count));
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
    text.append(block.data(), as_index(count));
  }
}

LinkState read_link(const JsonReader& link) {
  LinkState state;
  link.read("name", state.name);
  link.read("a", state.a);
  link.read("b", state.b);
  link.read("up", state.up);
  link.read("rate_Bps", state.rate);
  state.described_rate = state.rate;  // an older holder sends one only
  link.read_if("described_rate_Bps", state.described_rate);
  link.read("drop_share", state.drop_share);
  link.read("has_fault", state.has_fault);
  link.read("sent_by_a_bytes", state.sent_by_a);
  link.read("sent_by_b_bytes", state.sent_by_b);
  return state;
}

}  // namespace

Result<JsonReader> request(const LabInfo& lab, const nlohmann::json& message) {
  REGATTA_TRY(path, path_in(lab.folder));
  const auto socket = os::connect_unix(path);
  if (!socket) return gone(lab.name);
  ::setsockopt(socket->get(), SOL_SOCKET, SO_RCVTIMEO, &kAnswerLimit, sizeof kAnswerLimit);
  ::setsockopt(socket->get(), SOL_SOCKET, SO_SNDTIMEO, &kAnswerLimit, sizeof kAnswerLimit);
  REGATTA_TRY_DO(send_line(socket->get(), message.dump() + "\n"));
  REGATTA_TRY(text, receive_all(socket->get()));
  auto answer = JsonReader::parse(text, fmt::format("lab {}: answer of its holder", lab.name));
  if (!answer) {
    return Error{
        Code::kUnavailable,
        fmt::format("lab {}: its holder gave no answer; take it down with regatta lab down {} and "
                    "bring it up again",
                    lab.name, lab.name)};
  }
  if (auto error = read_error(*answer)) return *std::move(error);
  return answer;
}

Result<std::vector<LinkState>> link_states(const LabInfo& lab) {
  std::vector<LinkState> states;
  std::size_t count = 0;
  do {
    REGATTA_TRY(answer, request(lab, {{"op", "links"}, {"first", states.size()}}));
    const auto links = answer.at("links").items();
    for (const JsonReader& link : links)
      states.push_back(read_link(link));
    answer.read_if("count", count);  // an older holder sends all at once
    if (!answer.status()) return Error{Code::kUnavailable, answer.status().error().message};
    if (links.empty()) break;
  } while (states.size() < count);
  return states;
}

Result<net::LineServer> listen_for_requests(const std::string& folder) {
  REGATTA_TRY(path, path_in(folder));
  REGATTA_TRY(listener, os::listen_unix(path));
  return net::LineServer::create(
      std::move(listener),
      {.refusal = to_json(Error{Code::kExhausted,
                                "the lab has too many clients; end one of them and try again"})
                      .dump(),
       .first_line_limit = kRequestLimit});
}

void serve_requests(net::LineServer& server, Seconds limit, const RequestHandler& handler) {
  const net::LineHandlers handlers{
      .connected = {},
      .line = [&](net::ClientId client, std::string_view line) -> Status {
        const auto answer = JsonReader::parse(line, "request").and_then(handler);
        server.send(client, (answer ? *answer : to_json(answer.error())).dump() + "\n");
        server.close(client);
        return {};
      },
      .closed = {}};
  // An error of the wait is not lasting: the next call waits again.
  static_cast<void>(server.serve(limit, handlers));
}

nlohmann::json links_to_json(const std::vector<LinkState>& states, std::size_t first) {
  nlohmann::json links = nlohmann::json::array();
  for (std::size_t i = first; i < std::min(states.size(), first + kLinksMax); ++i) {
    const LinkState& state = states[i];
    links.push_back({{"name", state.name},
                     {"a", state.a},
                     {"b", state.b},
                     {"up", state.up},
                     {"rate_Bps", state.rate.value},
                     {"described_rate_Bps", state.described_rate.value},
                     {"drop_share", state.drop_share},
                     {"has_fault", state.has_fault},
                     {"sent_by_a_bytes", state.sent_by_a.value},
                     {"sent_by_b_bytes", state.sent_by_b.value}});
  }
  return {{"links", links}, {"count", states.size()}};
}

nlohmann::json to_json(const Error& error) {
  return {{"error", error.message}, {"code", static_cast<int>(error.code)}};
}

std::optional<Error> read_error(const JsonReader& answer) {
  if (!answer.has("error")) return std::nullopt;
  constexpr IntRange kCodes{.low = 0, .high = static_cast<int>(Code::kUnsupported)};
  Error error;
  answer.read("error", error.message);
  error.code = static_cast<Code>(answer.at("code").as<int>(kCodes));
  return answer.status() ? error : Error{Code::kUnavailable, answer.status().error().message};
}

}  // namespace regatta::lab
