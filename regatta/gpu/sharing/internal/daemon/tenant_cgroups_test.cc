// Tenants whose processes are known by their cgroup, over a real daemon and real cgroups.

#include "regatta/gpu/sharing/internal/daemon/tenant_cgroups.h"

#include <cstring>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/base/core/units.h"
#include "regatta/gpu/sharing/internal/client/launch_gate.h"
#include "regatta/gpu/sharing/internal/daemon/test_cgroup.h"
#include "regatta/gpu/sharing/internal/daemon/test_daemon.h"

namespace regatta::sharing {
namespace {

using namespace regatta::literals;
using nlohmann::json;
using testing::HasSubstr;

class ByCgroup : public testing::TestWithParam<os::CgroupVersion> {
 protected:
  void SetUp() override {
    if (!cgroup_) GTEST_SKIP() << "this user may make no cgroup of this version";
  }

  std::string enroll(const json& more = json::object()) const {
    json request{{"request", "enroll"},
                 {"name", "a"},
                 {"cgroup", cgroup_->name()},
                 {"memory", {{"0", 100 * kMiB}}},
                 {"compute_ppm", 100'000}};
    request.update(more);
    return asked(request);
  }
  std::string asked(const json& request) const {
    const auto answer = daemon_.query(request);
    return answer ? "done" : answer.error().message;
  }
  // A process in the group that takes `take` bytes and must not get one more than `quota`.
  int take(std::uint64_t take, std::uint64_t quota, const std::string& below = "") const {
    return wait_status(start_process([&] {
      EXPECT_IN_TENANT(cgroup_->join(below));
      const auto client = Client::connect_by_cgroup(daemon_.socket(), kTimeout);
      EXPECT_IN_TENANT(client && (*client)->pages().tenant().quota[0] == quota);
      EXPECT_IN_TENANT((*client)->reserve(0, take));
      const Status more = (*client)->reserve(0, quota - take + 1);
      EXPECT_IN_TENANT(!more && more.error().code == Code::kExhausted);
      return 0;
    }));
  }
  std::size_t tenants() const { return (*daemon_.query({{"request", "ps"}}))["tenants"].size(); }
  bool ends() const {
    const Seconds end = os::monotonic_now() + kTimeout;
    while (tenants() != 0 && os::monotonic_now() < end)
      os::sleep_for(Seconds{0.01});
    return tenants() == 0;
  }

  TestDaemon daemon_;
  const std::optional<TestCgroup> cgroup_ = TestCgroup::create(GetParam());
};

TEST_P(ByCgroup, AProcessThereIsTheTenantsAndItsChildrenAreToo) {
  ASSERT_EQ(enroll(), "done");
  EXPECT_EQ(take(100 * kMiB, 100 * kMiB), 0);
  EXPECT_EQ(take(1, 100 * kMiB, "inner"), 0);
  EXPECT_EQ(tenants(), 1U);  // it does not end with its processes
  const int status = wait_status(start_process([&] {
    EXPECT_IN_TENANT(cgroup_->join("inner"));
    const auto client = Client::connect_by_cgroup(daemon_.socket(), kTimeout);
    EXPECT_IN_TENANT(client && (*client)->reserve(0, 60 * kMiB));
    return wait_status(start_process([&] {
      ::setsid();
      ::clearenv();
      const auto own = Client::connect_by_cgroup(daemon_.socket(), kTimeout);
      EXPECT_IN_TENANT(own && (*own)->reserve(0, 40 * kMiB) && !(*own)->reserve(0, 1));
      return 0;
    }));
  }));
  EXPECT_EQ(status, 0);
}

// A device that is done with everything at once.
class IdleDevice : public StreamEvents {
 public:
  Event record(void*) override { return nullptr; }
  bool is_capturing(void*) override { return false; }
  void wait(Event) override {}
  bool is_reached(Event) override { return true; }
  std::optional<std::uint64_t> between_ns(Event, Event) override { return {}; }
  void release(Event) override {}
};

// Under fixed shares a tenant that counted as absent would have no part, and never a turn.
TEST_P(ByCgroup, ItsFirstProcessHasTheTenantsPartOfTheTime) {
  ASSERT_EQ(enroll(), "done");
  const int status = wait_status(start_process([&] {
    EXPECT_IN_TENANT(cgroup_->join());
    const auto client = Client::connect_by_cgroup(daemon_.socket(), kTimeout);
    EXPECT_IN_TENANT(client);
    IdleDevice device;
    LaunchGate gate(**client, 0, device);
    int stream = 0;
    const Seconds before = os::monotonic_now();
    gate.launched(gate.pass(KernelDurations::key_of(&device, 1), &stream), &stream);
    EXPECT_IN_TENANT(os::monotonic_now() - before < Seconds{5.0});
    return 0;
  }));
  EXPECT_EQ(status, 0);
}

TEST_P(ByCgroup, AProcessElsewhereIsRefusedInOneSentence) {
  ASSERT_EQ(enroll(), "done");
  const auto other = TestCgroup::create(GetParam());
  ASSERT_TRUE(other);
  const auto try_it = [&] {
    const auto client = Client::connect_by_cgroup(daemon_.socket(), kTimeout);
    EXPECT_IN_TENANT(!client && client.error().code == Code::kNotFound);
    EXPECT_IN_TENANT(client.error().message.find("regatta gpu enroll") != std::string::npos);
    return 0;
  };
  EXPECT_EQ(wait_status(start_process(try_it)), 0);
  EXPECT_EQ(wait_status(start_process([&] { return other->join() ? try_it() : 2; })), 0);
}

TEST_P(ByCgroup, TheGroupAndWhatItHoldsOutliveTheDaemon) {
  ASSERT_EQ(enroll(), "done");
  Shared<std::atomic<int>> step;
  const pid_t tenant = start_process([&] {
    EXPECT_IN_TENANT(cgroup_->join());
    const auto client = Client::connect_by_cgroup(daemon_.socket(), kTimeout);
    EXPECT_IN_TENANT(client && (*client)->reserve(0, 60 * kMiB));
    *step = 1;
    while (*step != 2)
      os::sleep_for(Seconds{0.001});
    EXPECT_IN_TENANT((*client)->reserve(0, 40 * kMiB) && !(*client)->reserve(0, 1));
    return 0;
  });
  while (*step != 1)
    os::sleep_for(Seconds{0.001});
  daemon_.kill();
  daemon_.start();
  EXPECT_EQ(daemon_.memory("used_bytes"), 60LL << 20);
  *step = 2;
  EXPECT_EQ(wait_status(tenant), 0);
  EXPECT_EQ(take(100 * kMiB, 100 * kMiB), 0);
  daemon_.kill();  // now with a tenant that has no process
  daemon_.start();
  EXPECT_EQ(take(100 * kMiB, 100 * kMiB), 0);
}

TEST_P(ByCgroup, ATenantEndsWithItsCgroup) {
  ASSERT_EQ(enroll(), "done");
  cgroup_->remove();
  EXPECT_TRUE(ends());
  // One that is made anew under the path is another, also for a daemon that was not there.
  ASSERT_TRUE(cgroup_->make());
  ASSERT_EQ(enroll(), "done");
  daemon_.kill();
  cgroup_->remove();
  ASSERT_TRUE(cgroup_->make());
  daemon_.start();
  EXPECT_TRUE(ends());
}

TEST_P(ByCgroup, ATenantEndsByOrderAndNotBeforeItsLastProcess) {
  ASSERT_EQ(enroll({{"container", "c1"}}), "done");
  EXPECT_THAT(asked({{"request", "leave"}}), HasSubstr("'name'"));
  EXPECT_THAT(asked({{"request", "leave"}, {"name", "b"}}), HasSubstr("there is a"));
  Shared<std::atomic<int>> step;
  const pid_t tenant = start_process([&] {
    EXPECT_IN_TENANT(cgroup_->join());
    const auto client = Client::connect_by_cgroup(daemon_.socket(), kTimeout);
    EXPECT_IN_TENANT(client);
    *step = 1;
    while (*step != 2)
      os::sleep_for(Seconds{0.001});
    EXPECT_IN_TENANT((*client)->reserve(0, 100 * kMiB));
    return 0;
  });
  while (*step != 1)
    os::sleep_for(Seconds{0.001});
  EXPECT_EQ((*daemon_.query({{"request", "leave"}, {"container", "none"}}))["left"], 0);
  EXPECT_EQ((*daemon_.query({{"request", "leave"}, {"container", "c1"}}))["left"], 1);
  EXPECT_EQ(tenants(), 1U);
  EXPECT_THAT(asked({{"request", "leave"}, {"name", "a"}}), HasSubstr("has no cgroup"));
  *step = 2;
  EXPECT_EQ(wait_status(tenant), 0);
  EXPECT_TRUE(ends());
  EXPECT_EQ(wait_status(start_process([&] {
              EXPECT_IN_TENANT(cgroup_->join());
              EXPECT_IN_TENANT(!Client::connect_by_cgroup(daemon_.socket(), kTimeout));
              return 0;
            })),
            0);
}

TEST_P(ByCgroup, ATenantGivesNoOrdersAndNamesNoOtherTenant) {
  ASSERT_EQ(enroll(), "done");
  const pid_t other = daemon_.start_tenant("b", 1_GiB, [](int) {
    ::pause();
    return 0;
  });
  while (tenants() != 2)
    os::sleep_for(Seconds{0.001});
  os::UniqueFd page;  // of the other tenant, as its own process would hand it over
  ASSERT_TRUE(send_control_request(daemon_.socket(), R"({"request":"ps"})"));
  const int status = wait_status(start_process([&] {
    const auto joined =
        send_control_request(daemon_.socket(), R"({"request":"join","name":"b"})", &page);
    EXPECT_IN_TENANT(joined && page);
    return wait_status(start_process([&] {
      EXPECT_IN_TENANT(cgroup_->join());
      for (const json& order :
           {json{{"request", "set"}, {"name", "a"}, {"memory", {{"0", 1ULL << 40}}}},
            json{{"request", "enroll"}, {"name", "b"}, {"cgroup", cgroup_->name()}},
            json{{"request", "leave"}, {"name", "a"}},
            json{{"request", "drain"}, {"drained", true}}, json{{"request", "ps"}}}) {
        const auto answer = daemon_.query(order);
        EXPECT_IN_TENANT(!answer && answer.error().code == Code::kUnsupported);
      }
      const auto as_other = Client::connect(page.get(), kTimeout);
      EXPECT_IN_TENANT(!as_other && as_other.error().code == Code::kInvalidInput);
      return 0;
    }));
  }));
  EXPECT_EQ(status, 0);
  ::kill(other, SIGKILL);
  EXPECT_TRUE(os::wait_for(other));
}

TEST_P(ByCgroup, ReExecutionWithoutAnEnvironmentKeepsTheLimits) {
  ASSERT_EQ(enroll(), "done");
  const int status = wait_status(start_process([&] {
    EXPECT_IN_TENANT(cgroup_->join());
    const auto client = Client::connect_by_cgroup(daemon_.socket(), kTimeout);
    EXPECT_IN_TENANT(client && (*client)->reserve(0, 60 * kMiB));
    const std::string program = os::executable_folder().value() + "/regatta-test-tenant";
    const std::string socket = daemon_.socket();
    const char* argv[] = {program.c_str(), socket.c_str(), nullptr};
    const char* environment[] = {nullptr};
    ::execve(program.c_str(), const_cast<char**>(argv), const_cast<char**>(environment));
    return 1;
  }));
  EXPECT_EQ(status, 100);
}

TEST_P(ByCgroup, ADaemonThatDiesInAnOrderLeavesAllOfItOrNothing) {
  const int rounds = 40;
  for (int round = 0; round < rounds; ++round) {
    const pid_t orders = start_process([&] {
      for (;;) {
        enroll();
        asked({{"request", "leave"}, {"name", "a"}});
      }
      return 0;
    });
    os::sleep_for(Seconds{0.0003 * round});
    daemon_.kill();
    ::kill(orders, SIGKILL);
    EXPECT_TRUE(os::wait_for(orders));
    daemon_.start();
    const auto listing = daemon_.query({{"request", "ps"}});
    ASSERT_TRUE(listing);
    for (const json& tenant : (*listing)["tenants"])
      EXPECT_EQ(tenant["cgroups"].size(), 1U) << "after round " << round;
    const bool is_there = !(*listing)["tenants"].empty();
    EXPECT_EQ(is_there ? take(100 * kMiB, 100 * kMiB) : 0, 0);
    asked({{"request", "leave"}, {"name", "a"}});
    EXPECT_EQ(tenants(), 0U);
  }
}

TEST_P(ByCgroup, WrongOrdersAreRefusedInOneSentence) {
  EXPECT_THAT(enroll({{"cgroup", "../x"}}), HasSubstr("/proc/PID/cgroup"));
  EXPECT_THAT(enroll({{"cgroup", cgroup_->name() + "/none"}}), HasSubstr("there is none"));
  const std::string hierarchy = cgroup_->group().hierarchy;
  EXPECT_THAT(enroll({{"cgroup", os::to_string({hierarchy, "/"})}}),
              HasSubstr("the daemon is in it"));
  EXPECT_THAT(enroll({{"cgroup", "nothing:/x"}}), HasSubstr("not mounted"));
  EXPECT_EQ(tenants(), 0U);  // no half of an order stays
  ASSERT_EQ(enroll(), "done");
  EXPECT_THAT(enroll({{"name", "b"}}), HasSubstr("of tenant a already"));
  EXPECT_THAT(enroll(), HasSubstr("is there already"));
  EXPECT_EQ(tenants(), 1U);
}

INSTANTIATE_TEST_SUITE_P(EachVersion, ByCgroup,
                         testing::Values(os::CgroupVersion::kV1, os::CgroupVersion::kV2),
                         [](const auto& version) {
                           return version.param == os::CgroupVersion::kV1 ? "V1" : "V2";
                         });

TEST(TenantCgroups, OfADamagedFileIsRefused) {
  const auto folder = os::TempFolder::create("vgpu").value();
  for (const char* text : {"", "{", "[]", R"({"version":2,"groups":[]})",
                           R"({"version":1,"groups":[{"cgroup":"x"}]})"}) {
    ASSERT_TRUE(os::write_file_atomically(folder.path() + "/groups.json", text));
    const auto tenant_cgroups = TenantCgroups::open(folder.path());
    ASSERT_FALSE(tenant_cgroups) << text;
    EXPECT_EQ(tenant_cgroups.error().code, Code::kInvalidInput);
    EXPECT_THAT(tenant_cgroups.error().message, HasSubstr("groups.json"));
  }
}

}  // namespace
}  // namespace regatta::sharing
