// store/internal/etcd/leadership.h: the leader's key, which exists as long as its lease, and the
// fence that each of the leader's transactions carries.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "regatta/base/core/result.h"
#include "regatta/platform/store/etcd_store.h"
#include "regatta/platform/store/internal/etcd/client.h"
#include "regatta/platform/store/internal/etcd/keys.h"
#include "regatta/platform/store/internal/etcd/lease.h"

namespace regatta::store {

class EtcdLeadership {
 public:
  // kConflict names another leader whose lease lasts longer than the options' wait.
  static Result<std::unique_ptr<EtcdLeadership>> win(std::shared_ptr<EtcdClient> client,
                                                     const EtcdStoreOptions& options);

  // Adds the comparison that holds only while this leader leads.
  void fence(etcdserverpb::TxnRequest& request) const;
  // As Store::leads_until().
  Seconds leads_until() const { return lease_->valid_until(); }
  // The error that says who leads instead; `leader`: the value of the leader's key now.
  static Error lost_to(const std::string& leader);

 private:
  EtcdLeadership(std::unique_ptr<EtcdLease> lease, std::string key, std::int64_t revision)
      : lease_(std::move(lease)), key_(std::move(key)), revision_(revision) {}

  std::unique_ptr<EtcdLease> lease_;
  std::string key_;
  std::int64_t revision_;  // etcd's, at which the key was made
};

}  // namespace regatta::store
