#include "regatta/gpu/sharing/internal/daemon/device_slices.h"

#include <gtest/gtest.h>

namespace regatta::sharing {
namespace {

constexpr std::uint64_t kSlice = 1000;

TEST(DeviceSlices, OfWhoComesLaterAreWholeUntilTheOtherHasEndedItsWork) {
  EXPECT_EQ(slices_beside_last_work(0, kSlice), 0U);
  EXPECT_EQ(slices_beside_last_work(900, kSlice), 0U) << "within the slice of the other";
  EXPECT_EQ(slices_beside_last_work(1200, kSlice), 1000U);
  EXPECT_EQ(slices_beside_last_work(2900, kSlice), 1000U);
  EXPECT_EQ(slices_beside_last_work(3100, kSlice), 2000U);
}

TEST(DeviceSlices, OfWhoComesLaterAndEndsFirstComeAfterTheRestOfTheFirstSlice) {
  EXPECT_EQ(slices_beside_longer_work(300, 100, kSlice), 0U);
  EXPECT_EQ(slices_beside_longer_work(1200, 100, kSlice), 300U);
  EXPECT_EQ(slices_beside_longer_work(2300, 100, kSlice), 1000U) << "the other's second slice";
  EXPECT_EQ(slices_beside_longer_work(3200, 100, kSlice), 1300U);
  EXPECT_EQ(slices_beside_longer_work(700, 9000, kSlice), 200U) << "half of a slice, if unknown";
}

// The two share all of the time.
TEST(DeviceSlices, AreNeverMoreThanTheTime) {
  for (std::uint64_t both = 0; both < 12'000; both += 7) {
    EXPECT_LE(slices_beside_last_work(both, kSlice), both);
    for (const std::uint64_t alone : {0U, 400U, 1000U, 5000U})
      EXPECT_LE(slices_beside_longer_work(both, alone, kSlice), both);
  }
}

}  // namespace
}  // namespace regatta::sharing
