// store/internal/etcd/keys.h: the keys of a store in etcd (docs/formats/store.md) and the requests
// that read and write them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>

#include "regatta/platform/store/etcd.pb.h"
#include "regatta/platform/store/store.h"

namespace regatta::store {

class EtcdKeys {
 public:
  explicit EtcdKeys(std::string prefix) : prefix_(std::move(prefix)) {}

  std::string leader() const { return prefix_ + "leader"; }
  std::string revision() const { return prefix_ + "revision"; }
  // All records, commits and parts have keys that begin with these.
  std::string records() const { return prefix_ + "record/"; }
  std::string commits() const { return prefix_ + "commit/"; }
  std::string parts() const { return prefix_ + "part/"; }
  std::string record(const std::string& key) const { return records() + key; }
  std::string commit(Revision last) const;
  // All parts of a commit, or one of them.
  std::string parts_of(Revision last) const;
  std::string part(Revision last, std::size_t index) const;

 private:
  std::string prefix_;
};

void add_put(etcdserverpb::TxnRequest& request, const std::string& key, std::string value,
             std::int64_t lease = 0);
void add_removal(etcdserverpb::TxnRequest& request, const std::string& key);
// All keys that begin with `prefix`.
void add_removal_of_all(etcdserverpb::TxnRequest& request, const std::string& prefix);
// Reads the key when the comparisons do not hold.
void add_read_on_failure(etcdserverpb::TxnRequest& request, const std::string& key);

}  // namespace regatta::store
