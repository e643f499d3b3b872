#include "regatta/gpu/sharing/internal/daemon/tenant_limits.h"

#include <cstring>
#include <memory>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta::sharing {
namespace {

using namespace regatta::literals;
using testing::HasSubstr;

class TenantLimitsTest : public testing::Test {
 protected:
  void add(int tenant, const TenantLimits& limits) {
    TenantRecord& record = state_->tenants[tenant];
    record.live = 1;
    std::memcpy(record.name, limits.name.data(), limits.name.size());
    record.compute_ppm = limits.compute_ppm;
    record.flags = tenant_flags(limits);
    record.quota[0] = static_cast<std::uint64_t>(limits.memory[0].value);
  }
  static TenantLimits limits(const char* name, Bytes memory, bool is_overcommitted = false) {
    TenantLimits made{.name = name, .compute_ppm = 400'000, .is_overcommitted = is_overcommitted};
    made.memory[0] = memory;
    return made;
  }
  std::string error(const TenantLimits& limits, std::optional<int> self = std::nullopt) const {
    const Status status = check_limits(*state_, capacity_, limits, self);
    return status ? "" : status.error().message;
  }

  std::unique_ptr<StateFile> state_ = std::make_unique<StateFile>();
  MemoryCapacity capacity_{.devices = {10_GiB}, .host = 12_GiB};
};

TEST_F(TenantLimitsTest, QuotasAddUpToTheDeviceAndSharesToTheWhole) {
  add(0, limits("a", 6_GiB));
  EXPECT_EQ(error(limits("b", 4_GiB)), "");
  EXPECT_THAT(error(limits("b", 5_GiB)), HasSubstr("GPU 0 has 4 GiB left"));
  EXPECT_EQ(error(limits("a", 10_GiB), 0), "");  // its own quota does not count
  add(1, limits("b", 1_GiB));
  EXPECT_THAT(error(limits("c", 1_GiB)), HasSubstr("20 % of the time are left"));
}

TEST_F(TenantLimitsTest, OvercommittedTenantsShareTheRestOfTheDeviceAndTheHost) {
  add(0, limits("a", 6_GiB, true));
  EXPECT_EQ(error(limits("b", 6_GiB, true)), "");
  EXPECT_THAT(error(limits("b", 7_GiB, true)), HasSubstr("of the host's memory are left"));
  EXPECT_EQ(error(limits("b", 4_GiB)), "");
  EXPECT_NE(error(limits("b", 5_GiB)), "");  // the largest of them has to fit beside it
  EXPECT_THAT(error(limits("a", 6_GiB), 0), HasSubstr("start it anew"));
}

TEST_F(TenantLimitsTest, SurviveTheRecord) {
  TenantLimits before = limits("a", 3_GiB, true);
  before.is_high_priority = before.is_open_on_fault = true;
  before.lease_s = 90;
  add(0, before);
  const TenantLimits after = limits_of(state_->tenants[0]);
  EXPECT_EQ(after.memory[0], 3_GiB);
  EXPECT_TRUE(after.is_high_priority && after.is_open_on_fault && after.is_overcommitted);
  EXPECT_EQ(after.lease_s, 90U);
}

}  // namespace
}  // namespace regatta::sharing
