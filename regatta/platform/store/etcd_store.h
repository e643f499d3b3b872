// store/etcd_store.h: the store in etcd, for several controllers with one leader: a lease decides
// who leads, and each commit proves it.
// Source: etcd's API reference, version 3.4; Jepsen, "etcd 3.4.3", 2020: its transactions hold, its
// locks alone do not exclude.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/platform/store/store.h"

namespace regatta::store {

// PEM texts, all empty without TLS. The certificate is for an etcd that asks for one.
struct EtcdTls {
  std::string ca;
  std::string certificate;
  std::string private_key;
};

struct EtcdStoreOptions {
  std::vector<std::string> endpoints;  // HOST:PORT; the first that answers is used
  EtcdTls tls;
  std::string prefix = "regatta/";  // of all keys; one for each cluster
  std::string name;                 // of this controller, for the others
  Seconds lease{2.0};               // whole seconds, at least etcd's least (2 by default)
  // For how long to wait for the end of another's lease; 0: not at all.
  Seconds wait_most{0.0};
  // Called again and again while it waits, with the name of the present leader ("": there is none);
  // waiting ends where it returns false. May be empty.
  std::function<bool(const std::string& leader)> on_wait;
  // After which an etcd that does not answer is an error.
  Seconds request_limit{10.0};
};

// Becomes the leader. kConflict names the present one; kUnavailable: etcd does not answer.
//
// Store::commit() is one transaction of etcd that holds only while this leader's key is the one
// that it made, and while no other commit came between; so a commit whose answer was lost can be
// sent again, and a leader that lost its lease gets kConflict however late it notices. A commit
// that exceeds a request of etcd is written in parts before, and counts from that transaction on.
// maintain() brings commits into the records, compacts etcd's history once a minute, and gives
// kConflict when another leads. kExhausted: etcd's quota is used up.
Result<std::unique_ptr<Store>> open_etcd_store(const EtcdStoreOptions& options);

// The name of the leader, "" when there is none.
Result<std::string> find_etcd_leader(const EtcdStoreOptions& options);

}  // namespace regatta::store
