#include "regatta/gpu/sharing/internal/daemon/tenant_store.h"

#include <cerrno>
#include <cstdio>
#include <random>

#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "regatta/base/core/units.h"
#include "regatta/base/os/file.h"
#include "regatta/gpu/sharing/internal/daemon/test_daemon.h"
#include "regatta/gpu/sharing/internal/daemon/test_refusal.h"

namespace regatta::sharing {
namespace {

using namespace regatta::literals;

constexpr std::uint64_t kMiB = 1ULL << 20;

Result<TenantStore> open_store(const std::string& folder) {
  REGATTA_TRY(state, MappedState::open(folder));
  return TenantStore::open(std::move(state), "/none", {{Bytes{0}}, {}});
}

TenantLimits limits_of(const std::string& name, Bytes memory) {
  TenantLimits limits{.name = name, .compute_ppm = 1000};
  limits.memory[0] = memory;
  return limits;
}

// As a process of the tenant reads it.
regatta_tenant_page shown_page(const TenantStore& tenant_store, int tenant) {
  regatta_tenant_page page{};
  EXPECT_EQ(::pread(tenant_store.tenants().page_fd(tenant), &page, sizeof page, 0),
            static_cast<ssize_t>(sizeof page));
  return page;
}

TEST(TenantStore, SayWhereTheyCanBeKeptWhenTheirFileCannotBeLocked) {
  if (!can_refuse()) GTEST_SKIP() << "this kernel has no seccomp";
  const auto folder = os::TempFolder::create("vgpu").value();
  const auto open_there = [&] {
    if (!refuse(SYS_flock, ENOLCK)) ::_exit(3);
    const Error error = open_store(folder.path()).error();
    std::fputs(error.message.c_str(), stderr);
    ::_exit(error.code == Code::kInvalidInput ? 0 : 1);
  };
  EXPECT_EXIT(open_there(), testing::ExitedWithCode(0),
              testing::HasSubstr("lock " + folder.path() +
                                 "/state: no locks available; give --state a folder on a disk"));
}

TEST(TenantStore, GoOnAfterTheirDaemonWithEveryTenantAndClient) {
  const auto folder = os::TempFolder::create("vgpu").value();
  os::UniqueFd page;
  {
    auto tenant_store = open_store(folder.path()).value();
    const int tenant = *tenant_store.add_tenant(limits_of("a", 1_GiB));
    const int client = *tenant_store.add_client(tenant, {77, 5});
    page = tenant_store.create_client_page(client).value();
    ASSERT_TRUE(tenant_store.leases().lease(client, 0, 100 * kMiB));
    ASSERT_TRUE(tenant_store.set_policy(REGATTA_SHARE_WEIGHT));
  }
  auto tenant_store = open_store(folder.path()).value();
  ASSERT_TRUE(tenant_store.tenants().find("a"));
  EXPECT_EQ(tenant_store.tenants().limits(0).memory[0], 1_GiB);
  EXPECT_EQ(tenant_store.state().policy, static_cast<unsigned>(REGATTA_SHARE_WEIGHT));
  EXPECT_FALSE(tenant_store.clients().find({77, 6}));  // another process with the same number
  const int client = *tenant_store.clients().find({77, 5});
  // Until the lease counters are back, all that was leased counts, and more of it is not given.
  EXPECT_GE(tenant_store.leases().tenant_holding(0, 0).leased, 100 * kMiB);
  EXPECT_FALSE(tenant_store.leases().lease(client, 0, 1));
  auto other = SharedPage::create(REGATTA_CLIENT_PAGE_NAME, false);
  EXPECT_FALSE(tenant_store.adopt_client_page(client, other->release_fd()));
  ASSERT_TRUE(tenant_store.adopt_client_page(client, std::move(page)));
  EXPECT_TRUE(tenant_store.leases().lease(client, 0, 1));
  tenant_store.remove_client(client);
  EXPECT_EQ(tenant_store.leases().tenant_holding(0, 0).leased, 0U);
}

TEST(TenantStore, TellProcessesWhatHoldsWhereNobodyAnswers) {
  const auto folder = os::TempFolder::create("vgpu").value();
  {
    auto tenant_store = open_store(folder.path()).value();
    const int tenant = *tenant_store.add_tenant(limits_of("a", 1_GiB));
    EXPECT_FALSE(tenant_store.tenants().limits(tenant).is_open_on_fault);
    TenantLimits limits = tenant_store.tenants().limits(tenant);
    limits.is_open_on_fault = limits.is_high_priority = true;
    ASSERT_TRUE(tenant_store.add_client(tenant, {77, 5}));
    ASSERT_TRUE(tenant_store.set_limits(tenant, limits));
  }
  const auto tenant_store = open_store(folder.path()).value();
  EXPECT_TRUE(tenant_store.tenants().limits(0).is_open_on_fault);
  EXPECT_TRUE(tenant_store.tenants().limits(0).is_high_priority);
  EXPECT_EQ(shown_page(tenant_store, 0).flags, REGATTA_TENANT_OPEN_ON_FAULT);
}

TEST(TenantStore, RefuseAPageThatCouldBeShortened) {
  os::UniqueFd fd(::memfd_create("x", MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(fd.get(), REGATTA_PAGE_SIZE), 0);
  EXPECT_FALSE(SharedPage::map(std::move(fd)));
}

TEST(TenantStore, LetNoTenantHaveAllProcesses) {
  const auto folder = os::TempFolder::create("vgpu").value();
  auto tenant_store = open_store(folder.path()).value();
  const int a = *tenant_store.add_tenant(limits_of("a", 1_GiB));
  const int b = *tenant_store.add_tenant(limits_of("b", 1_GiB));
  for (int pid = 1; pid <= kClientsPerTenantMax; ++pid)
    ASSERT_TRUE(tenant_store.add_client(a, {pid, 1}));
  EXPECT_EQ(tenant_store.add_client(a, {5000, 1}).error().code, Code::kExhausted);
  EXPECT_TRUE(tenant_store.add_client(b, {5000, 1}));
}

// A process leases and calls back without end and is killed; meanwhile clients take and give. The
// next one finds exactly what the clients have, to the byte.
TEST(TenantStore, LoseNothingWhereverTheirDaemonIsKilled) {
  constexpr int kClients = 4;
  constexpr std::uint64_t kQuota = 300 * kMiB;
  const char* text = std::getenv("REGATTA_STORM_ROUNDS");
  const int rounds = text != nullptr ? std::atoi(text) : 300;
  const auto folder = os::TempFolder::create("vgpu").value();
  std::array<os::UniqueFd, kClients> pages;
  std::array<SharedPage, kClients> client_pages;
  std::array<std::uint64_t, kClients> used{};
  {
    auto tenant_store = open_store(folder.path()).value();
    const int tenant =
        *tenant_store.add_tenant(limits_of("a", Bytes{static_cast<long long>(kQuota)}));
    for (int i = 0; i < kClients; ++i) {
      const int client = *tenant_store.add_client(tenant, {1000 + i, 1});
      ASSERT_EQ(client, i);
      pages[i] = tenant_store.create_client_page(client).value();
      client_pages[i] = SharedPage::map(os::UniqueFd(::dup(pages[i].get()))).value();
    }
  }
  std::mt19937 random(17);
  for (int round = 0; round < rounds; ++round) {
    Shared<std::atomic<std::uint64_t>> changes;
    const pid_t daemon = start_process([&] {
      auto tenant_store = open_store(folder.path()).value();
      for (int i = 0; i < kClients; ++i) {
        if (!tenant_store.adopt_client_page(i, os::UniqueFd(::dup(pages[i].get())))) return 1;
      }
      std::mt19937 choice(round);
      while (true) {
        tenant_store.leases().lease(static_cast<int>(choice() % kClients), 0,
                                    1 + choice() % (100 * kMiB));
        ++*changes;
      }
    });
    const std::uint64_t enough = random() % 3000;
    const Seconds end = os::monotonic_now() + Seconds{10.0};
    while (*changes < enough && os::monotonic_now() < end) {
      const auto i = static_cast<std::size_t>(random() % kClients);
      regatta_lease_counter& counter = client_pages[i].as<regatta_client_page>()->lease_counters[0];
      const std::uint64_t bytes = random() % (20 * kMiB);
      if (used[i] >= bytes && random() % 2 == 0) {
        used[i] -= bytes;
        regatta_lease_counter_give(&counter, bytes);
      } else if (regatta_lease_counter_take(&counter, bytes) != 0) {
        used[i] += bytes;
      }
    }
    ::kill(daemon, SIGKILL);
    ::waitpid(daemon, nullptr, 0);
    ASSERT_GE(*changes, enough);
    auto tenant_store = open_store(folder.path()).value();
    for (int i = 0; i < kClients; ++i) {
      ASSERT_TRUE(tenant_store.adopt_client_page(i, os::UniqueFd(::dup(pages[i].get()))));
      const auto held = tenant_store.leases().holding(i, 0);
      ASSERT_EQ(held.leased - held.spare, used[i]) << "client " << i << ", round " << round;
    }
    ASSERT_LE(tenant_store.leases().tenant_holding(0, 0).leased, kQuota) << round;
  }
}

}  // namespace
}  // namespace regatta::sharing
