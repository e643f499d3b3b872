// controller_service/cluster_member.h: one of several controllers over etcd: it follows the leader
// until it leads itself. A part of the program alone, for it links gRPC.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/http/http_server.h"
#include "regatta/platform/controller_service/end_signal.h"
#include "regatta/platform/store/etcd_store.h"

namespace regatta::controller_service {

struct MemberOptions {
  std::string folder;              // certificates
  std::vector<std::string> hosts;  // as in ServiceOptions
  http::ServerOptions server;      // gets the port that the system chose
  store::EtcdStoreOptions etcd;
  // At which users, agents and the other controllers reach this one; "": https://HOST:PORT with the
  // first of `hosts`, or else with the address of the server.
  std::string url;
};

// Serves as a follower (follower.h) until this controller leads, and gives its store; nothing when
// the program is to end. `ready`: called with the URL once it serves. kConflict where the leader
// has another authority.
Result<std::unique_ptr<store::Store>> wait_to_lead(
    MemberOptions& options, EndSignal& end, const std::function<void(const std::string&)>& ready);

}  // namespace regatta::controller_service
