#include "regatta/gpu/sharing/internal/daemon/lease_accounts.h"

#include <memory>

#include <gtest/gtest.h>

#include "regatta/gpu/sharing/internal/daemon/swappable_accounts.h"

namespace regatta::sharing {
namespace {

constexpr std::uint64_t kMiB = 1ULL << 20;

class LeaseAccountsTest : public testing::Test {
 protected:
  int add_tenant(const char* name, std::uint64_t quota, bool is_overcommitted = false) {
    TenantLimits limits{.name = name, .is_overcommitted = is_overcommitted};
    limits.memory[0] = Bytes{static_cast<long long>(quota)};
    return *tenants_.add(limits);
  }
  int add_client(int tenant) {
    const int client = *clients_.add(tenant, {++last_pid_, 1});
    EXPECT_TRUE(clients_.create_page(client));
    return client;
  }

  std::unique_ptr<StateFile> state_ = std::make_unique<StateFile>();
  MemoryCapacity capacity_{.devices = {Bytes{1000 * kMiB}}, .host = {}};
  TenantTable tenants_{*state_, "/none", true};
  ClientTable clients_{*state_};
  LeaseAccounts leases_{*state_, tenants_, clients_};
  SwappableAccounts swappable_{capacity_, tenants_, clients_, leases_};
  int last_pid_ = 0;
};

TEST_F(LeaseAccountsTest, SpareBytesOfOneClientServeAnother) {
  const int tenant = add_tenant("a", 100 * kMiB);
  const int first = add_client(tenant);
  const int second = add_client(tenant);
  ASSERT_TRUE(leases_.lease(first, 0, 80 * kMiB));
  ASSERT_EQ(regatta_lease_counter_take(clients_.lease_counter(first, 0), 30 * kMiB), 1);
  EXPECT_TRUE(leases_.lease(second, 0, 70 * kMiB));
  EXPECT_FALSE(leases_.lease(second, 0, 1));
  EXPECT_EQ(leases_.holding(first, 0).leased, 30 * kMiB);
  EXPECT_EQ(leases_.tenant_leased(tenant, 0), 100 * kMiB);
}

TEST_F(LeaseAccountsTest, LeasesOfAClientEndWithIt) {
  const int tenant = add_tenant("a", 100 * kMiB);
  const int client = add_client(tenant);
  ASSERT_TRUE(leases_.lease(client, 0, 80 * kMiB));
  leases_.reclaim(client);
  clients_.remove(client);
  EXPECT_EQ(leases_.tenant_leased(tenant, 0), 0U);
  EXPECT_FALSE(clients_.tenant_has_any(tenant));
}

TEST_F(LeaseAccountsTest, ALoweredQuotaRecallsTheExcess) {
  const int tenant = add_tenant("a", 100 * kMiB);
  ASSERT_TRUE(leases_.lease(add_client(tenant), 0, 80 * kMiB));
  TenantLimits limits = tenants_.limits(tenant);
  limits.memory[0] = Bytes{50 * kMiB};
  tenants_.set_limits(tenant, limits);
  leases_.recall(tenant, 0, -1, 1);
  EXPECT_LT(leases_.tenant_leased(tenant, 0), 50 * kMiB);
}

TEST_F(LeaseAccountsTest, SwappableMemoryCountsAgainstTheQuotaAndFitsBesideOtherQuotas) {
  const int moving = add_tenant("a", 800 * kMiB, true);
  const int client = add_client(moving);
  EXPECT_FALSE(swappable_.set(client, 0, 801 * kMiB));
  EXPECT_TRUE(swappable_.set(client, 0, 700 * kMiB));
  EXPECT_TRUE(leases_.lease(client, 0, 100 * kMiB));
  EXPECT_FALSE(leases_.lease(client, 0, kMiB));
  EXPECT_EQ(swappable_.device_capacity(0), 900 * kMiB);
  EXPECT_FALSE(swappable_.fits_lease(moving, 0, 201 * kMiB));
  add_tenant("b", 250 * kMiB);
  EXPECT_EQ(swappable_.device_capacity(0), 650 * kMiB);
  swappable_.drop(client);
  EXPECT_EQ(leases_.tenant_leased(moving, 0), 100 * kMiB);
}

TEST_F(LeaseAccountsTest, ATenantThatCanLeaveAsAWholeLeavesRoomForItsLeases) {
  const int tenant = add_tenant("a", 800 * kMiB, true);
  ASSERT_TRUE(leases_.lease(add_client(tenant), 0, 600 * kMiB));
  swappable_.set_checkpointable(tenant, 0, true);
  EXPECT_EQ(swappable_.device_capacity(0), 1000 * kMiB);
  EXPECT_TRUE(swappable_.may_pin(tenant));
  const int other = add_tenant("b", 900 * kMiB, true);
  ASSERT_TRUE(swappable_.set(add_client(other), 0, 500 * kMiB));
  EXPECT_FALSE(swappable_.may_pin(tenant));
  EXPECT_TRUE(swappable_.is_checkpointable(tenant, 0));
}

}  // namespace
}  // namespace regatta::sharing
