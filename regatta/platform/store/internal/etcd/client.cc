#include "regatta/platform/store/internal/etcd/client.h"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstddef>
#include <utility>

#include <fmt/format.h>
#include <grpcpp/grpcpp.h>

#include "regatta/base/core/text.h"
#include "regatta/base/os/clock.h"

namespace regatta::store {
namespace {

// Then the call is sent again over a new connection.
constexpr Seconds kTryLimit{1.0};
constexpr Seconds kTryAgainAfter{0.05};

// No answer: the server, the way to it, or its quorum is away.
bool is_silence(const grpc::Status& status) {
  return status.error_code() == grpc::StatusCode::DEADLINE_EXCEEDED ||
         status.error_code() == grpc::StatusCode::UNAVAILABLE;
}

std::chrono::system_clock::time_point deadline_in(Seconds time) {
  return std::chrono::system_clock::now() +
         std::chrono::microseconds(static_cast<std::int64_t>(time.value * 1e6));
}

std::shared_ptr<grpc::Channel> open_channel(const std::string& endpoint, const EtcdTls& tls) {
  grpc::ChannelArguments arguments;
  arguments.SetMaxReceiveMessageSize(-1);  // a page of large records
  arguments.SetInt(GRPC_ARG_INITIAL_RECONNECT_BACKOFF_MS, 100);
  arguments.SetInt(GRPC_ARG_MAX_RECONNECT_BACKOFF_MS, 500);
  // A new channel must not share the connection of the one that it replaces.
  arguments.SetInt(GRPC_ARG_USE_LOCAL_SUBCHANNEL_POOL, 1);
  // Or a variable of the environment would send all calls to a proxy.
  arguments.SetInt(GRPC_ARG_ENABLE_HTTP_PROXY, 0);
  // One endpoint for each channel, so that each server is known by its own name.
  return grpc::CreateCustomChannel(
      endpoint,
      tls.ca.empty() ? grpc::InsecureChannelCredentials()
                     : grpc::SslCredentials({tls.ca, tls.private_key, tls.certificate}),
      arguments);
}

}  // namespace

std::string end_of_prefix(std::string prefix) {
  REGATTA_CHECK(!prefix.empty() && static_cast<unsigned char>(prefix.back()) != 255);
  ++prefix.back();
  return prefix;
}

EtcdClient::EtcdClient(const std::vector<std::string>& endpoints, EtcdTls tls, Seconds limit)
    : endpoints_(endpoints),
      tls_(std::move(tls)),
      name_("etcd " + join(endpoints, ",")),
      limit_(limit),
      connection_(connect(0)) {}

std::shared_ptr<EtcdClient::Connection> EtcdClient::connect(std::size_t number) const {
  REGATTA_CHECK(!endpoints_.empty());
  const std::shared_ptr<grpc::Channel> channel =
      open_channel(endpoints_[number % endpoints_.size()], tls_);
  return std::make_shared<Connection>(
      Connection{etcdserverpb::KV::NewStub(channel), etcdserverpb::Lease::NewStub(channel)});
}

std::shared_ptr<EtcdClient::Connection> EtcdClient::connection() const {
  MutexLock lock(mutex_);
  return connection_;
}

void EtcdClient::replace(const std::shared_ptr<Connection>& silent) {
  MutexLock lock(mutex_);
  // Another thread may have been first.
  if (connection_ == silent) connection_ = connect(++replaced_);
}

Error EtcdClient::error_of(const grpc::Status& status) const {
  const bool is_full = status.error_code() == grpc::StatusCode::RESOURCE_EXHAUSTED;
  return {is_full ? Code::kExhausted : Code::kUnavailable,
          fmt::format("{}: {}", name_, printable(status.error_message(), 200))};
}

Status EtcdClient::call(
    const std::function<grpc::Status(Connection&, grpc::ClientContext*)>& send) {
  const double end = (os::monotonic_now() + limit_).value;
  for (;;) {
    const std::shared_ptr<Connection> used = connection();
    grpc::ClientContext context;
    const double left = end - os::monotonic_now().value;
    context.set_deadline(deadline_in({std::min(left, kTryLimit.value)}));
    const grpc::Status status = send(*used, &context);
    if (status.ok()) return {};
    if (!is_silence(status) || os::monotonic_now().value + kTryAgainAfter.value > end)
      return error_of(status);
    replace(used);
    os::sleep_for(kTryAgainAfter);
  }
}

Result<etcdserverpb::TxnResponse> EtcdClient::transact(const etcdserverpb::TxnRequest& request) {
  etcdserverpb::TxnResponse response;
  REGATTA_TRY_DO(call([&](Connection& used, grpc::ClientContext* context) {
    return used.records->Txn(context, request, &response);
  }));
  return response;
}

Result<etcdserverpb::RangeResponse> EtcdClient::read(const etcdserverpb::RangeRequest& request) {
  etcdserverpb::RangeResponse response;
  REGATTA_TRY_DO(call([&](Connection& used, grpc::ClientContext* context) {
    return used.records->Range(context, request, &response);
  }));
  return response;
}

Status EtcdClient::compact(std::int64_t revision) {
  etcdserverpb::CompactionRequest request;
  request.set_revision(revision);
  return call([&](Connection& used, grpc::ClientContext* context) {
    etcdserverpb::CompactionResponse response;
    const grpc::Status status = used.records->Compact(context, request, &response);
    // Another has compacted as far, or the first answer was lost.
    return status.error_code() == grpc::StatusCode::OUT_OF_RANGE ? grpc::Status::OK : status;
  });
}

Result<std::int64_t> EtcdClient::grant_lease(Seconds lease) {
  etcdserverpb::LeaseGrantRequest request;
  request.set_ttl(static_cast<std::int64_t>(std::ceil(lease.value)));
  etcdserverpb::LeaseGrantResponse response;
  REGATTA_TRY_DO(call([&](Connection& used, grpc::ClientContext* context) {
    return used.leases->LeaseGrant(context, request, &response);
  }));
  return response.id();
}

Status EtcdClient::renew_lease(std::int64_t id, Seconds limit) {
  grpc::ClientContext context;
  context.set_deadline(deadline_in(limit));
  const std::shared_ptr<Connection> used = connection();
  const auto stream = used->leases->LeaseKeepAlive(&context);
  etcdserverpb::LeaseKeepAliveRequest request;
  request.set_id(id);
  etcdserverpb::LeaseKeepAliveResponse response;
  const bool is_answered = stream->Write(request) && stream->Read(&response);
  // Ends the stream without waiting for the server's end of it.
  if (is_answered) context.TryCancel();
  const grpc::Status status = stream->Finish();
  if (!is_answered) {
    if (is_silence(status)) replace(used);
    return error_of(status);
  }
  if (response.ttl() > 0) return {};
  return Error{Code::kConflict, name_ + ": the lease of this controller has ended"};
}

Status EtcdClient::revoke_lease(std::int64_t id, Seconds limit) {
  grpc::ClientContext context;
  context.set_deadline(deadline_in(limit));
  etcdserverpb::LeaseRevokeRequest request;
  request.set_id(id);
  etcdserverpb::LeaseRevokeResponse response;
  const grpc::Status status = connection()->leases->LeaseRevoke(&context, request, &response);
  if (!status.ok()) return error_of(status);
  return {};
}

}  // namespace regatta::store
