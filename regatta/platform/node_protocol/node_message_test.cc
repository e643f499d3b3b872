#include "regatta/platform/node_protocol/node_message.h"

#include <limits>

#include <gmock/gmock.h>

#include "regatta/platform/node_protocol/controller_message.h"

namespace regatta::node_protocol {
namespace {

using control::OrderKind;
using testing::HasSubstr;
using testing::SizeIs;

NodeHello hello() {
  NodeHello hello;
  hello.capabilities = {"logs"};
  hello.facts.name = "gpu-17";
  hello.facts.device_type = "h100";
  hello.facts.devices = 8;
  hello.facts.memory_mib = 1 << 20;
  hello.facts.failed_devices = 0x80;
  hello.address = "10.0.0.17";
  hello.journal_id = "j";
  hello.boot_id = "b";
  hello.sent_ns = 42;
  return hello;
}

control::ReplicaOrder start_order() {
  control::ReplicaOrder order;
  order.key = {.job = 7, .attempt = 2, .replica = 1};
  order.fence = 99;
  order.command = {"python3", "train.py", "\xff"};
  order.environment = {{"A", "1"}, {"B", ""}};
  order.working_folder = "/home/u";
  order.user = "u";
  order.devices = 0xf0;
  order.slice = {.device_milli = 300, .device_memory_mib = 4096};
  order.first_rank = 8;
  order.ranks = 8;
  order.world_size = 16;
  order.head_address = "10.0.0.16";
  order.replicas = 2;
  order.hosts = {{"n1", 8}, {"n2", 8}};
  order.stop_signal = 10;
  order.container = {
      .path = "/image", .is_read_only = true, .mounts = {"/a"}, .cdi_devices = {"k/d=0"}};
  order.stop_grace = Seconds{0};
  return order;
}

template <typename Kind>
Kind sent(const Kind& message) {
  if constexpr (std::is_constructible_v<NodeMessage, Kind>) {
    const auto read = decode_node_message(encode(NodeMessage(message)));
    REGATTA_CHECK(read.has_value());
    return std::get<Kind>(*read);
  } else {
    const auto read = decode_controller_message(encode(ControllerMessage(message)));
    REGATTA_CHECK(read.has_value());
    return std::get<Kind>(*read);
  }
}

TEST(NodeProtocol, KeepsEveryFieldOfTheAgentsMessages) {
  const NodeHello read = sent(hello());
  EXPECT_EQ(read.facts.name, "gpu-17");
  EXPECT_EQ(read.facts.device_type, "h100");
  EXPECT_EQ(read.facts.failed_devices, 0x80U);
  EXPECT_EQ(read.facts.memory_mib, 1 << 20);
  EXPECT_EQ(read.address, "10.0.0.17");
  EXPECT_EQ(read.sent_ns, 42);
  EXPECT_THAT(read.capabilities, SizeIs(1));

  const control::ReplicaReport report{.key = {3, 1, 0},
                                      .fence = 5,
                                      .is_over = true,
                                      .exit_status = 2,
                                      .signal = 9,
                                      .is_node_fault = true,
                                      .running_for = Seconds{1.5}};
  const auto reports = sent(NodeReports{.is_complete = true, .reports = {report}});
  ASSERT_THAT(reports.reports, SizeIs(1));
  EXPECT_TRUE(reports.is_complete);
  EXPECT_EQ(reports.reports[0].key, report.key);
  EXPECT_EQ(reports.reports[0].signal, 9);
  EXPECT_EQ(reports.reports[0].exit_status, 2);
  EXPECT_TRUE(reports.reports[0].is_over && reports.reports[0].is_node_fault);
  EXPECT_EQ(reports.reports[0].running_for, Seconds{1.5});

  EXPECT_EQ(sent(NodeHeartbeat{.sent_ns = 8, .sequence = 9, .failed_devices = 1}).sequence, 9);
  EXPECT_EQ(sent(LogPart{.request = 1, .offset = 2, .data = std::string("a\0b", 3)}).data.size(),
            3U);
  EXPECT_EQ(sent(CertificateRequest{.request = "PEM"}).request, "PEM");
}

TEST(NodeProtocol, KeepsEveryFieldOfTheControllersMessages) {
  control::ReplicaOrder order = start_order();
  order.lease = Seconds{3};
  control::ReplicaOrder forget;
  forget.kind = OrderKind::kForget;
  forget.key = {.job = 1, .attempt = 1, .replica = 1};
  const auto orders = sent(NodeOrders{.orders = {order, forget}});
  ASSERT_THAT(orders.orders, SizeIs(2));
  const control::ReplicaOrder& read = orders.orders[0];
  EXPECT_EQ(read.key, order.key);
  EXPECT_EQ(read.command, order.command);
  EXPECT_EQ(read.environment, order.environment);
  EXPECT_EQ(read.working_folder, order.working_folder);
  EXPECT_EQ(read.user, order.user);
  EXPECT_EQ(read.devices, order.devices);
  EXPECT_EQ(read.slice, order.slice);
  EXPECT_EQ(read.first_rank, 8);
  EXPECT_EQ(read.world_size, 16);
  EXPECT_EQ(read.head_address, order.head_address);
  EXPECT_EQ(read.replicas, 2);
  EXPECT_EQ(read.hosts, order.hosts);
  EXPECT_EQ(read.container, order.container);
  EXPECT_EQ(read.stop_signal, 10);
  EXPECT_EQ(read.stop_grace, Seconds{0});
  EXPECT_LT(orders.orders[1].stop_grace.value, 0);
  EXPECT_EQ(read.lease, Seconds{3});
  const auto extension = sent(LeaseExtension{.sent_ns = 5, .lease = Seconds{30}});
  EXPECT_EQ(extension.sent_ns, 5);
  EXPECT_EQ(extension.lease, Seconds{30});
  EXPECT_EQ(orders.orders[1].kind, OrderKind::kForget);

  const auto welcome = sent(NodeWelcome{.lease = Seconds{20}, .heartbeat = Seconds{2}});
  EXPECT_EQ(welcome.lease, Seconds{20});
  EXPECT_EQ(welcome.heartbeat, Seconds{2});
  EXPECT_EQ(sent(HeartbeatAnswer{.sent_ns = 5}).sent_ns, 5);
  const auto log = sent(LogRequest{
      .request = 4, .key = {1, 1, 0}, .rank = 2, .is_following = true, .is_of_metrics = true});
  EXPECT_TRUE(log.is_following);
  EXPECT_EQ(log.rank, 2);
  EXPECT_EQ(sent(RenewedCertificate{.certificate = "PEM"}).certificate, "PEM");
  EXPECT_EQ(sent(NodeRefusal{.reason = "no"}).reason, "no");
}

// A varint field with the number 99, as a later version might add it.
constexpr std::string_view kNewField = "\x98\x06\x01";

TEST(NodeProtocol, SkipsFieldsAndKindsOfANewerVersion) {
  // Beside the message and, by a second part of field 1, which protobuf merges, within it.
  const std::string newer = encode(NodeMessage(hello())) + std::string(kNewField) +
                            std::string("\x0a\x03") + std::string(kNewField);
  const auto read = decode_node_message(newer);
  ASSERT_TRUE(read) << read.error().message;
  EXPECT_EQ(std::get<NodeHello>(*read).facts.name, "gpu-17");
  // Field 99 as the only kind of message.
  const auto unknown = decode_controller_message(kNewField);
  ASSERT_TRUE(unknown);
  EXPECT_TRUE(std::holds_alternative<std::monostate>(*unknown));
  // An order of a kind 9: Orders { orders { kind 9 } }.
  const auto orders = decode_controller_message("\x12\x04\x0a\x02\x08\x09");
  ASSERT_TRUE(orders) << orders.error().message;
  EXPECT_THAT(std::get<NodeOrders>(*orders).orders, SizeIs(0));
}

TEST(NodeProtocol, TakesDefaultsForFieldsThatAnOlderVersionLacks) {
  // A heartbeat that says when it was sent, and no more.
  const auto read = decode_node_message(std::string_view("\x1a\x02\x08\x05", 4));
  ASSERT_TRUE(read);
  EXPECT_EQ(std::get<NodeHeartbeat>(*read).sent_ns, 5);
  EXPECT_EQ(std::get<NodeHeartbeat>(*read).failed_devices, 0U);
}

template <typename Change>
std::string problem_of_hello(Change change) {
  NodeHello wrong = hello();
  change(wrong);
  const auto read = decode_node_message(encode(NodeMessage(wrong)));
  return read ? "" : read.error().message;
}

TEST(NodeProtocol, NamesTheFieldThatIsWrong) {
  EXPECT_THAT(problem_of_hello([](NodeHello& h) { h.facts.devices = 17; }), HasSubstr("devices"));
  EXPECT_THAT(problem_of_hello([](NodeHello& h) { h.facts.name = "a/b"; }), HasSubstr("'a/b'"));
  EXPECT_THAT(problem_of_hello([](NodeHello& h) { h.facts.failed_devices = 0x100; }),
              HasSubstr("failed_devices"));
  EXPECT_THAT(problem_of_hello([](NodeHello& h) { h.facts.memory_mib = -1; }),
              HasSubstr("memory_mib"));
  const auto decoded = [](const NodeWelcome& welcome) {
    return decode_controller_message(encode(ControllerMessage(welcome)));
  };
  EXPECT_FALSE(decoded({.lease = Seconds{std::numeric_limits<double>::quiet_NaN()}}));
  EXPECT_FALSE(decoded({.lease = Seconds{5}, .heartbeat = Seconds{6}}));
  EXPECT_FALSE(decode_node_message("\xff\xff"));
}

TEST(NodeProtocol, RefusesOrdersThatNoProcessCanHave) {
  const auto problem = [](auto change) {
    control::ReplicaOrder order = start_order();
    change(order);
    const auto read =
        decode_controller_message(encode(ControllerMessage(NodeOrders{.orders = {order}})));
    return read ? "" : read.error().message;
  };
  EXPECT_EQ(problem([](auto&) {}), "");
  EXPECT_THAT(problem([](auto& o) { o.command.clear(); }), HasSubstr("command"));
  EXPECT_THAT(problem([](auto& o) { o.command[0] = std::string("a\0b", 3); }), HasSubstr("byte 0"));
  EXPECT_THAT(problem([](auto& o) { o.environment[0].first = "A=B"; }), HasSubstr("environment"));
  EXPECT_THAT(problem([](auto& o) { o.first_rank = 9; }), HasSubstr("first_rank"));
  EXPECT_THAT(problem([](auto& o) { o.ranks = 0; }), HasSubstr("ranks"));
  EXPECT_THAT(problem([](auto& o) { o.key.attempt = 0; }), HasSubstr("key.attempt"));
}

TEST(NodeProtocol, KeepsReadingsOfDevices) {
  const DeviceReadings readings{
      .source = ReadingSource::kNvml,
      .devices = 0b101,
      .use = {97, kUnknownPercent},
      .memory = {40, 0},
      .has_shared = true,
      .shared = {{.name = "team-a", .device = 2, .use_percent = 30, .memory_mib = 4096}}};
  const DeviceReadings read = sent(readings);
  EXPECT_EQ(read.source, ReadingSource::kNvml);
  EXPECT_EQ(read.devices, 0b101U);
  EXPECT_EQ(read.use, readings.use);
  EXPECT_EQ(read.memory, readings.memory);
  EXPECT_TRUE(read.has_shared);
  EXPECT_EQ(read.shared, readings.shared);
}

TEST(NodeProtocol, RefusesReadingsThatAreNoPercentOrOfOtherDevices) {
  DeviceReadings readings{
      .source = ReadingSource::kNvml, .devices = 1, .use = {101}, .memory = {0}};
  const auto beyond = decode_node_message(encode(NodeMessage(readings)));
  ASSERT_FALSE(beyond);
  EXPECT_THAT(beyond.error().message, HasSubstr("field use: 101 is not within 0 and 100"));
  readings.use = {7};
  readings.devices = 0b11;
  EXPECT_FALSE(decode_node_message(encode(NodeMessage(readings))));
}

}  // namespace
}  // namespace regatta::node_protocol
