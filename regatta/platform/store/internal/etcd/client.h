// store/internal/etcd/client.h: calls of etcd's API, tried again until they have an answer.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "regatta/base/core/mutex.h"
#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/platform/store/etcd.grpc.pb.h"
#include "regatta/platform/store/etcd_store.h"

namespace regatta::store {

// Errors: kExhausted: etcd's quota is used up, or it has too much to do; nothing was changed.
// kUnavailable: no answer within the limit, and the call may have been carried out; or another
// error of etcd. Any thread.
class EtcdClient {
 public:
  EtcdClient(const std::vector<std::string>& endpoints, EtcdTls tls, Seconds limit);

  // Sent again after a lost answer: its comparisons make the second one harmless.
  Result<etcdserverpb::TxnResponse> transact(const etcdserverpb::TxnRequest& request);
  Result<etcdserverpb::RangeResponse> read(const etcdserverpb::RangeRequest& request);
  Status compact(std::int64_t revision);
  Result<std::int64_t> grant_lease(Seconds lease);
  // Sent once, with this limit. kConflict: the lease has ended.
  Status renew_lease(std::int64_t id, Seconds limit);
  Status revoke_lease(std::int64_t id, Seconds limit);

 private:
  struct Connection {
    std::unique_ptr<etcdserverpb::KV::Stub> records;
    std::unique_ptr<etcdserverpb::Lease::Stub> leases;
  };

  Status call(const std::function<grpc::Status(Connection&, grpc::ClientContext*)>& send);
  std::shared_ptr<Connection> connection() const REGATTA_EXCLUDES(mutex_);
  // After a call without an answer: a server can hold a connection and be silent. The next one is
  // to the next endpoint.
  void replace(const std::shared_ptr<Connection>& silent) REGATTA_EXCLUDES(mutex_);
  std::shared_ptr<Connection> connect(std::size_t number) const;
  Error error_of(const grpc::Status& status) const;

  // Constant after construction.
  std::vector<std::string> endpoints_;
  EtcdTls tls_;
  std::string name_;  // for errors
  Seconds limit_;

  mutable Mutex mutex_;
  std::shared_ptr<Connection> connection_ REGATTA_GUARDED_BY(mutex_);
  std::size_t replaced_ REGATTA_GUARDED_BY(mutex_) = 0;
};

// The first key behind all that begin with `prefix` (which ends with no byte 255).
std::string end_of_prefix(std::string prefix);

}  // namespace regatta::store
