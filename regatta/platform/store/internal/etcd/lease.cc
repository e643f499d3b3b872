#include "regatta/platform/store/internal/etcd/lease.h"

#include <utility>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/process.h"

namespace regatta::store {
namespace {

constexpr double kCertain = 0.9;  // of the length, by a clock that runs too slowly

}  // namespace

Result<std::unique_ptr<EtcdLease>> EtcdLease::grant(std::shared_ptr<EtcdClient> client,
                                                    Seconds length) {
  const Seconds sent = os::monotonic_now();
  REGATTA_TRY(id, client->grant_lease(length));
  return std::unique_ptr<EtcdLease>(new EtcdLease(std::move(client), id, length, sent));
}

EtcdLease::EtcdLease(std::shared_ptr<EtcdClient> client, std::int64_t id, Seconds length,
                     Seconds sent)
    : client_(std::move(client)), id_(id), length_(length) {
  note_renewal(sent);
  thread_ = os::signal_masked_thread([this] { renew(); });
}

void EtcdLease::note_renewal(Seconds sent) {
  valid_until_s_ = (sent + length_ * kCertain).value;
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
    const Seconds sent = os::monotonic_now();
    const Status renewed = client_->renew_lease(id_, every);
    if (renewed) note_renewal(sent);
    // The commits find out that another leads; there is nothing left to renew.
    if (!renewed && renewed.error().code == Code::kConflict) return;
  }
}

}  // namespace regatta::store
