// A coordinator with ranks that are threads of this test, and a script in place of the worker.
#include "regatta/platform/trainer/internal/gang_coordinator.h"

#include <atomic>
#include <filesystem>
#include <string>
#include <thread>

#include <gmock/gmock.h>
#include <sys/stat.h>

#include "regatta/base/os/file.h"
#include "regatta/platform/trainer/internal/gang_rank.h"
#include "regatta/platform/trainer/training_request.h"

namespace regatta::trainer {
namespace {

using testing::HasSubstr;

constexpr const char* kWorker = R"(#!/bin/sh
read spec
echo '{"event":"endpoint","text":"here"}'
read peers
case "$peers" in *'"here","here"'*) ;; *) exit 3;; esac
echo '{"event":"step","step":0,"loss":2.5,"time_s":0.5,"tokens":64}'
LAST
)";

class GangCoordinatorTest : public testing::Test {
 protected:
  void write_worker(const std::string& last) {
    std::string text = kWorker;
    text.replace(text.find("LAST"), 4, last);
    ASSERT_TRUE(os::write_file(worker_, text));
    ASSERT_EQ(::chmod(worker_.c_str(), 0755), 0);
  }

  // A free port, which nobody is likely to take until the next line.
  static os::HostPort free_port() {
    const auto listener = os::listen_tcp({"127.0.0.1", "0"});
    return os::local_endpoint(listener->get());
  }

  Status rank(int number, const os::HostPort& at, const std::string& gang = "1.1") {
    return run_rank(
        {.coordinator = at,
         .gang = gang,
         .member = {.rank = number, .node = "n", .host = "h", .cores = 2, .address = "127.0.0.1"},
         .worker = worker_});
  }

  CoordinatorOptions options(const os::HostPort& at) {
    return {
        .listen = at,
        .gang = "1.1",
        .world_size = 2,
        .job = parse_training(R"({"model":{"kind":"gpt","layers":2,"hidden":64,"heads":4,"seq":16,
                "vocab":256},"data":{"text":"/data"},"global_batch":8,"steps":3})")
                   .value(),
        .metrics_file = metrics_};
  }

  os::TempFolder folder_ = os::TempFolder::create().value();
  std::string worker_ = folder_.path() + "/worker";
  std::string metrics_ = folder_.path() + "/metrics";
};

TEST_F(GangCoordinatorTest, LetsTheWorkersMeetAndWritesTheirSteps) {
  write_worker(R"(echo '{"event":"done"}')");
  ASSERT_TRUE(os::write_file(metrics_, ""));
  const os::HostPort at = free_port();
  auto coordinator = GangCoordinator::listen(options(at));
  ASSERT_TRUE(coordinator) << coordinator.error().message;
  std::atomic<bool> stop{false};
  Status coordinated;
  Status second;
  std::thread gang([&] { coordinated = coordinator->run(stop); });
  std::thread other([&] { second = rank(1, at); });
  const Status first = rank(0, at);
  other.join();
  gang.join();
  EXPECT_TRUE(first) << first.error().message;
  EXPECT_TRUE(second) << second.error().message;
  EXPECT_TRUE(coordinated) << coordinated.error().message;
  const std::string metrics = os::read_file(metrics_).value();
  EXPECT_THAT(metrics, HasSubstr(R"({"predicted":{"memory_bytes")"));
  EXPECT_THAT(metrics, HasSubstr(R"({"name":"loss","step":0,"value":2.5)"));
}

TEST_F(GangCoordinatorTest, NamesTheRankWhoseWorkerFails) {
  write_worker(R"(echo '{"event":"error","code":"unavailable","message":"no disk"}'; exit 1)");
  const os::HostPort at = free_port();
  auto coordinator = GangCoordinator::listen(options(at));
  ASSERT_TRUE(coordinator) << coordinator.error().message;
  std::atomic<bool> stop{false};
  Status coordinated;
  std::thread gang([&] { coordinated = coordinator->run(stop); });
  std::thread other([&] { static_cast<void>(rank(1, at)); });
  EXPECT_FALSE(rank(0, at));
  other.join();
  gang.join();
  ASSERT_FALSE(coordinated);
  EXPECT_THAT(coordinated.error().message, HasSubstr("(node n): no disk"));
}

TEST_F(GangCoordinatorTest, RefusesARankOfAnotherGang) {
  write_worker("exit 0");
  const os::HostPort at = free_port();
  auto coordinator = GangCoordinator::listen(options(at));
  ASSERT_TRUE(coordinator) << coordinator.error().message;
  std::atomic<bool> stop{false};
  std::thread gang([&] { static_cast<void>(coordinator->run(stop)); });
  EXPECT_FALSE(rank(0, at, "2.1"));
  stop = true;
  gang.join();
}

}  // namespace
}  // namespace regatta::trainer
