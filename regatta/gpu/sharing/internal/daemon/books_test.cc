#include "regatta/gpu/sharing/internal/daemon/books.h"

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

Result<Books> open_books(const std::string& folder) {
  REGATTA_TRY(state, State::open(folder));
  return Books::open(std::move(state), "/none", {Bytes{0}});
}

TenantLimits limits_of(const std::string& name, Bytes memory) {
  TenantLimits limits{.name = name, .compute_ppm = 1000};
  limits.memory[0] = memory;
  return limits;
}

// As a process of the tenant reads it.
regatta_tenant_page shown_page(const Books& books, int tenant) {
  regatta_tenant_page page{};
  EXPECT_EQ(::pread(books.tenant_page(tenant), &page, sizeof page, 0),
            static_cast<ssize_t>(sizeof page));
  return page;
}

TEST(Books, SayWhereTheyCanBeKeptWhenTheirFileCannotBeLocked) {
  if (!can_refuse()) GTEST_SKIP() << "this kernel has no seccomp";
  const auto folder = os::TempFolder::create("vgpu").value();
  const auto open_there = [&] {
    if (!refuse(SYS_flock, ENOLCK)) ::_exit(3);
    const Error error = open_books(folder.path()).error();
    std::fputs(error.message.c_str(), stderr);
    ::_exit(error.code == Code::kInvalidInput ? 0 : 1);
  };
  EXPECT_EXIT(open_there(), testing::ExitedWithCode(0),
              testing::HasSubstr("lock " + folder.path() +
                                 "/state: no locks available; give --state a folder on a disk"));
}

TEST(Books, GoOnAfterTheirDaemonWithEveryTenantAndClient) {
  const auto folder = os::TempFolder::create("vgpu").value();
  os::UniqueFd page;
  {
    auto books = open_books(folder.path()).value();
    const int tenant = *books.add_tenant(limits_of("a", 1_GiB));
    const int client = *books.add_client(tenant, {77, 5});
    page = books.make_purses(client).value();
    ASSERT_TRUE(books.lease(client, 0, 100 * kMiB));
    ASSERT_TRUE(books.set_policy(REGATTA_SHARE_WEIGHT));
  }
  auto books = open_books(folder.path()).value();
  ASSERT_TRUE(books.find_tenant("a"));
  EXPECT_EQ(books.limits(0).memory[0], 1_GiB);
  EXPECT_EQ(books.state().policy, static_cast<unsigned>(REGATTA_SHARE_WEIGHT));
  EXPECT_FALSE(books.find_client({77, 6}));  // another process with the same number
  const int client = *books.find_client({77, 5});
  // Until the purses are back, all that was leased counts, and more of it is not given.
  EXPECT_GE(books.tenant_holding(0, 0).leased, 100 * kMiB);
  EXPECT_FALSE(books.lease(client, 0, 1));
  auto other = Page::create(REGATTA_PURSES_PAGE_NAME, false);
  EXPECT_FALSE(books.adopt_purses(client, other->take_fd()));
  ASSERT_TRUE(books.adopt_purses(client, std::move(page)));
  EXPECT_TRUE(books.lease(client, 0, 1));
  books.remove_client(client);
  EXPECT_EQ(books.tenant_holding(0, 0).leased, 0U);
}

TEST(Books, TellProcessesWhatHoldsWhereNobodyAnswers) {
  const auto folder = os::TempFolder::create("vgpu").value();
  {
    auto books = open_books(folder.path()).value();
    const int tenant = *books.add_tenant(limits_of("a", 1_GiB));
    EXPECT_FALSE(books.limits(tenant).is_open_on_fault);
    TenantLimits limits = books.limits(tenant);
    limits.is_open_on_fault = limits.is_high_priority = true;
    ASSERT_TRUE(books.add_client(tenant, {77, 5}));
    ASSERT_TRUE(books.set_limits(tenant, limits));
  }
  const auto books = open_books(folder.path()).value();
  EXPECT_TRUE(books.limits(0).is_open_on_fault);
  EXPECT_TRUE(books.limits(0).is_high_priority);
  EXPECT_EQ(shown_page(books, 0).flags, REGATTA_TENANT_OPEN_ON_FAULT);
}

TEST(Books, RefuseAPageThatCouldBeShortened) {
  os::UniqueFd fd(::memfd_create("x", MFD_ALLOW_SEALING));
  ASSERT_EQ(::ftruncate(fd.get(), REGATTA_PAGE_SIZE), 0);
  EXPECT_FALSE(Page::map(std::move(fd)));
}

TEST(Books, LetNoTenantHaveAllProcesses) {
  const auto folder = os::TempFolder::create("vgpu").value();
  auto books = open_books(folder.path()).value();
  const int a = *books.add_tenant(limits_of("a", 1_GiB));
  const int b = *books.add_tenant(limits_of("b", 1_GiB));
  for (int pid = 1; pid <= kClientsPerTenantMax; ++pid)
    ASSERT_TRUE(books.add_client(a, {pid, 1}));
  EXPECT_EQ(books.add_client(a, {5000, 1}).error().code, Code::kExhausted);
  EXPECT_TRUE(books.add_client(b, {5000, 1}));
}

// A process leases and calls back without end and is killed; meanwhile clients take and give. What
// the next one finds is what the clients have, to the byte.
TEST(Books, LoseNothingWhereverTheirDaemonIsKilled) {
  constexpr int kClients = 4;
  constexpr std::uint64_t kQuota = 300 * kMiB;
  const char* text = std::getenv("REGATTA_STORM_ROUNDS");
  const int rounds = text != nullptr ? std::atoi(text) : 300;
  const auto folder = os::TempFolder::create("vgpu").value();
  std::array<os::UniqueFd, kClients> pages;
  std::array<Page, kClients> purses;
  std::array<std::uint64_t, kClients> used{};
  {
    auto books = open_books(folder.path()).value();
    const int tenant = *books.add_tenant(limits_of("a", Bytes{static_cast<long long>(kQuota)}));
    for (int i = 0; i < kClients; ++i) {
      const int client = *books.add_client(tenant, {1000 + i, 1});
      ASSERT_EQ(client, i);
      pages[i] = books.make_purses(client).value();
      purses[i] = Page::map(os::UniqueFd(::dup(pages[i].get()))).value();
    }
  }
  std::mt19937 random(17);
  for (int round = 0; round < rounds; ++round) {
    Shared<std::atomic<std::uint64_t>> changes;
    const pid_t daemon = start_process([&] {
      auto books = open_books(folder.path()).value();
      for (int i = 0; i < kClients; ++i) {
        if (!books.adopt_purses(i, os::UniqueFd(::dup(pages[i].get())))) return 1;
      }
      std::mt19937 choice(round);
      while (true) {
        books.lease(static_cast<int>(choice() % kClients), 0, 1 + choice() % (100 * kMiB));
        ++*changes;
      }
    });
    const std::uint64_t enough = random() % 3000;
    const Seconds end = os::monotonic_now() + Seconds{10.0};
    while (*changes < enough && os::monotonic_now() < end) {
      const auto i = static_cast<std::size_t>(random() % kClients);
      regatta_purse& purse = purses[i].as<regatta_purses_page>()->purses[0];
      const std::uint64_t bytes = random() % (20 * kMiB);
      if (used[i] >= bytes && random() % 2 == 0) {
        used[i] -= bytes;
        regatta_purse_give(&purse, bytes);
      } else if (regatta_purse_take(&purse, bytes) != 0) {
        used[i] += bytes;
      }
    }
    ::kill(daemon, SIGKILL);
    ::waitpid(daemon, nullptr, 0);
    ASSERT_GE(*changes, enough);
    auto books = open_books(folder.path()).value();
    for (int i = 0; i < kClients; ++i) {
      ASSERT_TRUE(books.adopt_purses(i, os::UniqueFd(::dup(pages[i].get()))));
      const auto held = books.holding(i, 0);
      ASSERT_EQ(held.leased - held.spare, used[i]) << "client " << i << ", round " << round;
    }
    ASSERT_LE(books.tenant_holding(0, 0).leased, kQuota) << round;
  }
}

}  // namespace
}  // namespace regatta::sharing
