// controller_service/test_service.h: a controller with a store in a fresh folder, for the tests.
#pragma once

#include <functional>
#include <future>
#include <memory>
#include <string>
#include <thread>
#include <type_traits>
#include <utility>

#include <gtest/gtest.h>
#include <nlohmann/json.hpp>

#include "regatta/base/http/event_loop.h"
#include "regatta/base/http/http_client.h"
#include "regatta/base/os/file.h"
#include "regatta/platform/controller_service/controller_service.h"
#include "regatta/platform/store/sqlite_store.h"

namespace regatta::controller_service {

class TestService {
 public:
  explicit TestService(const std::string& folder,
                       const std::function<void(ServiceOptions&)>& change = {})
      : folder_(folder) {
    store::SqliteStoreOptions store_options;
    store_options.folder = folder;
    store_options.reserve = Bytes{0};
    ServiceOptions options;
    options.folder = folder;
    options.runtime.policy = *sched::find_scheduling_policy("regatta");
    options.runtime.decision_interval = Seconds{0.01};
    if (change) change(options);
    auto store = store::open_sqlite_store(store_options);
    EXPECT_TRUE(store) << store.error().message;
    auto service = ControllerService::open(loop_, std::move(*store), options, [](const Error&) {});
    EXPECT_TRUE(service) << service.error().message;
    service_ = std::move(*service);
    url_ = "https://127.0.0.1:" + std::to_string(service_->port());
    thread_ = std::thread([this] { loop_.run(); });
  }
  ~TestService() {
    run([this] {
      service_.reset();
      return 0;
    });
    loop_.stop();
    thread_.join();
  }

  // Runs `work` in the loop's thread and waits for it.
  template <typename Work>
  std::invoke_result_t<Work> run(Work work) {
    std::packaged_task<std::invoke_result_t<Work>()> task(std::move(work));
    auto result = task.get_future();
    loop_.post([&task] { task(); });
    return result.get();
  }
  ControllerService& service() { return *service_; }
  http::EventLoop& loop() { return loop_; }
  std::string ca() const { return os::read_file(folder_ + "/ca.pem").value(); }
  std::string admin_token() const {
    const std::string text = os::read_file(folder_ + "/admin.token").value();
    return text.substr(0, text.find('\n'));
  }
  http::ClientOptions client_options() const {
    http::ClientOptions options;
    options.url = url_;
    options.ca = ca();
    return options;
  }
  // `token`: of the caller; empty: none.
  http::Response send(const std::string& method, const std::string& target,
                      const std::string& token, const std::string& body = "",
                      http::Headers headers = {}) const {
    auto client = http::HttpClient::create(client_options());
    EXPECT_TRUE(client) << client.error().message;
    if (!token.empty()) headers.emplace_back("Authorization", "Bearer " + token);
    auto response = client->send(method, target, headers, body);
    EXPECT_TRUE(response) << response.error().message;
    return response ? *response : http::Response{};
  }
  nlohmann::json get(const std::string& target) const {
    return nlohmann::json::parse(send("GET", target, admin_token()).body);
  }

 private:
  std::string folder_;
  http::EventLoop loop_;
  std::unique_ptr<ControllerService> service_;
  std::string url_;
  std::thread thread_;
};

}  // namespace regatta::controller_service
