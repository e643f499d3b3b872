// The API shows what the controller measures.
#include <string>

#include <gmock/gmock.h>

#include "regatta/base/os/clock.h"
#include "regatta/platform/controller_service/test_service.h"

namespace regatta::controller_service {
namespace {

using testing::HasSubstr;
using testing::Not;

class MonitoringTest : public testing::Test {
 protected:
  MonitoringTest() {
    run([](auto& core, const control::Moment& moment) {
      sched::ClusterNode facts;
      facts.name = "n0";
      facts.device_type = "h100";
      facts.devices = 4;
      return core.join({.facts = facts, .address = "n0", .journal_id = "j"}, moment).value();
    });
  }
  template <typename Work>
  void run(const Work& work) {
    service_->run([&] { return service_->service().runtime().change(work); });
  }
  void read(std::uint32_t devices, std::vector<std::uint8_t> use) {
    service_->run([&] {
      service_->service().monitor().devices().take(0,
                                                   {.source = node_protocol::ReadingSource::kNvml,
                                                    .devices = devices,
                                                    .use = use,
                                                    .memory = use});
      return 0;
    });
  }
  // Waits until the answer has the text; returns it.
  std::string wait_for(const std::string& target, const std::string& text) {
    std::string body;
    for (int round = 0; round < 500 && body.find(text) == std::string::npos; ++round) {
      os::sleep_for(Seconds{0.01});
      body = service_->send("GET", target, service_->admin_token()).body;
    }
    return body;
  }

  os::TempFolder folder_ = os::TempFolder::create().value();
  std::unique_ptr<TestService> service_ = std::make_unique<TestService>(folder_.path());
};

TEST_F(MonitoringTest, ShowsAllDevicesAndTheirChangesAfterwards) {
  read(0b1111, {0, 1, 2, 255});
  const nlohmann::json all = service_->get("/v1/devices");
  EXPECT_EQ(all.at("count"), 4);
  EXPECT_EQ(all.at("nodes"), nlohmann::json({"n0"}));
  EXPECT_EQ(all.at("counts"), "BA==");
  EXPECT_EQ(all.at("sources"), "AQ==");
  EXPECT_EQ(all.at("use"), "AAEC/w==");
  EXPECT_EQ(all.at("job"), "AAAAAAAAAAAAAAAAAAAAAA==");
  read(0b0100, {9});
  auto client = http::HttpClient::create(service_->client_options());
  ASSERT_TRUE(client);
  const http::Headers headers = {{"Authorization", "Bearer " + service_->admin_token()},
                                 {"Accept", "application/x-ndjson"}};
  std::string events;
  static_cast<void>(
      client->stream("GET", "/v1/watch?kinds=device&devices=" + all.at("cursor").get<std::string>(),
                     headers, [&](std::string_view piece) {
                       events += piece;
                       return events.find('\n') == std::string::npos;
                     }));
  EXPECT_THAT(events, HasSubstr(R"("use":{"runs":[2,1],"use":"CQ==","memory":"CQ=="})"));
  events.clear();
  static_cast<void>(client->stream("GET", "/v1/watch?kinds=device&devices=other", headers,
                                   [&](std::string_view piece) {
                                     events += piece;
                                     return events.find('\n') == std::string::npos;
                                   }));
  EXPECT_THAT(events, HasSubstr(R"("reset":true)"));
}

TEST_F(MonitoringTest, FiresAnAlertThatSurvivesARestart) {
  const std::string rules =
      R"({"rules":[{"name":"broken","kind":"device_failed","after_s":0,"clear_s":3600}]})";
  const std::string admin = service_->admin_token();
  EXPECT_EQ(service_->send("PUT", "/v1/alerts/rules", admin, rules).status, 428);
  EXPECT_EQ(
      service_->send("PUT", "/v1/alerts/rules", admin, R"({"rules":[{}]})", {{"If-Match", "0"}})
          .status,
      400);
  EXPECT_EQ(service_->send("PUT", "/v1/alerts/rules", admin, rules, {{"If-Match", "0"}}).status,
            200);
  run([](auto& core, const control::Moment&) {
    core.set_failed_devices(0, 0b11);
    return 0;
  });
  EXPECT_THAT(wait_for("/v1/alerts", "firing"), HasSubstr("node n0: 2 of 4 devices have failed"));
  service_.reset();
  service_ = std::make_unique<TestService>(folder_.path());
  const nlohmann::json alerts = service_->get("/v1/alerts");
  ASSERT_EQ(alerts.at("items").size(), 1U);
  EXPECT_EQ(alerts["items"][0]["phase"], "firing");
  EXPECT_EQ(service_->get("/v1/alerts/rules")["rules"][0]["name"], "broken");
}

TEST_F(MonitoringTest, WritesMetricsWithoutALabelForJobs) {
  const std::string text = service_->send("GET", "/metrics", service_->admin_token()).body;
  EXPECT_THAT(text, HasSubstr("regatta_devices{state=\"free\"}"));
  EXPECT_THAT(text, HasSubstr("regatta_alerts_firing{rule=\"disk-low\"} 0"));
  EXPECT_THAT(text, Not(HasSubstr("job=")));
}

}  // namespace
}  // namespace regatta::controller_service
