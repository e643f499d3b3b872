// store/internal/etcd/lease.h: a lease of etcd that a thread renews for as long as the object is.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <thread>

#include "regatta/base/core/mutex.h"
#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/platform/store/internal/etcd/client.h"

namespace regatta::store {

class EtcdLease {
 public:
  static Result<std::unique_ptr<EtcdLease>> grant(std::shared_ptr<EtcdClient> client,
                                                  Seconds length);
  EtcdLease(const EtcdLease&) = delete;
  EtcdLease& operator=(const EtcdLease&) = delete;
  // Gives the lease back, so that another controller need not wait for its end.
  ~EtcdLease();

  std::int64_t id() const { return id_; }
  // On the monotonic clock: etcd keeps the lease for as long at least, counted from the moment at
  // which the last renewal was sent and less a tenth, for the two clocks may differ. Any thread.
  Seconds valid_until() const { return Seconds{valid_until_s_.load()}; }

 private:
  EtcdLease(std::shared_ptr<EtcdClient> client, std::int64_t id, Seconds length, Seconds sent);
  void note_renewal(Seconds sent);
  void renew() REGATTA_EXCLUDES(mutex_);

  const std::shared_ptr<EtcdClient> client_;
  const std::int64_t id_;
  const Seconds length_;
  std::atomic<double> valid_until_s_ = 0;
  std::thread thread_;
  Mutex mutex_;
  ConditionVariable stopping_;
  bool is_stopped_ REGATTA_GUARDED_BY(mutex_) = false;
};

}  // namespace regatta::store
