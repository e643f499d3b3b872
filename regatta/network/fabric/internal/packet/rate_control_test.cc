#include "regatta/network/fabric/internal/packet/rate_control.h"

#include <cmath>

#include <gtest/gtest.h>

namespace regatta::fabric::packet {
namespace {

constexpr double kLine = 0.05;  // 400 Gbit/s in bytes per picosecond
constexpr Picoseconds kMicrosecond = 1'000'000;

TEST(RateControl, HalvesAtTheFirstNoticeAndLessAfterALongPeace) {
  const Dcqcn options;
  RateControl rate(kLine);
  rate.on_cnp(options, 0);
  EXPECT_DOUBLE_EQ(rate.rate(), kLine / 2);  // alpha was 1
  RateControl calm(kLine);
  calm.on_cnp(options, 0);
  // alpha loses a 256th every 55 us: e^-2 of it is left after 512 times that.
  calm.advance(options, 512 * 55 * kMicrosecond);
  EXPECT_NEAR(calm.alpha(), std::exp(-2.0), 2e-3);
  EXPECT_EQ(calm.rate(), kLine);
  calm.on_cnp(options, 512 * 55 * kMicrosecond);
  EXPECT_NEAR(calm.rate(), kLine * (1 - std::exp(-2.0) / 2), 1e-4);
}

// Five steps of a timer halve the distance to where it was; then the target itself rises.
TEST(RateControl, RecoversFastAndThenRises) {
  Dcqcn options;
  RateControl rate(kLine);
  rate.on_cnp(options, 0);
  rate.on_cnp(options, 0);
  const double before = kLine / 2;
  const double cut = rate.rate();
  rate.advance(options, 5 * 55 * kMicrosecond);
  EXPECT_NEAR(rate.rate(), before - (before - cut) / 32, 1e-9);
  rate.advance(options, 6 * 55 * kMicrosecond);
  EXPECT_NEAR(rate.rate(), before - (before - cut) / 64 + 50e6 * 1e-12 / 2, 1e-9);
}

// Both the timer and the bytes have passed the fast recovery: it is hyper increase.
TEST(RateControl, RisesFastestWhereTimerAndBytesAgree) {
  const Dcqcn options;
  const auto rate_after = [&options](int byte_steps) {
    RateControl rate(kLine);
    for (int i = 0; i < 4; ++i)
      rate.on_cnp(options, 0);
    for (int i = 0; i < byte_steps; ++i)
      rate.sent(options, static_cast<std::uint64_t>(options.byte_counter.value));
    rate.advance(options, 8 * 55 * kMicrosecond);
    return rate.rate();
  };
  EXPECT_GT(rate_after(8), rate_after(5) + 10 * 50e6 * 1e-12);
}

TEST(RateControl, NeverLeavesItsBounds) {
  const Dcqcn options;
  RateControl rate(kLine);
  for (int i = 0; i < 1000; ++i)
    rate.on_cnp(options, i);
  EXPECT_DOUBLE_EQ(rate.rate(), options.least.value * 1e-12);
  rate.advance(options, 3'600'000'000 * kMicrosecond);  // an hour
  EXPECT_DOUBLE_EQ(rate.rate(), kLine);
}

}  // namespace
}  // namespace regatta::fabric::packet
