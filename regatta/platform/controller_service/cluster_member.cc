#include "regatta/platform/controller_service/cluster_member.h"

#include <atomic>
#include <optional>
#include <thread>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/http/event_loop.h"
#include "regatta/base/http/http_client.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/log.h"
#include "regatta/platform/controller_service/follower.h"

namespace regatta::controller_service {
namespace {

using MaybeStore = Result<std::unique_ptr<store::Store>>;

// Agents and users trust one authority alone, also after a change of the leader.
Status check_authority(const std::string& folder, const std::string& leader) {
  http::ClientOptions options;
  options.url = leader;
  options.connect_limit = options.response_limit = Seconds{1};
  REGATTA_TRY(ca, os::read_file(folder + "/ca.pem"));
  options.ca = ca;
  REGATTA_TRY(client, http::HttpClient::create(options));
  const auto response = client.send("GET", "/healthz");
  if (response || response.error().code != Code::kInvalidInput) return {};
  return Error{Code::kConflict,
               fmt::format("the leader {} has another authority than {}/ca.pem; copy its ca.pem "
                           "and ca.key into that folder",
                           leader, folder)};
}

// The store, once this controller leads. `follow` gets each leader; where it returns false the
// waiting ends.
MaybeStore win_store(store::EtcdStoreOptions options,
                     const std::function<Status(const std::string& leader)>& follow) {
  Status status;
  options.on_wait = [&](const std::string& leader) {
    status = follow(leader);
    return status.has_value();
  };
  for (;;) {
    MaybeStore store = store::open_etcd_store(options);
    if (!status) return status.error();
    if (store || (store.error().code != Code::kUnavailable && store.error().code != Code::kTimeout))
      return store;
    os::log_warning(store.error().message);
    status = follow("");
    if (!status) return status.error();
  }
}

}  // namespace

MaybeStore wait_to_lead(MemberOptions& options, EndSignal& end,
                        const std::function<void(const std::string&)>& ready) {
  http::EventLoop loop;
  REGATTA_TRY(follower, Follower::open(loop, options.folder, options.hosts, options.server));
  options.server.port = follower->port();
  if (options.url.empty())
    options.url = fmt::format(
        "https://{}:{}", options.hosts.empty() ? options.server.address : options.hosts.front(),
        follower->port());
  options.etcd.name = options.url;
  options.etcd.wait_most = Seconds{1e9};
  ready(options.url);
  std::string checked;
  std::optional<MaybeStore> store;
  std::thread waiter([&] {
    store = win_store(options.etcd, [&](std::string leader) -> Status {
      if (end.has_come()) return Error{Code::kUnavailable, "the program ends"};
      // The key of this controller's own earlier process, until its lease ends.
      if (leader == options.url) leader.clear();
      loop.post([&follower = *follower, leader] { follower.set_leader(leader); });
      if (leader.empty() || leader == checked) return {};
      checked = leader;
      return check_authority(options.folder, leader);
    });
    loop.post([&loop] { loop.stop(); });  // also where it does not run yet
  });
  loop.run();
  waiter.join();
  if (!*store && end.has_come()) return std::unique_ptr<store::Store>();
  return std::move(*store);
}

}  // namespace regatta::controller_service
