#include "regatta/platform/node_protocol/node_message.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <limits>
#include <utility>

#include "regatta/base/core/text.h"
#include "regatta/platform/node_protocol/internal/fields.h"

namespace regatta::node_protocol {
namespace {

constexpr std::int64_t kCountMost = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kTimeMost = std::numeric_limits<std::int64_t>::max();

void write_facts(const sched::ClusterNode& facts, proto::NodeFacts& to) {
  to.set_name(facts.name);
  to.set_device_type(facts.device_type);
  to.set_devices(facts.devices);
  to.set_device_memory_mib(facts.device_memory_mib);
  to.set_cpu_milli(facts.cpu_milli);
  to.set_memory_mib(facts.memory_mib);
  to.set_nics(facts.nics);
  to.set_numa_nodes(facts.numa_nodes);
  to.set_leaf(facts.leaf);
  to.set_group(facts.group);
  to.set_failed_devices(facts.failed_devices);
}

Result<sched::ClusterNode> read_facts(const proto::NodeFacts& from) {
  REGATTA_TRY_DO(check_node_name(from.name()));
  REGATTA_TRY_DO(check_length("device_type", from.device_type(), kNameBytesMax));
  REGATTA_TRY_DO(check_range("devices", from.devices(), 0, sched::kNodeDevicesMax));
  REGATTA_TRY_DO(check_range("numa_nodes", from.numa_nodes(), 1, 1024));
  for (const auto& [field, value] :
       {std::pair("device_memory_mib", from.device_memory_mib()),
        std::pair("cpu_milli", from.cpu_milli()), std::pair("memory_mib", from.memory_mib()),
        std::pair("nics", from.nics()), std::pair("leaf", from.leaf()),
        std::pair("group", from.group())})
    REGATTA_TRY_DO(check_range(field, value, 0, kCountMost));
  if (from.failed_devices() >> static_cast<unsigned>(from.devices()) != 0)
    return field_error("failed_devices", "it has bits of devices that there are not");
  sched::ClusterNode facts;
  facts.name = from.name();
  facts.device_type = from.device_type();
  facts.devices = from.devices();
  facts.device_memory_mib = from.device_memory_mib();
  facts.cpu_milli = from.cpu_milli();
  facts.memory_mib = from.memory_mib();
  facts.nics = from.nics();
  facts.numa_nodes = from.numa_nodes();
  facts.leaf = from.leaf();
  facts.group = from.group();
  facts.failed_devices = from.failed_devices();
  return facts;
}

void write(const NodeHello& hello, proto::AgentFrame& frame) {
  proto::Hello& to = *frame.mutable_hello();
  to.set_protocol_version(hello.protocol_version);
  to.mutable_capabilities()->Assign(hello.capabilities.begin(), hello.capabilities.end());
  write_facts(hello.facts, *to.mutable_facts());
  to.set_address(hello.address);
  to.set_journal_id(hello.journal_id);
  to.set_boot_id(hello.boot_id);
  to.set_sent_ns(hello.sent_ns);
  to.set_software(hello.software);
}

Result<NodeMessage> read(const proto::Hello& from) {
  REGATTA_TRY_DO(check_range("protocol_version", from.protocol_version(), 1, kCountMost));
  REGATTA_TRY_DO(check_length("address", from.address(), 256));
  REGATTA_TRY_DO(check_length("journal_id", from.journal_id(), kNameBytesMax));
  REGATTA_TRY_DO(check_length("boot_id", from.boot_id(), kNameBytesMax));
  REGATTA_TRY_DO(check_length("software", from.software(), kNameBytesMax));
  REGATTA_TRY_DO(check_range("sent_ns", from.sent_ns(), 0, kTimeMost));
  REGATTA_TRY(capabilities, read_capabilities(from.capabilities()));
  REGATTA_TRY(facts, read_facts(from.facts()));
  return NodeMessage(NodeHello{.protocol_version = from.protocol_version(),
                               .capabilities = std::move(capabilities),
                               .facts = std::move(facts),
                               .address = from.address(),
                               .journal_id = from.journal_id(),
                               .boot_id = from.boot_id(),
                               .sent_ns = from.sent_ns(),
                               .software = from.software()});
}

void write(const NodeReports& reports, proto::AgentFrame& frame) {
  proto::Reports& to = *frame.mutable_reports();
  to.set_is_complete(reports.is_complete);
  for (const control::ReplicaReport& report : reports.reports) {
    proto::Report& one = *to.add_reports();
    write_key(report.key, *one.mutable_key());
    one.set_fence(report.fence);
    one.set_is_over(report.is_over);
    one.set_exit_status(report.exit_status);
    one.set_signal(report.signal);
    one.set_is_node_fault(report.is_node_fault);
    one.set_running_for_s(report.running_for.value);
  }
}

Result<NodeMessage> read(const proto::Reports& from) {
  NodeReports reports{.is_complete = from.is_complete(), .reports = {}};
  for (const proto::Report& one : from.reports()) {
    REGATTA_TRY(key, read_key(one.key()));
    REGATTA_TRY_DO(check_range("fence", one.fence(), 0, kTimeMost));
    REGATTA_TRY_DO(check_range("exit_status", one.exit_status(), 0, 255));
    REGATTA_TRY_DO(check_range("signal", one.signal(), 0, 64));
    if (!std::isfinite(one.running_for_s()) || one.running_for_s() < 0)
      return field_error("running_for_s", "it is no time");
    reports.reports.push_back({.key = key,
                               .fence = one.fence(),
                               .is_over = one.is_over(),
                               .exit_status = one.exit_status(),
                               .signal = one.signal(),
                               .is_node_fault = one.is_node_fault(),
                               .running_for = Seconds{one.running_for_s()}});
  }
  return NodeMessage(std::move(reports));
}

void write(const NodeHeartbeat& heartbeat, proto::AgentFrame& frame) {
  proto::Heartbeat& to = *frame.mutable_heartbeat();
  to.set_sent_ns(heartbeat.sent_ns);
  to.set_sequence(heartbeat.sequence);
  to.set_failed_devices(heartbeat.failed_devices);
}

Result<NodeMessage> read(const proto::Heartbeat& from) {
  REGATTA_TRY_DO(check_range("sent_ns", from.sent_ns(), 0, kTimeMost));
  REGATTA_TRY_DO(check_range("sequence", from.sequence(), 0, kTimeMost));
  REGATTA_TRY_DO(check_range("failed_devices", from.failed_devices(), 0,
                             (std::int64_t{1} << sched::kNodeDevicesMax) - 1));
  return NodeMessage(NodeHeartbeat{.sent_ns = from.sent_ns(),
                                   .sequence = from.sequence(),
                                   .failed_devices = from.failed_devices()});
}

void write(const LogPart& part, proto::AgentFrame& frame) {
  proto::LogPart& to = *frame.mutable_log_part();
  to.set_request(part.request);
  to.set_offset(part.offset);
  to.set_data(part.data);
  to.set_is_last(part.is_last);
  to.set_error(part.error);
}

Result<NodeMessage> read(const proto::LogPart& from) {
  REGATTA_TRY_DO(check_range("request", from.request(), 0, kTimeMost));
  REGATTA_TRY_DO(check_range("offset", from.offset(), 0, kTimeMost));
  REGATTA_TRY_DO(check_range("data", static_cast<std::int64_t>(from.data().size()), 0,
                             static_cast<std::int64_t>(kLogPartBytesMax)));
  REGATTA_TRY_DO(check_length("error", from.error(), 1024));
  return NodeMessage(LogPart{.request = from.request(),
                             .offset = from.offset(),
                             .data = from.data(),
                             .is_last = from.is_last(),
                             .error = from.error()});
}

void write(const CertificateRequest& request, proto::AgentFrame& frame) {
  frame.mutable_certificate_request()->set_request(request.request);
}

Result<NodeMessage> read(const proto::CertificateRequest& from) {
  REGATTA_TRY_DO(check_length("certificate_request", from.request(), 16384));
  return NodeMessage(CertificateRequest{.request = from.request()});
}

void write(const DeviceReadings& readings, proto::AgentFrame& frame) {
  proto::DeviceReadings& to = *frame.mutable_device_readings();
  to.set_source(static_cast<int>(readings.source));
  to.set_devices(readings.devices);
  to.set_use(std::string(readings.use.begin(), readings.use.end()));
  to.set_memory(std::string(readings.memory.begin(), readings.memory.end()));
  to.set_has_shared(readings.has_shared);
  for (const SharedTenant& tenant : readings.shared) {
    proto::SharedTenant& one = *to.add_shared();
    one.set_name(tenant.name);
    one.set_device(tenant.device);
    one.set_use_percent(tenant.use_percent);
    one.set_memory_mib(tenant.memory_mib);
  }
}

Result<std::vector<std::uint8_t>> read_percents(std::string_view field, std::string_view from,
                                                int count) {
  REGATTA_TRY_DO(check_range(field, static_cast<std::int64_t>(from.size()), count, count));
  std::vector<std::uint8_t> percents(from.begin(), from.end());
  for (const std::uint8_t percent : percents)
    if (percent != kUnknownPercent) REGATTA_TRY_DO(check_range(field, percent, 0, 100));
  return percents;
}

Result<NodeMessage> read(const proto::DeviceReadings& from) {
  REGATTA_TRY_DO(check_range("source", from.source(), 0,
                             static_cast<std::int64_t>(kReadingSourceNames.size()) - 1));
  REGATTA_TRY_DO(
      check_range("devices", from.devices(), 0, (std::int64_t{1} << sched::kNodeDevicesMax) - 1));
  const int count = std::popcount(from.devices());
  REGATTA_TRY(use, read_percents("use", from.use(), count));
  REGATTA_TRY(memory, read_percents("memory", from.memory(), count));
  REGATTA_TRY_DO(
      check_range("shared", from.shared_size(), 0, static_cast<std::int64_t>(kSharedTenantsMax)));
  DeviceReadings readings{.source = static_cast<ReadingSource>(from.source()),
                          .devices = from.devices(),
                          .use = std::move(use),
                          .memory = std::move(memory),
                          .has_shared = from.has_shared()};
  for (const proto::SharedTenant& tenant : from.shared()) {
    REGATTA_TRY_DO(check_length("shared.name", tenant.name(), kNameBytesMax));
    REGATTA_TRY_DO(check_range("shared.device", tenant.device(), 0, sched::kNodeDevicesMax - 1));
    REGATTA_TRY_DO(check_range("shared.use_percent", tenant.use_percent(), 0, 100));
    REGATTA_TRY_DO(check_range("shared.memory_mib", tenant.memory_mib(), 0, kCountMost));
    readings.shared.push_back({.name = tenant.name(),
                               .device = tenant.device(),
                               .use_percent = tenant.use_percent(),
                               .memory_mib = tenant.memory_mib()});
  }
  return NodeMessage(std::move(readings));
}

void write(const std::monostate& /*unknown*/, proto::AgentFrame& /*frame*/) {}

}  // namespace

std::string encode(const NodeMessage& message) {
  proto::AgentFrame frame;
  std::visit([&](const auto& each) { write(each, frame); }, message);
  return frame.SerializeAsString();
}

Result<NodeMessage> decode_node_message(std::string_view bytes) {
  proto::AgentFrame frame;
  if (bytes.size() > kMessageBytesMax ||
      !frame.ParseFromArray(bytes.data(), static_cast<int>(bytes.size())))
    return field_error("frame", "these bytes are no message");
  switch (frame.kind_case()) {
    case proto::AgentFrame::kHello:
      return read(frame.hello());
    case proto::AgentFrame::kReports:
      return read(frame.reports());
    case proto::AgentFrame::kHeartbeat:
      return read(frame.heartbeat());
    case proto::AgentFrame::kLogPart:
      return read(frame.log_part());
    case proto::AgentFrame::kCertificateRequest:
      return read(frame.certificate_request());
    case proto::AgentFrame::kDeviceReadings:
      return read(frame.device_readings());
    case proto::AgentFrame::KIND_NOT_SET:
      break;
  }
  return NodeMessage();
}

Status check_node_name(std::string_view name) {
  const bool is_plain = std::all_of(name.begin(), name.end(), [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') ||
           (letter >= '0' && letter <= '9') || letter == '.' || letter == '-' || letter == '_';
  });
  if (is_plain && !name.empty() && name.size() <= kNameBytesMax) return {};
  return Error{Code::kInvalidInput,
               fmt::format("node '{}': no name of a node; use 1 to {} letters, digits, '.', '-' "
                           "and '_'",
                           printable(name, 60), kNameBytesMax)};
}

}  // namespace regatta::node_protocol
