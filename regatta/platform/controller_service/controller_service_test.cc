#include "regatta/platform/controller_service/controller_service.h"

#include <atomic>
#include <future>
#include <map>
#include <string>
#include <utility>
#include <variant>

#include <gmock/gmock.h>

#include "regatta/base/http/web_socket_client.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/tls/certificate.h"
#include "regatta/platform/api/access.h"
#include "regatta/platform/controller_service/test_service.h"
#include "regatta/platform/identity/secret.h"
#include "regatta/platform/node_protocol/controller_message.h"
#include "regatta/platform/store/backup.h"

namespace regatta::controller_service {
namespace {

using testing::HasSubstr;

constexpr const char* kJob = R"({"name":"hello","roles":[{"devices":1}],"command":["true"]})";

class ControllerServiceTest : public testing::Test {
 protected:
  os::TempFolder folder_ = os::TempFolder::create().value();
  TestService service_{folder_.path()};
  std::string admin_ = service_.admin_token();
};

TEST_F(ControllerServiceTest, TakesJobsAndShowsThem) {
  const http::Response made = service_.send("POST", "/v1/jobs", admin_, kJob);
  EXPECT_EQ(made.status, 201);
  const nlohmann::json job = nlohmann::json::parse(made.body);
  EXPECT_EQ(job.at("handle"), "hello-1");
  EXPECT_EQ(job.at("spec"), nlohmann::json::parse(kJob));
  EXPECT_EQ(service_.get("/v1/jobs/hello-1").at("status").at("phase"), "pending");
  EXPECT_EQ(service_.get("/v1/jobs?phase=pending").at("items").size(), 1U);
  EXPECT_EQ(service_.get("/v1/jobs?phase=running").at("items").size(), 0U);
  EXPECT_EQ(service_.send("POST", "/v1/jobs/1/cancel", admin_).status, 200);
  EXPECT_EQ(service_.get("/v1/jobs/1").at("status").at("phase"), "cancelled");
}

TEST_F(ControllerServiceTest, ListsJobsPageByPageTheNewestFirst) {
  std::string batch = R"({"jobs":[)";
  for (int i = 0; i < 7; ++i)
    batch += (i == 0 ? "" : ",") + std::string(kJob);
  EXPECT_EQ(service_.send("POST", "/v1/jobs", admin_, batch + "]}").status, 201);
  std::string seen;
  std::string target = "/v1/jobs?limit=3";
  for (int page = 0; page < 3; ++page) {
    const nlohmann::json list = service_.get(target);
    for (const auto& job : list.at("items"))
      seen += job.at("id").get<std::string>();
    if (!list.contains("next")) break;
    target = "/v1/jobs?limit=3&after=" + list.at("next").get<std::string>();
  }
  EXPECT_EQ(seen, "7654321");
}

TEST_F(ControllerServiceTest, RefusesWithARemedy) {
  const auto detail = [&](const http::Response& response) {
    return nlohmann::json::parse(response.body).at("detail").get<std::string>();
  };
  EXPECT_EQ(service_.send("GET", "/v1/jobs", "").status, 401);
  EXPECT_EQ(service_.send("GET", "/v1/jobs", "rgt_wrong").status, 401);
  EXPECT_EQ(service_.send("GET", "/v1/nothing", admin_).status, 404);
  EXPECT_EQ(service_.send("DELETE", "/v1/jobs", admin_).status, 405);
  const http::Response bad = service_.send("POST", "/v1/jobs", admin_, R"({"name":"x"})");
  EXPECT_EQ(bad.status, 400);
  EXPECT_THAT(detail(service_.send("GET", "/v1/jobs/9", admin_)), HasSubstr("regatta jobs"));
  EXPECT_THAT(detail(service_.send("GET", "/v1/jobs?limit=0", admin_)), HasSubstr("1 to 500"));
}

TEST_F(ControllerServiceTest, AnswersARepeatedRequestOnce) {
  const http::Headers key = {{"Idempotency-Key", "k1"}};
  const http::Response first = service_.send("POST", "/v1/jobs", admin_, kJob, key);
  const http::Response again = service_.send("POST", "/v1/jobs", admin_, kJob, key);
  EXPECT_EQ(nlohmann::json::parse(first.body).at("id"), nlohmann::json::parse(again.body).at("id"));
  EXPECT_EQ(service_.send("POST", "/v1/jobs", admin_, std::string(kJob) + " ", key).status, 422);
  EXPECT_EQ(service_.get("/v1/jobs").at("total"), 1);
}

TEST_F(ControllerServiceTest, ChangesAnObjectOnlyAsItWasRead) {
  const http::Response made = service_.send("POST", "/v1/jobs", admin_, kJob);
  const std::string tag(http::find_header(made.headers, "ETag"));
  const std::string patch = R"({"priority":5})";
  EXPECT_EQ(service_.send("PATCH", "/v1/jobs/1", admin_, patch).status, 428);
  EXPECT_EQ(service_.send("PATCH", "/v1/jobs/1", admin_, patch, {{"If-Match", tag}}).status, 200);
  EXPECT_EQ(service_.send("PATCH", "/v1/jobs/1", admin_, patch, {{"If-Match", tag}}).status, 412);
  EXPECT_EQ(service_.get("/v1/jobs/1").at("priority"), 5);
}

// Every route of the table with every role: what the role may not do is refused, and nothing else.
TEST_F(ControllerServiceTest, LetsEachRoleDoWhatTheTableSays) {
  service_.send("POST", "/v1/jobs", admin_, kJob);
  for (int role = 0; role < static_cast<int>(api::kAccessRoleNames.size()); ++role) {
    const std::string name = api::kAccessRoleNames[static_cast<std::size_t>(role)];
    const std::string secret = "rgt_" + name;
    const Status made = service_.run([&] {
      return service_.service().runtime().change([&](auto& core, const auto&) {
        core.add_token({.id = name, .user = name, .secret_hash = identity::secret_hash(secret)});
        return core.set_user({.name = name, .role = static_cast<api::AccessRole>(role)});
      });
    });
    ASSERT_TRUE(made);
    for (const api::Route& route : api::routes()) {
      if (!route.least || route.id == api::RouteId::kWatch) continue;
      std::string path(route.pattern);
      while (path.find('{') != std::string::npos)
        path.replace(path.find('{'), path.find('}') - path.find('{') + 1, "none");
      const int status = service_.send(std::string(route.method), path, secret, "{}").status;
      EXPECT_NE(status, 401) << route.pattern;
      EXPECT_EQ(status == 403, role < static_cast<int>(*route.least)) << name << route.pattern;
    }
  }
}

TEST_F(ControllerServiceTest, TellsWatchersOfChangesAndLetsThemResume) {
  const std::string rev = service_.get("/v1/jobs").at("rev");
  service_.send("POST", "/v1/jobs", admin_, kJob);
  auto client = http::HttpClient::create(service_.client_options());
  ASSERT_TRUE(client);
  std::string events;
  const http::Headers headers = {{"Authorization", "Bearer " + admin_}};
  const auto ended = client->stream("GET", "/v1/watch?kinds=job&from=" + rev, headers,
                                    [&](std::string_view piece) {
                                      events += piece;
                                      return events.find("hello-1") == std::string::npos;
                                    });
  EXPECT_THAT(events, HasSubstr("event: job\ndata: {\"kind\":\"job\""));
}

// A page that hears nothing for 5 s says that it is stale.
TEST_F(ControllerServiceTest, ShowsQuietWatchersThatItIsAlive) {
  auto client = http::HttpClient::create(service_.client_options());
  ASSERT_TRUE(client);
  std::string events;
  const auto ended =
      client->stream("GET", "/v1/watch?kinds=node", {{"Authorization", "Bearer " + admin_}},
                     [&](std::string_view piece) {
                       events += piece;
                       return events.find("event: alive\ndata: {}") == std::string::npos;
                     });
  EXPECT_THAT(events, HasSubstr("event: alive"));
}

TEST_F(ControllerServiceTest, KeepsItsSecretsFromOthers) {
  const std::string long_name = R"({"name":")" + std::string(2'000'000, 'n') + R"("})";
  EXPECT_EQ(service_.send("POST", "/v1/tokens", admin_, long_name).status, 400);
  const http::Response made = service_.send("POST", "/v1/tokens", admin_, R"({"name":"ci"})");
  ASSERT_EQ(made.status, 201);
  const std::string secret = nlohmann::json::parse(made.body).at("secret");
  EXPECT_EQ(service_.send("GET", "/v1/jobs", secret).status, 200);
  EXPECT_THAT(service_.send("GET", "/v1/tokens", admin_).body, testing::Not(HasSubstr(secret)));
  const std::string id = nlohmann::json::parse(made.body).at("token").at("id");
  EXPECT_EQ(service_.send("DELETE", "/v1/tokens/" + id, admin_).status, 200);
  EXPECT_EQ(service_.send("GET", "/v1/jobs", secret).status, 401);
}

TEST(ControllerServiceRestart, ContinuesWithTheSameJobsTokensAndCertificates) {
  const os::TempFolder folder = os::TempFolder::create().value();
  std::string admin;
  std::string ca;
  {
    TestService service(folder.path());
    admin = service.admin_token();
    ca = service.ca();
    service.send("POST", "/v1/jobs", admin, kJob);
  }
  TestService service(folder.path());
  EXPECT_EQ(service.ca(), ca);
  EXPECT_EQ(service.admin_token(), admin);
  EXPECT_EQ(service.get("/v1/jobs/hello-1").at("name"), "hello");
  EXPECT_EQ(service.send("GET", "/v1/watch?from=0", admin).status, 410);
}

TEST(ControllerServiceBackup, RestoresJobsRevisionsAndTokens) {
  const os::TempFolder folder = os::TempFolder::create().value();
  std::string admin;
  {
    TestService service(folder.path() + "/a");
    admin = service.admin_token();
    for (int i = 0; i < 3; ++i)
      service.send("POST", "/v1/jobs", admin, kJob);
    const http::Response file = service.send("GET", "/v1/backup", admin);
    ASSERT_EQ(file.status, 200) << file.body;
    EXPECT_EQ(std::to_string(file.body.size()), http::find_header(file.headers, "Regatta-Bytes"));
    ASSERT_TRUE(os::write_file(folder.path() + "/copy.db", file.body));
    service.send("POST", "/v1/jobs", admin, kJob);  // after the backup
  }
  const auto report = store::restore(folder.path() + "/copy.db", folder.path() + "/b");
  ASSERT_TRUE(report) << report.error().message;
  TestService service(folder.path() + "/b");
  const http::Response page = service.send("GET", "/v1/jobs", admin);
  ASSERT_EQ(page.status, 200) << page.body;
  EXPECT_EQ(nlohmann::json::parse(page.body).at("total"), 3);
  EXPECT_GE(std::stoll(nlohmann::json::parse(page.body).at("rev").get<std::string>()),
            report->revision);
}

TEST_F(ControllerServiceTest, KeepsAHistoryOfWhatHappened) {
  service_.send("POST", "/v1/jobs", admin_, kJob);
  service_.send("POST", "/v1/jobs/1/cancel", admin_);
  const nlohmann::json events = service_.get("/v1/events?object=hello-1");
  ASSERT_EQ(events.at("items").size(), 2U) << events;
  EXPECT_EQ(events["items"][0].at("reason"), "cancelled");
  EXPECT_EQ(events["items"][1].at("reason"), "submitted");
  EXPECT_EQ(service_.get("/v1/events?limit=1").at("next"), events["items"][0].at("id"));
  EXPECT_TRUE(service_.get("/v1/jobs/1/attempts").at("items").empty());
  EXPECT_EQ(service_.send("GET", "/v1/jobs/9/attempts", admin_).status, 404);
  EXPECT_EQ(service_.send("GET", "/v1/events?limit=0", admin_).status, 400);
}

TEST_F(ControllerServiceTest, SaysWhyAJobWaits) {
  service_.send("POST", "/v1/jobs", admin_, kJob);
  const nlohmann::json why = service_.get("/v1/jobs/hello-1/why");
  EXPECT_EQ(why.at("position"), 1) << why;
  EXPECT_EQ(why.at("ahead"), 0);
  EXPECT_EQ(why.at("start").at("known"), false);
  service_.send("POST", "/v1/jobs/1/hold", admin_);
  EXPECT_EQ(service_.get("/v1/jobs/1/why").at("blocking").at(0).at("kind"), "hold");
}

// An agent that the test plays: enrols, connects and answers orders.
TEST_F(ControllerServiceTest, StartsJobsOnServersThatJoin) {
  namespace wire = node_protocol;
  const std::string token = service_.run([&] { return service_.service().create_join_token(1); });
  const auto request = tls::create_request({.common_name = "n0"});
  ASSERT_TRUE(request);
  nlohmann::json body = {{"token", token}, {"name", "n0"}, {"csr", request->request}};
  const http::Response enrolled = service_.send("POST", "/v1/nodes/enroll", "", body.dump());
  ASSERT_EQ(enrolled.status, 200) << enrolled.body;
  body["name"] = "n1";
  EXPECT_EQ(service_.send("POST", "/v1/nodes/enroll", "", body.dump()).status, 401);
  http::ClientOptions options = service_.client_options();
  options.certificate_chain = nlohmann::json::parse(enrolled.body).at("certificate");
  options.private_key = request->private_key;

  std::unique_ptr<http::WebSocket> socket;
  std::promise<void> welcomed;
  std::promise<void> cancelled;  // of a log that is followed
  std::atomic<int> starts = 0;
  const auto receive = [&](std::string_view bytes) {
    const auto message = wire::decode_controller_message(bytes);
    ASSERT_TRUE(message);
    if (std::holds_alternative<wire::NodeWelcome>(*message)) {
      socket->send(encode(wire::NodeMessage(wire::NodeReports{.is_complete = true})));
      welcomed.set_value();
    }
    if (const auto* log = std::get_if<wire::LogRequest>(&*message)) {
      if (log->is_cancelled)
        cancelled.set_value();
      else
        socket->send(encode(wire::NodeMessage(wire::LogPart{
            .request = log->request, .offset = 0, .data = "x", .is_last = false, .error = {}})));
    }
    const auto* orders = std::get_if<wire::NodeOrders>(&*message);
    if (orders == nullptr) return;
    for (const control::ReplicaOrder& order : orders->orders) {
      if (order.kind != control::OrderKind::kStart) continue;
      ++starts;
      control::ReplicaReport report{.key = order.key, .fence = order.fence};
      socket->send(encode(wire::NodeMessage(wire::NodeReports{.reports = {report}})));
      report.is_over = true;
      socket->send(encode(wire::NodeMessage(wire::NodeReports{.reports = {report}})));
    }
  };
  service_.run([&] {
    connect_web_socket(service_.loop(), options, "/v1/nodes/connect", {},
                       [&](Result<std::unique_ptr<http::WebSocket>> opened) {
                         ASSERT_TRUE(opened) << opened.error().message;
                         socket = std::move(*opened);
                         socket->on_message(receive);
                         wire::NodeHello hello;
                         hello.facts.name = "n0";
                         hello.facts.device_type = "cpu";
                         hello.facts.devices = 2;
                         hello.facts.device_memory_mib = 1024;
                         hello.facts.numa_nodes = 1;
                         hello.address = "127.0.0.1";
                         hello.journal_id = "j";
                         hello.boot_id = "b";
                         socket->send(encode(wire::NodeMessage(hello)));
                       });
    return 0;
  });
  ASSERT_EQ(welcomed.get_future().wait_for(std::chrono::seconds(5)), std::future_status::ready);
  service_.send("POST", "/v1/jobs", admin_, kJob);
  std::string phase;
  for (int i = 0; i < 500 && phase != "succeeded"; ++i) {
    phase = service_.get("/v1/jobs/1").at("status").at("phase");
    os::sleep_for(Seconds{0.01});
  }
  EXPECT_EQ(phase, "succeeded");
  EXPECT_EQ(starts, 1);
  EXPECT_EQ(service_.get("/v1/nodes").at("items").at(0).at("status").at("connected"), true);
  const nlohmann::json attempts = service_.get("/v1/jobs/1/attempts").at("items");
  ASSERT_EQ(attempts.size(), 1U);
  EXPECT_EQ(attempts[0].at("replicas").at(0).at("node"), "n0");
  EXPECT_GT(attempts[0].at("ended_ms"), 0);
  EXPECT_EQ(service_.send("GET", "/v1/jobs/1/logs?attempt=7", admin_).status, 404);
  {
    auto reader = http::HttpClient::create(service_.client_options());
    ASSERT_TRUE(reader);
    const auto left = reader->stream("GET", "/v1/jobs/1/logs?follow=true",
                                     {{"Authorization", "Bearer " + admin_}},
                                     [](std::string_view) { return false; });
  }
  EXPECT_EQ(cancelled.get_future().wait_for(std::chrono::seconds(5)), std::future_status::ready);
  service_.run([&] {
    socket.reset();
    return 0;
  });
}

}  // namespace
}  // namespace regatta::controller_service
