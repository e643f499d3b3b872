#include "regatta/gpu/sharing/internal/policy/exclusive_leases.h"

#include <gtest/gtest.h>

namespace regatta::sharing {
namespace {

using U64 = unsigned long long;
constexpr U64 kS = 1'000'000'000;

class ExclusiveLeases : public testing::Test {
 protected:
  ExclusiveLeases() { regatta_exclusive_leases_init(&leases_); }
  void see(unsigned tenant, U64 lease_s, bool is_ready) {
    regatta_exclusive_leases_update(&leases_, tenant, lease_s * kS, is_ready ? 1 : 0, now_);
  }
  int step() { return regatta_exclusive_leases_step(&leases_, now_, &wake_); }

  regatta_exclusive_leases leases_{};
  U64 now_ = kS;
  U64 wake_ = 0;
};

TEST_F(ExclusiveLeases, NobodyIsAloneWithoutALease) {
  see(0, 0, true);
  see(1, 60, false);
  EXPECT_EQ(step(), -1);
  EXPECT_EQ(wake_, ~0ULL);
}

TEST_F(ExclusiveLeases, WhoComesToWorkHasTheDeviceAloneUntilItsLeaseIsOver) {
  see(0, 0, true);
  see(1, 60, true);
  EXPECT_EQ(step(), 1);
  EXPECT_EQ(wake_, now_ + 60 * kS);
  now_ = wake_ - 1;
  EXPECT_EQ(step(), 1);
  ++now_;
  EXPECT_EQ(step(), -1);
  EXPECT_EQ(wake_, now_ + 60 * kS) << "the others have it as long";
  now_ = wake_;
  EXPECT_EQ(step(), 1);
}

TEST_F(ExclusiveLeases, APauseEndsALeaseUnlessItIsShort) {
  see(1, 60, true);
  EXPECT_EQ(step(), 1);
  now_ += kS;
  see(1, 60, false);
  EXPECT_EQ(step(), 1);
  EXPECT_EQ(wake_, now_ + REGATTA_EXCLUSIVE_LEASE_PAUSE_NS);
  now_ = wake_ - 1;
  see(1, 60, true);
  EXPECT_EQ(step(), 1);
  see(1, 60, false);
  now_ += REGATTA_EXCLUSIVE_LEASE_PAUSE_NS;
  EXPECT_EQ(step(), -1);
  now_ += 2 * kS;
  see(1, 60, true);
  EXPECT_EQ(step(), 1);
}

TEST_F(ExclusiveLeases, GoRoundAmongThoseWhoWait) {
  for (unsigned i = 0; i < 3; ++i) {
    see(i, 10, true);
    now_ += kS;
  }
  for (const int expected : {0, 1, 2, 0, 1, 2}) {
    EXPECT_EQ(step(), expected);
    now_ = wake_;
  }
}

TEST_F(ExclusiveLeases, OneThatIsTakenAwayEnds) {
  see(0, 10, true);
  EXPECT_EQ(step(), 0);
  see(0, 0, true);
  EXPECT_EQ(step(), -1);
}

}  // namespace
}  // namespace regatta::sharing
