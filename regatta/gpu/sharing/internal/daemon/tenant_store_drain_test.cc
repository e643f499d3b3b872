// Devices that take nothing new.

#include <array>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/base/core/units.h"
#include "regatta/gpu/sharing/internal/daemon/test_daemon.h"

namespace regatta::sharing {
namespace {

using namespace regatta::literals;
using nlohmann::json;
using testing::HasSubstr;

std::string asked(const TestDaemon& daemon, const json& request) {
  const auto answer = daemon.query(request);
  return answer ? answer->dump() : answer.error().message;
}

json join_request(const char* gpu) {
  return {{"request", "join"}, {"name", "b"}, {"memory", {{gpu, kMiB}}}, {"compute_ppm", 1}};
}

// Asks for it in a process of its own, which would be the tenant's.
std::string try_to_join(const TestDaemon& daemon, const char* gpu) {
  Shared<std::array<char, 200>> text;
  wait_status(start_process([&] {
    const std::string answer = asked(daemon, join_request(gpu));
    answer.copy(text->data(), text->size() - 1);
    return 0;
  }));
  return text->data();
}

TEST(Drain, TakesNoNewTenantAndGivesNoMoreMemory) {
  const TestDaemon daemon({1_GiB, 1_GiB});
  Shared<std::atomic<int>> step;
  const auto wait_for = [&](int value) {
    const Seconds end = os::monotonic_now() + kTimeout;
    while (*step != value && os::monotonic_now() < end)
      os::sleep_for(Seconds{0.001});
    return *step == value;
  };
  const pid_t tenant = daemon.start_tenant("a", 100_MiB, [&](int page) {
    const auto client = Client::connect(page, kTimeout);
    EXPECT_IN_TENANT(client && (*client)->reserve(0, 20 * kMiB));
    *step = 1;
    EXPECT_IN_TENANT(wait_for(2));
    EXPECT_IN_TENANT((*client)->pages().spare(0) == 0);  // called back
    const Status more = (*client)->reserve(0, 1);
    EXPECT_IN_TENANT(!more && more.error().code == Code::kConflict);
    EXPECT_IN_TENANT(more.error().message.find("--undo") != std::string::npos);
    (*client)->release(0, kMiB);  // what it has stays its own
    EXPECT_IN_TENANT((*client)->reserve(0, kMiB));
    *step = 3;
    EXPECT_IN_TENANT(wait_for(4));
    EXPECT_IN_TENANT((*client)->reserve(0, 80 * kMiB) && !(*client)->reserve(0, 1));
    return 0;
  });
  ASSERT_TRUE(wait_for(1));
  const std::string shown =
      asked(daemon, {{"request", "drain"}, {"drained", true}, {"gpus", json::array({0})}});
  EXPECT_THAT(shown, HasSubstr(R"({"drained":true,"gpu":0,"tenants":["a"]})"));
  EXPECT_THAT(shown, HasSubstr(R"({"drained":false,"gpu":1,"tenants":[]})"));
  *step = 2;
  ASSERT_TRUE(wait_for(3));
  EXPECT_THAT(try_to_join(daemon, "0"), HasSubstr("GPU 0: is drained"));
  EXPECT_EQ(try_to_join(daemon, "1"), R"({"tenant":"b"})");
  const auto set = [&](std::uint64_t bytes) {
    return asked(daemon, {{"request", "set"}, {"name", "a"}, {"memory", {{"0", bytes}}}});
  };
  EXPECT_THAT(set(101 * kMiB), HasSubstr("is drained"));
  EXPECT_THAT(set(100 * kMiB), HasSubstr(R"("name":"a")"));
  EXPECT_TRUE((*daemon.query({{"request", "ps"}}))["gpus"][0]["drained"]);
  EXPECT_THAT(*send_control_request(daemon.socket(), R"({"request":"metrics"})"),
              HasSubstr("regatta_gpu_drained{gpu=\"0\"} 1\n"));
  asked(daemon, {{"request", "drain"}, {"drained", false}});
  *step = 4;
  EXPECT_EQ(wait_status(tenant), 0);
}

TEST(Drain, OutlivesTheDaemonUntilItIsUndone) {
  TestDaemon daemon({1_GiB, 1_GiB});
  asked(daemon, {{"request", "drain"}, {"drained", true}});
  daemon.kill();
  daemon.start();
  EXPECT_THAT(try_to_join(daemon, "1"), HasSubstr("GPU 1: is drained"));
  asked(daemon, {{"request", "drain"}, {"drained", false}, {"gpus", json::array({1})}});
  daemon.kill();
  daemon.start();
  EXPECT_EQ(try_to_join(daemon, "1"), R"({"tenant":"b"})");
  EXPECT_THAT(try_to_join(daemon, "0"), HasSubstr("GPU 0: is drained"));
}

TEST(Drain, OfAGpuThatIsNotThereIsRefused) {
  const TestDaemon daemon({1_GiB});
  for (const char* gpu : {"[1]", "[-1]", R"(["0"])", "[99999999999]"}) {
    EXPECT_THAT(
        asked(daemon, {{"request", "drain"}, {"drained", true}, {"gpus", json::parse(gpu)}}),
        HasSubstr("the daemon has GPU 0 to 0"));
  }
  EXPECT_THAT(asked(daemon, {{"request", "drain"}, {"drained", 1}}),
              HasSubstr("expected true or false"));
  EXPECT_THAT(asked(daemon, {{"request", "drain"}, {"drained", true}, {"gpus", 0}}),
              HasSubstr("expected a list"));
  EXPECT_THAT(asked(daemon, {{"request", "drain"}}), HasSubstr(R"("drained":false)"));
}

TEST(Drain, OfADamagedFileEndsTheDaemonInOneSentence) {
  const auto folder = os::TempFolder::create("vgpu").value();
  for (const char* text : {"", "{}", "[16]", "[-1]", "[\"0\"]"}) {
    ASSERT_TRUE(os::write_file_atomically(folder.path() + "/drained.json", text));
    auto state = MappedState::open(folder.path());
    ASSERT_TRUE(state);
    const auto tenant_store = TenantStore::open(std::move(*state), "/none", {{1_GiB}, {}});
    ASSERT_FALSE(tenant_store) << text;
    EXPECT_EQ(tenant_store.error().code, Code::kInvalidInput);
    EXPECT_THAT(tenant_store.error().message, HasSubstr("drained.json"));
  }
}

}  // namespace
}  // namespace regatta::sharing
