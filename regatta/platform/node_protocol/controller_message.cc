#include "regatta/platform/node_protocol/controller_message.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "regatta/platform/node_protocol/internal/fields.h"

namespace regatta::node_protocol {
namespace {

using control::OrderKind;

constexpr std::int64_t kMost = std::numeric_limits<std::int64_t>::max();
constexpr std::int64_t kDeviceMibMost = std::int64_t{1} << 24;
constexpr std::int64_t kRanksMost = std::int64_t{1} << 24;  // of a gang
constexpr std::int64_t kGraceMsMost = 3'600'001;
constexpr std::size_t kArgumentBytesMost = std::size_t{128} << 10;  // Linux, MAX_ARG_STRLEN

void write_order(const control::ReplicaOrder& order, proto::Order& to) {
  to.set_kind(static_cast<int>(order.kind) + 1);
  write_key(order.key, *to.mutable_key());
  to.set_fence(order.fence);
  if (order.kind != OrderKind::kStart) return;
  to.mutable_command()->Assign(order.command.begin(), order.command.end());
  for (const auto& [name, value] : order.environment) {
    proto::EnvironmentVariable& variable = *to.add_environment();
    variable.set_name(name);
    variable.set_value(value);
  }
  to.set_working_folder(order.working_folder);
  to.set_user(order.user);
  to.set_devices(order.devices);
  to.set_first_rank(order.first_rank);
  to.set_ranks(order.ranks);
  to.set_world_size(order.world_size);
  to.set_head_address(order.head_address);
  if (!order.slice.is_whole()) {
    to.set_device_milli(order.slice.device_milli);
    to.set_device_memory_mib(order.slice.device_memory_mib);
  }
  to.set_replicas(order.replicas);
  for (const control::GangHost& host : order.hosts) {
    proto::GangHost& one = *to.add_hosts();
    one.set_address(host.address);
    one.set_ranks(host.ranks);
  }
  if (!order.container.path.empty()) {
    proto::Container& container = *to.mutable_container();
    container.set_image(order.container.path);
    container.set_read_only(order.container.is_read_only);
    container.mutable_mounts()->Assign(order.container.mounts.begin(),
                                       order.container.mounts.end());
    container.mutable_cdi()->Assign(order.container.cdi_devices.begin(),
                                    order.container.cdi_devices.end());
  }
  to.set_stop_signal(order.stop_signal);
  if (order.stop_grace.value >= 0)
    to.set_stop_grace_ms(static_cast<std::int64_t>(order.stop_grace.value * 1000) + 1);
  to.set_lease_s(order.lease.value);
}

Status read_command(const proto::Order& from, control::ReplicaOrder& order) {
  REGATTA_TRY_DO(check_range("command", from.command_size(), 1, 65536));
  for (const std::string& argument : from.command())
    REGATTA_TRY_DO(check_length("command", argument, kArgumentBytesMost));
  order.command.assign(from.command().begin(), from.command().end());
  for (const proto::EnvironmentVariable& variable : from.environment()) {
    REGATTA_TRY_DO(check_length("environment", variable.name(), 4096));
    REGATTA_TRY_DO(check_length("environment", variable.value(), kArgumentBytesMost));
    if (variable.name().empty() || variable.name().find('=') != std::string::npos)
      return field_error("environment", "it has a variable without a proper name");
    order.environment.emplace_back(variable.name(), variable.value());
  }
  return {};
}

// Parts that earlier controllers do not send.
Status read_gang(const proto::Order& from, control::ReplicaOrder& order) {
  REGATTA_TRY_DO(check_range("replicas", from.replicas(), 0, kRanksMost));
  REGATTA_TRY_DO(check_range("hosts", from.hosts_size(), 0, control::kGangHostsMax));
  REGATTA_TRY_DO(check_range("stop_signal", from.stop_signal(), 0, 64));
  REGATTA_TRY_DO(check_range("stop_grace_ms", from.stop_grace_ms(), 0, kGraceMsMost));
  order.replicas = std::max(1, from.replicas());
  for (const proto::GangHost& host : from.hosts()) {
    REGATTA_TRY_DO(check_length("hosts", host.address(), 256));
    REGATTA_TRY_DO(check_range("hosts", host.ranks(), 1, kReplicaRanksMax));
    order.hosts.push_back({.address = host.address(), .ranks = host.ranks()});
  }
  if (from.stop_signal() > 0) order.stop_signal = from.stop_signal();
  if (from.stop_grace_ms() > 0)
    order.stop_grace = Seconds{static_cast<double>(from.stop_grace_ms() - 1) / 1000};
  return {};
}

Status read_container(const proto::Container& from, control::ContainerImage& container) {
  REGATTA_TRY_DO(check_length("container", from.image(), 4096));
  REGATTA_TRY_DO(check_range("container", from.mounts_size() + from.cdi_size(), 0, 1024));
  for (const std::string& mount : from.mounts())
    REGATTA_TRY_DO(check_length("container", mount, 4096));
  for (const std::string& device : from.cdi())
    REGATTA_TRY_DO(check_length("container", device, 256));
  container.path = from.image();
  container.is_read_only = from.read_only();
  container.mounts.assign(from.mounts().begin(), from.mounts().end());
  container.cdi_devices.assign(from.cdi().begin(), from.cdi().end());
  return {};
}

Status read_start(const proto::Order& from, control::ReplicaOrder& order) {
  REGATTA_TRY_DO(read_command(from, order));
  REGATTA_TRY_DO(check_length("working_folder", from.working_folder(), 4096));
  REGATTA_TRY_DO(check_length("user", from.user(), kNameBytesMax));
  REGATTA_TRY_DO(check_length("head_address", from.head_address(), 256));
  REGATTA_TRY_DO(check_range("ranks", from.ranks(), 1, kReplicaRanksMax));
  REGATTA_TRY_DO(check_range("world_size", from.world_size(), from.ranks(), kRanksMost));
  REGATTA_TRY_DO(check_range("first_rank", from.first_rank(), 0, from.world_size() - from.ranks()));
  REGATTA_TRY_DO(check_range("device_milli", from.device_milli(), 0, sched::kDeviceMilli));
  REGATTA_TRY_DO(check_range("device_memory_mib", from.device_memory_mib(), 0, kDeviceMibMost));
  if (from.device_milli() > 0)
    order.slice = {.device_milli = from.device_milli(),
                   .device_memory_mib = from.device_memory_mib()};
  order.working_folder = from.working_folder();
  order.user = from.user();
  order.devices = from.devices();
  order.first_rank = from.first_rank();
  order.ranks = from.ranks();
  order.world_size = from.world_size();
  order.head_address = from.head_address();
  if (!(from.lease_s() >= 0)) return field_error("lease_s", "it is below 0");
  order.lease = Seconds{from.lease_s()};
  if (from.has_container()) REGATTA_TRY_DO(read_container(from.container(), order.container));
  return read_gang(from, order);
}

// Written so that a value that is no number fails.
Status check_lease(double lease_s) {
  if (!(lease_s >= 1 && lease_s <= 86400))
    return field_error("lease_s", "it is not within 1 and 86400");
  return {};
}

void write(const NodeWelcome& welcome, proto::ControllerFrame& frame) {
  proto::Welcome& to = *frame.mutable_welcome();
  to.set_protocol_version(welcome.protocol_version);
  to.mutable_capabilities()->Assign(welcome.capabilities.begin(), welcome.capabilities.end());
  to.set_lease_s(welcome.lease.value);
  to.set_heartbeat_s(welcome.heartbeat.value);
  to.set_sent_ns(welcome.sent_ns);
}

Result<ControllerMessage> read(const proto::Welcome& from) {
  REGATTA_TRY_DO(check_range("protocol_version", from.protocol_version(), 1, kMost));
  REGATTA_TRY(capabilities, read_capabilities(from.capabilities()));
  REGATTA_TRY_DO(check_lease(from.lease_s()));
  if (!(from.heartbeat_s() >= 0.05 && from.heartbeat_s() <= from.lease_s()))
    return field_error("heartbeat_s", "it is not within 0.05 and the lease");
  REGATTA_TRY_DO(check_range("sent_ns", from.sent_ns(), 0, kMost));
  return ControllerMessage(NodeWelcome{.protocol_version = from.protocol_version(),
                                       .capabilities = std::move(capabilities),
                                       .lease = Seconds{from.lease_s()},
                                       .heartbeat = Seconds{from.heartbeat_s()},
                                       .sent_ns = from.sent_ns()});
}

void write(const NodeOrders& orders, proto::ControllerFrame& frame) {
  proto::Orders& to = *frame.mutable_orders();
  for (const control::ReplicaOrder& order : orders.orders)
    write_order(order, *to.add_orders());
}

Result<ControllerMessage> read(const proto::Orders& from) {
  NodeOrders orders;
  for (const proto::Order& one : from.orders()) {
    if (one.kind() < 1 || one.kind() > 3) continue;  // of a newer controller
    REGATTA_TRY(key, read_key(one.key()));
    REGATTA_TRY_DO(check_range("fence", one.fence(), 0, kMost));
    control::ReplicaOrder order;
    order.kind = static_cast<OrderKind>(one.kind() - 1);
    order.key = key;
    order.fence = one.fence();
    if (order.kind == OrderKind::kStart) REGATTA_TRY_DO(read_start(one, order));
    orders.orders.push_back(std::move(order));
  }
  return ControllerMessage(std::move(orders));
}

void write(const HeartbeatAnswer& answer, proto::ControllerFrame& frame) {
  frame.mutable_heartbeat_answer()->set_sent_ns(answer.sent_ns);
}

Result<ControllerMessage> read(const proto::HeartbeatAnswer& from) {
  REGATTA_TRY_DO(check_range("sent_ns", from.sent_ns(), 0, kMost));
  return ControllerMessage(HeartbeatAnswer{.sent_ns = from.sent_ns()});
}

void write(const LogRequest& request, proto::ControllerFrame& frame) {
  proto::LogRequest& to = *frame.mutable_log_request();
  to.set_request(request.request);
  write_key(request.key, *to.mutable_key());
  to.set_rank(request.rank);
  to.set_offset(request.offset);
  to.set_length(request.length);
  to.set_follow(request.is_following);
  to.set_cancel(request.is_cancelled);
  to.set_metrics(request.is_of_metrics);
}

Result<ControllerMessage> read(const proto::LogRequest& from) {
  REGATTA_TRY_DO(check_range("request", from.request(), 0, kMost));
  LogRequest request{.request = from.request(), .key = {}, .is_cancelled = from.cancel()};
  if (!request.is_cancelled) {
    REGATTA_TRY(key, read_key(from.key()));
    REGATTA_TRY_DO(check_range("rank", from.rank(), 0, kReplicaRanksMax - 1));
    REGATTA_TRY_DO(check_range("offset", from.offset(), 0, kMost));
    REGATTA_TRY_DO(check_range("length", from.length(), 0, kMost));
    request.key = key;
    request.rank = from.rank();
    request.offset = from.offset();
    request.length = from.length();
    request.is_following = from.follow();
    request.is_of_metrics = from.metrics();
  }
  return ControllerMessage(request);
}

void write(const RenewedCertificate& renewed, proto::ControllerFrame& frame) {
  frame.mutable_certificate()->set_certificate(renewed.certificate);
}

Result<ControllerMessage> read(const proto::Certificate& from) {
  REGATTA_TRY_DO(check_length("certificate", from.certificate(), 65536));
  return ControllerMessage(RenewedCertificate{.certificate = from.certificate()});
}

void write(const NodeRefusal& refusal, proto::ControllerFrame& frame) {
  frame.mutable_refusal()->set_reason(refusal.reason);
}

Result<ControllerMessage> read(const proto::Refusal& from) {
  REGATTA_TRY_DO(check_length("reason", from.reason(), 1024));
  return ControllerMessage(NodeRefusal{.reason = from.reason()});
}

void write(const LeaseExtension& extension, proto::ControllerFrame& frame) {
  proto::LeaseExtension& to = *frame.mutable_lease_extension();
  to.set_sent_ns(extension.sent_ns);
  to.set_lease_s(extension.lease.value);
}

Result<ControllerMessage> read(const proto::LeaseExtension& from) {
  REGATTA_TRY_DO(check_range("sent_ns", from.sent_ns(), 0, kMost));
  REGATTA_TRY_DO(check_lease(from.lease_s()));
  return ControllerMessage(
      LeaseExtension{.sent_ns = from.sent_ns(), .lease = Seconds{from.lease_s()}});
}

void write(const std::monostate& /*unknown*/, proto::ControllerFrame& /*frame*/) {}

}  // namespace

std::string encode(const ControllerMessage& message) {
  proto::ControllerFrame frame;
  std::visit([&](const auto& each) { write(each, frame); }, message);
  return frame.SerializeAsString();
}

Result<ControllerMessage> decode_controller_message(std::string_view bytes) {
  proto::ControllerFrame frame;
  if (bytes.size() > kMessageBytesMax ||
      !frame.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return field_error("frame", "these bytes are no message");
  switch (frame.kind_case()) {
    case proto::ControllerFrame::kWelcome:
      return read(frame.welcome());
    case proto::ControllerFrame::kOrders:
      return read(frame.orders());
    case proto::ControllerFrame::kHeartbeatAnswer:
      return read(frame.heartbeat_answer());
    case proto::ControllerFrame::kLogRequest:
      return read(frame.log_request());
    case proto::ControllerFrame::kCertificate:
      return read(frame.certificate());
    case proto::ControllerFrame::kRefusal:
      return read(frame.refusal());
    case proto::ControllerFrame::kLeaseExtension:
      return read(frame.lease_extension());
    case proto::ControllerFrame::KIND_NOT_SET:
      break;
  }
  return ControllerMessage();
}

}  // namespace regatta::node_protocol
