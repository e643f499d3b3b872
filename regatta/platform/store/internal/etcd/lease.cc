#include "regatta/platform/store/internal/etcd/lease.h"

#include <utility>

#include "regatta/base/os/process.h"

namespace regatta::store {

Result<std::unique_ptr<EtcdLease>> EtcdLease::grant(std::shared_ptr<EtcdClient> client,
                                                    Seconds length) {
  REGATTA_TRY(id, client->grant_lease(length));
  return std::unique_ptr<EtcdLease>(new EtcdLease(std::move(client), id, length));
}

EtcdLease::EtcdLease(std::shared_ptr<EtcdClient> client, std::int64_t id, Seconds length)
    : client_(std::move(client)), id_(id), length_(length) {
  thread_ = os::signal_masked_thread([this] { renew(); });
}

EtcdLease::~EtcdLease() {
  {
    MutexLock lock(mutex_);
    is_stopped_ = true;
  }
  stopping_.notify_one();
  thread_.join();
  static_cast<void>(client_->revoke_lease(id_, length_).has_value());
}

void EtcdLease::renew() {
  // Four tries in the time of the lease.
  const Seconds every = length_ / 4;
  for (;;) {
    {
      MutexLock lock(mutex_);
      if (stopping_.wait_for(lock, every,
                             [this]() REGATTA_REQUIRES(mutex_) { return is_stopped_; }))
        return;
    }
    const Status renewed = client_->renew_lease(id_, every);
    // The commits find out that another leads; there is nothing left to renew.
    if (!renewed && renewed.error().code == Code::kConflict) return;
  }
}

}  // namespace regatta::store
