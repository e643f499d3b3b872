#include "regatta/platform/store/internal/etcd/keys.h"

#include <fmt/format.h>

#include "regatta/platform/store/internal/etcd/client.h"

namespace regatta::store {

std::string EtcdKeys::commit(Revision last) const {
  return fmt::format("{}{:019}", commits(), last);
}

std::string EtcdKeys::parts_of(Revision last) const {
  return fmt::format("{}{:019}/", parts(), last);
}

std::string EtcdKeys::part(Revision last, std::size_t index) const {
  return fmt::format("{}{:06}", parts_of(last), index);
}

void add_put(etcdserverpb::TxnRequest& request, const std::string& key, std::string value,
             std::int64_t lease) {
  etcdserverpb::PutRequest& put = *request.add_success()->mutable_request_put();
  put.set_key(key);
  put.set_value(std::move(value));
  put.set_lease(lease);
}

void add_removal(etcdserverpb::TxnRequest& request, const std::string& key) {
  request.add_success()->mutable_request_delete_range()->set_key(key);
}

void add_removal_of_all(etcdserverpb::TxnRequest& request, const std::string& prefix) {
  etcdserverpb::DeleteRangeRequest& removal =
      *request.add_success()->mutable_request_delete_range();
  removal.set_key(prefix);
  removal.set_range_end(end_of_prefix(prefix));
}

void add_read_on_failure(etcdserverpb::TxnRequest& request, const std::string& key) {
  request.add_failure()->mutable_request_range()->set_key(key);
}

}  // namespace regatta::store
