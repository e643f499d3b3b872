#include "regatta/platform/store/internal/etcd/leadership.h"

#include <optional>
#include <utility>

#include "regatta/base/core/text.h"
#include "regatta/base/os/clock.h"

namespace regatta::store {
namespace {

constexpr Seconds kLookAgainAfter{0.1};

// Makes the leader's key with the lease when there is none. Gives etcd's revision of it, or nothing
// and the leader's name.
Result<std::optional<std::int64_t>> take_key(EtcdClient& client, const std::string& key,
                                             std::int64_t lease, std::string& name) {
  etcdserverpb::TxnRequest request;
  etcdserverpb::Compare& compare = *request.add_compare();
  compare.set_target(etcdserverpb::Compare::CREATE);
  compare.set_key(key);
  compare.set_create_revision(0);
  add_put(request, key, name, lease);
  add_read_on_failure(request, key);
  REGATTA_TRY(response, client.transact(request));
  if (response.succeeded()) return std::optional(response.header().revision());
  const auto& keys = response.responses(0).response_range().kvs();
  if (keys.empty()) return std::optional<std::int64_t>();
  name = keys[0].value();
  return std::optional<std::int64_t>();
}

}  // namespace

Result<std::unique_ptr<EtcdLeadership>> EtcdLeadership::win(std::shared_ptr<EtcdClient> client,
                                                            const EtcdStoreOptions& options) {
  const std::string key = EtcdKeys(options.prefix).leader();
  const Seconds end = os::monotonic_now() + options.wait_most;
  for (;;) {
    // A lost answer to the first try makes the second one find a key of its own; the lease goes
    // with the try, and the key with the lease.
    REGATTA_TRY(lease, EtcdLease::grant(client, options.lease));
    std::string name = options.name;
    REGATTA_TRY(revision, take_key(*client, key, lease->id(), name));
    if (revision)
      return std::unique_ptr<EtcdLeadership>(new EtcdLeadership(std::move(lease), key, *revision));
    lease.reset();
    for (;;) {
      etcdserverpb::RangeRequest request;
      request.set_key(key);
      REGATTA_TRY(response, client->read(request));
      const bool has_leader = !response.kvs().empty();
      const std::string leader = has_leader ? response.kvs(0).value() : "";
      if (options.on_wait && !options.on_wait(leader)) return lost_to(leader);
      if (!has_leader) break;
      if (os::monotonic_now() >= end) return lost_to(leader);
      os::sleep_for(kLookAgainAfter);
    }
  }
}

void EtcdLeadership::fence(etcdserverpb::TxnRequest& request) const {
  etcdserverpb::Compare& compare = *request.add_compare();
  compare.set_target(etcdserverpb::Compare::CREATE);
  compare.set_key(key_);
  compare.set_create_revision(revision_);
}

Error EtcdLeadership::lost_to(const std::string& leader) {
  if (leader.empty())
    return {Code::kConflict, "the lease of this controller has ended; it has to start again"};
  return {Code::kConflict, "controller '" + printable(leader, 80) +
                               "' leads; this one has to wait for the end of its lease"};
}

}  // namespace regatta::store
