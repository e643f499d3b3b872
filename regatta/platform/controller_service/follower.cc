#include "regatta/platform/controller_service/follower.h"

#include <utility>

#include <fmt/format.h>

#include "regatta/base/os/clock.h"
#include "regatta/platform/api/problem.h"
#include "regatta/platform/controller_service/authority.h"

namespace regatta::controller_service {
namespace {

http::Response to_leader(const std::string& leader, const http::Request& request) {
  http::Response response = api::problem(
      307, "NotLeader", fmt::format("this controller does not lead; ask {} instead", leader));
  response.headers.emplace_back("Location", leader + request.target);
  return response;
}

}  // namespace

http::Response no_leader() {
  return api::problem(503, "NoLeader", "no controller leads at the moment; try again in a second");
}

struct Follower::Impl {
  std::string leader;
  std::unique_ptr<http::HttpServer> server;
};

Follower::Follower(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Follower::~Follower() = default;

Result<std::unique_ptr<Follower>> Follower::open(http::EventLoop& loop, const std::string& folder,
                                                 const std::vector<std::string>& hosts,
                                                 const http::ServerOptions& server) {
  const auto now = static_cast<std::int64_t>(os::system_now().value);
  REGATTA_TRY(authority, Authority::open(folder, now));
  REGATTA_TRY(identity, authority.issue_server(with_loopback(hosts), now));
  auto impl = std::make_unique<Impl>();
  REGATTA_TRY(
      listening,
      http::HttpServer::listen(
          loop, server, identity, [self = impl.get()](std::unique_ptr<http::Exchange> exchange) {
            exchange->respond(self->leader.empty() ? no_leader()
                                                   : to_leader(self->leader, exchange->request()));
          }));
  impl->server = std::move(listening);
  return std::unique_ptr<Follower>(new Follower(std::move(impl)));
}

std::uint16_t Follower::port() const {
  return impl_->server->port();
}

void Follower::set_leader(std::string url) {
  impl_->leader = std::move(url);
}

}  // namespace regatta::controller_service
