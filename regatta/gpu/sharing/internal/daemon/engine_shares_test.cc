#include "regatta/gpu/sharing/internal/daemon/engine_shares.h"

#include <string>

#include <gtest/gtest.h>
#include <sys/mman.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/os/file.h"
#include "regatta/gpu/sharing/internal/client/token_bucket.h"

namespace regatta::sharing {
namespace {

constexpr std::uint64_t kMs = 1'000'000;
constexpr std::uint64_t kLink = 10'000'000'000;  // bytes a second

// Tenants with one process each, whose pages the test writes as they would.
class EngineSharesTest : public testing::Test {
 protected:
  int add_tenant(const std::string& name, unsigned compute_ppm, unsigned weight = 1) {
    TenantLimits limits{.name = name, .compute_ppm = compute_ppm, .weight = weight};
    limits.memory[0] = Bytes{1 << 20};
    return *tenant_store_.add_tenant(limits);
  }
  int add_client(int tenant) {
    const int client = *tenant_store_.add_client(tenant, {++last_pid_, 1});
    const auto page = tenant_store_.create_client_page(client).value();
    pages_.push_back(static_cast<regatta_client_page*>(
        ::mmap(nullptr, REGATTA_PAGE_SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, page.get(), 0)));
    engines_.begin(tenant_store_, client);
    return client;
  }
  regatta_engine_usage& usage(int client, regatta_engine engine = REGATTA_COPY_TO_DEVICE) {
    return pages_[as_index(client)]->engine_usage[0][engine];
  }
  std::uint64_t rate(int tenant, regatta_engine engine = REGATTA_COPY_TO_DEVICE) {
    return tenant_store_.tenants().engine_rates(tenant, 0)[engine];
  }
  void step(std::uint64_t at_ms) { engines_.step(tenant_store_, at_ms * kMs); }

  os::TempFolder folder_ = os::TempFolder::create("vgpu").value();
  TenantStore tenant_store_ = TenantStore::open(MappedState::open(folder_.path()).value(), "/none",
                                                {{Bytes{1LL << 30}}, {}})
                                  .value();
  EngineShares engines_ = EngineShares::create(tenant_store_, {kLink, 0, 0, 0}).value();
  std::vector<regatta_client_page*> pages_;
  pid_t last_pid_ = 1000;
};

TEST_F(EngineSharesTest, ATenantMayGiveItsPartOfALinkAndAnyAmountToTheOthers) {
  const int a = add_tenant("a", 300'000);
  const int b = add_tenant("b", 700'000);
  add_client(a);
  add_client(b);
  step(1000);
  EXPECT_EQ(rate(a), 3'000'000'000U);
  EXPECT_EQ(rate(b), 7'000'000'000U);
  EXPECT_EQ(rate(a, REGATTA_COPY_FROM_DEVICE), 0U);  // its rate was not said
}

TEST_F(EngineSharesTest, ProcessesOfATenantThatCopyShareItsPart) {
  const int a = add_tenant("a", 400'000);
  const int first = add_client(a);
  const int second = add_client(a);
  add_client(a);  // copies nothing
  usage(first).given = 100;
  step(1000);
  EXPECT_EQ(rate(a), 4'000'000'000U);
  usage(second).waiting = 1;
  step(1020);
  EXPECT_EQ(rate(a), 2'000'000'000U);
  usage(second).waiting = 0;
  step(1200);  // both have been idle for long
  EXPECT_EQ(rate(a), 4'000'000'000U);
}

TEST_F(EngineSharesTest, UnderBurstWeightWhoCopiesHasWhatOthersLeave) {
  ASSERT_TRUE(tenant_store_.set_policy(REGATTA_SHARE_BURST_WEIGHT));
  const int a = add_tenant("a", 0, 1);
  const int b = add_tenant("b", 0, 3);
  const int of_a = add_client(a);
  const int of_b = add_client(b);
  usage(of_a).given = 1;
  step(1000);
  EXPECT_EQ(rate(a), kLink);
  EXPECT_GT(rate(b), 0U);  // it may begin before the next step
  usage(of_a).given = 2;
  usage(of_b).given = 1;
  step(1020);
  EXPECT_EQ(rate(a), kLink / 4);
  EXPECT_EQ(rate(b), kLink / 4 * 3);
}

TEST_F(EngineSharesTest, ADeadProcessHasGivenWhatItGave) {
  const int a = add_tenant("a", 400'000);
  const int client = add_client(a);
  usage(client).given = 5000;
  usage(client, REGATTA_ENCODE).given = 7;
  engines_.end(tenant_store_, client, 1000 * kMs);
  tenant_store_.remove_client(client);
  step(1100);
  EXPECT_EQ(engines_.total(a, 0, REGATTA_COPY_TO_DEVICE), 5000U);
  EXPECT_EQ(engines_.total(a, 0, REGATTA_ENCODE), 7U);
  EXPECT_EQ(engines_.last_second(a, 0, REGATTA_COPY_TO_DEVICE, 1200 * kMs), 5000U);
  EXPECT_EQ(engines_.last_second(a, 0, REGATTA_COPY_TO_DEVICE, 3000 * kMs), 0U);
  engines_.forget(a);
  EXPECT_EQ(engines_.total(a, 0, REGATTA_COPY_TO_DEVICE), 0U);
}

TEST_F(EngineSharesTest, WhatAnEarlierDaemonCountedIsNotCountedAgain) {
  const int a = add_tenant("a", 400'000);
  const int client = add_client(a);
  usage(client).given = 5000;
  engines_.begin(tenant_store_, client);
  step(1000);
  EXPECT_EQ(engines_.total(a, 0, REGATTA_COPY_TO_DEVICE), 0U);
  usage(client).given = 4000;  // a page that somebody wrote into
  step(1020);
  EXPECT_EQ(engines_.total(a, 0, REGATTA_COPY_TO_DEVICE), 0U);
  usage(client).given = 4500;
  step(1040);
  EXPECT_EQ(engines_.total(a, 0, REGATTA_COPY_TO_DEVICE), 500U);
}

TEST_F(EngineSharesTest, ATenantOpensAsManySessionsAsItsPartAndAtLeastOne) {
  engines_ = EngineShares::create(tenant_store_, {}, {0, 0, 10, 0}).value();
  const int a = add_tenant("a", 250'000);
  const int b = add_tenant("b", 10'000);
  const int first = add_client(a);
  const int second = add_client(a);
  const int of_b = add_client(b);
  EXPECT_TRUE(engines_.open_session(tenant_store_, first, 0, REGATTA_ENCODE));
  EXPECT_TRUE(engines_.open_session(tenant_store_, second, 0, REGATTA_ENCODE));
  EXPECT_FALSE(engines_.open_session(tenant_store_, second, 0, REGATTA_ENCODE));
  EXPECT_TRUE(engines_.open_session(tenant_store_, of_b, 0, REGATTA_ENCODE));
  EXPECT_FALSE(engines_.open_session(tenant_store_, of_b, 0, REGATTA_ENCODE));
  EXPECT_EQ(engines_.sessions(tenant_store_, a, 0, REGATTA_ENCODE), 2U);
  tenant_store_.remove_client(first);  // what a dead process had is free again
  EXPECT_TRUE(engines_.open_session(tenant_store_, second, 0, REGATTA_ENCODE));
  usage(second, REGATTA_ENCODE).sessions = 0;  // it closed them
  EXPECT_TRUE(engines_.open_session(tenant_store_, second, 0, REGATTA_ENCODE));
  for (int i = 0; i < 100; ++i)  // nobody said how many there are
    EXPECT_TRUE(engines_.open_session(tenant_store_, of_b, 0, REGATTA_DECODE));
}

// Daemon and paces together, in simulated time: what each tenant gave in any second.
TEST_F(EngineSharesTest, AnySecondHasEachTenantsPartWithinTwoPoints) {
  ASSERT_TRUE(tenant_store_.set_policy(REGATTA_SHARE_WEIGHT));
  struct Copier {
    int tenant;
    int client;
    TokenBucket bucket;
    std::uint64_t next_ns = 0;
    std::vector<std::uint64_t> in_second;
  };
  std::vector<Copier> copiers;
  for (const unsigned weight : {1U, 2U, 2U, 5U}) {
    const int tenant = add_tenant("t" + std::to_string(copiers.size()), 0, weight);
    copiers.push_back({.tenant = tenant,
                       .client = add_client(tenant),
                       .bucket = {},
                       .in_second = std::vector<std::uint64_t>(6)});
  }
  for (std::uint64_t now = 20 * kMs; now < 6000 * kMs; now += kMs / 10) {
    if (now % (20 * kMs) == 0) engines_.step(tenant_store_, now);
    for (Copier& one : copiers) {
      while (one.next_ns <= now) {
        const std::uint64_t wait = one.bucket.wait_ns(rate(one.tenant), now);
        one.next_ns = now + wait;
        if (wait > 0) break;
        const std::uint64_t piece = rate_limited_piece(rate(one.tenant), 1 << 20);
        one.bucket.grant(piece);
        usage(one.client).given += piece;
        one.in_second[now / (1000 * kMs)] += piece;
      }
    }
  }
  const double parts[] = {0.1, 0.2, 0.2, 0.5};
  for (std::size_t i = 0; i < copiers.size(); ++i) {
    for (std::size_t second = 1; second < 6; ++second) {
      EXPECT_NEAR(static_cast<double>(copiers[i].in_second[second]) / kLink, parts[i], 0.02)
          << i << " in second " << second;
    }
  }
}

}  // namespace
}  // namespace regatta::sharing
