#include "regatta/gpu/sharing/internal/policy/turns.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <random>
#include <vector>

#include <gtest/gtest.h>

#include "regatta/base/core/ids.h"

namespace regatta::sharing {
namespace {

using Ns = unsigned long long;
constexpr Ns kUs = 1'000;
constexpr Ns kMs = 1'000'000;
constexpr Ns kS = 1'000'000'000;

struct Use {
  Ns begin;
  Ns end;
  Ns before;  // of the tenant's time, in uses before this one
};

// A device that runs one tenant's kernels at a time, each of its tenant's length.
class Device {
 public:
  Device(std::vector<unsigned> shares, std::vector<Ns> kernels, bool conserves = false)
      : kernels_(std::move(kernels)), uses_(shares.size()) {
    regatta_turns_init(&turns_, static_cast<unsigned>(shares.size()), kMs, 0);
    regatta_turns_set_shares(&turns_, shares.data(), conserves, 0);
    for (unsigned i = 0; i < shares.size(); ++i)
      regatta_turns_set_runnable(&turns_, i, 1, 0);
  }

  void run_until(Ns end) {
    while (now_ < end) {
      Ns wait = 0;
      const int tenant = regatta_turns_next(&turns_, now_, &wait);
      if (tenant < 0) {
        now_ += std::min(wait, end - now_);
        continue;
      }
      const Ns begin = now_;
      regatta_turns_begin(&turns_, static_cast<unsigned>(tenant), now_);
      do {
        now_ += kernels_[as_index(tenant)];
      } while (now_ < end && regatta_turns_left(&turns_, now_) != 0);
      regatta_turns_end(&turns_, now_);
      std::vector<Use>& own = uses_[as_index(tenant)];
      const Ns before = own.empty() ? 0 : own.back().before + own.back().end - own.back().begin;
      own.push_back({begin, now_, before});
    }
  }

  // Time of `tenant` in [from, to).
  double share(int tenant, Ns from, Ns to) const {
    return static_cast<double>(used_until(tenant, to) - used_until(tenant, from)) /
           static_cast<double>(to - from);
  }
  // The largest miss of `part` over windows of `length` from `from` on.
  double worst(int tenant, double part, Ns from, Ns length) const {
    double most = 0;
    for (Ns begin = from; begin + length <= now_; begin += length / 7)
      most = std::max(most, std::abs(share(tenant, begin, begin + length) - part));
    return most;
  }

  regatta_turns& turns() { return turns_; }
  Ns now() const { return now_; }

 private:
  Ns used_until(int tenant, Ns time) const {
    const std::vector<Use>& own = uses_[as_index(tenant)];
    const auto next = std::partition_point(own.begin(), own.end(),
                                           [&](const Use& use) { return use.begin < time; });
    if (next == own.begin()) return 0;
    const Use& last = *std::prev(next);
    return last.before + std::min(last.end, time) - last.begin;
  }

  regatta_turns turns_ = {};
  std::vector<Ns> kernels_;
  Ns now_ = 0;
  std::vector<std::vector<Use>> uses_;  // by tenant
};

TEST(Turns, OneTenantGetsItsPartOfAnIdleDevice) {
  for (const unsigned part : {10'000U, 100'000U, 300'000U, 990'000U}) {
    Device device({part}, {50 * kUs});
    device.run_until(4 * kS);
    EXPECT_LT(device.worst(0, part / 1e6, 0, kS), 0.005) << part;
  }
}

TEST(Turns, TwoTenantsOf30And70PercentGetThemWhateverTheirKernels) {
  for (const Ns first : {5 * kUs, 500 * kUs, 8 * kMs}) {
    for (const Ns second : {5 * kUs, 500 * kUs, 8 * kMs}) {
      Device device({300'000, 700'000}, {first, second});
      device.run_until(4 * kS);
      EXPECT_LT(device.worst(0, 0.3, 0, kS), 0.02) << first << " " << second;
      EXPECT_LT(device.worst(1, 0.7, 0, kS), 0.02) << first << " " << second;
    }
  }
}

// A kernel cannot be taken from the device by turns alone: the bound is the longest kernel over the
// window, 2 points from windows of 100 times its length on.
TEST(Turns, DebtsOfLongKernelsArePaid) {
  for (const Ns kernel : {100 * kMs, kS, 5 * kS}) {
    Device device({200'000, 800'000}, {kernel, kMs});
    device.run_until(400 * kernel);
    EXPECT_LT(device.worst(0, 0.2, 0, 100 * kernel), 0.02) << kernel;
    EXPECT_LT(device.worst(1, 0.8, 0, 100 * kernel), 0.02) << kernel;
  }
}

TEST(Turns, RandomTenantsKeepTheirPartsInEveryWindow) {
  std::mt19937 random(11);
  for (int round = 0; round < 20; ++round) {
    const std::size_t count = 2 + random() % 15;
    std::vector<unsigned> shares(count);
    std::vector<Ns> kernels(count);
    unsigned left = 1'000'000;
    for (std::size_t i = 0; i < count; ++i) {
      shares[i] = i + 1 == count ? left : left / 8 + static_cast<unsigned>(random() % (left / 3));
      left -= shares[i];
      kernels[i] = 5 * kUs << random() % 8;  // to 640 us
    }
    const bool conserves = round % 2 == 0;
    Device device(shares, kernels, conserves);
    device.run_until(3 * kS);
    for (std::size_t i = 0; i < count; ++i)
      EXPECT_LT(device.worst(static_cast<int>(i), shares[i] / 1e6, 0, kS), 0.02) << round;
  }
}

TEST(Turns, PartsSwitchLiveWithoutAnIdleDevice) {
  Device device({300'000, 700'000}, {100 * kUs, 100 * kUs});
  device.run_until(2 * kS);
  const std::vector<unsigned> shares = {800'000, 200'000};
  regatta_turns_set_shares(&device.turns(), shares.data(), 0, device.now());
  const Ns switched = device.now();
  device.run_until(4 * kS);
  EXPECT_LT(device.worst(0, 0.8, switched, kS), 0.02);
  const double all = device.share(0, switched, switched + 100 * kMs) +
                     device.share(1, switched, switched + 100 * kMs);
  EXPECT_GT(all, 0.97);
}

TEST(Turns, ATenantThatComesBackHasItsBurstPartWithinTensOfMilliseconds) {
  const std::vector<unsigned> alone = {1'000'000, 0};
  const std::vector<unsigned> both = {500'000, 500'000};
  Device device(alone, {200 * kUs, 200 * kUs}, true);
  regatta_turns_set_runnable(&device.turns(), 1, 0, 0);
  device.run_until(2 * kS);
  EXPECT_GT(device.share(0, 0, 2 * kS), 0.99);
  regatta_turns_set_runnable(&device.turns(), 1, 1, device.now());
  regatta_turns_set_shares(&device.turns(), both.data(), 1, device.now());
  const Ns back = device.now();
  device.run_until(3 * kS);
  EXPECT_NEAR(device.share(1, back, back + 50 * kMs), 0.5, 0.05);
}

TEST(Turns, IdleTenantsSaveUpNoBurst) {
  Device device({500'000, 500'000}, {100 * kUs, 100 * kUs});
  regatta_turns_set_runnable(&device.turns(), 1, 0, 0);
  device.run_until(10 * kS);
  EXPECT_NEAR(device.share(0, 0, 10 * kS), 0.5, 0.01);  // strict: the other half stays idle
  regatta_turns_set_runnable(&device.turns(), 1, 1, device.now());
  const Ns back = device.now();
  device.run_until(12 * kS);
  EXPECT_NEAR(device.share(1, back, back + 100 * kMs), 0.5, 0.03);
}

TEST(Turns, AHighTenantTakesTheDeviceAtTheEndOfTheKernelThatRuns) {
  for (const bool conserves : {false, true}) {
    Device device({500'000, 500'000}, {100 * kUs, 300 * kUs}, conserves);
    regatta_turns_set_high(&device.turns(), 0, 1);
    regatta_turns_set_runnable(&device.turns(), 0, 0, 0);
    device.run_until(kS);
    Ns wait = 0;
    const Ns now = device.now();
    if (conserves) {
      ASSERT_EQ(regatta_turns_next(&device.turns(), now, &wait), 1);
      regatta_turns_begin(&device.turns(), 1, now);
      EXPECT_GT(regatta_turns_left(&device.turns(), now), kMs);
      regatta_turns_set_runnable(&device.turns(), 0, 1, now);
      EXPECT_EQ(regatta_turns_left(&device.turns(), now), 0U);
      regatta_turns_end(&device.turns(), now + 300 * kUs);
      EXPECT_EQ(regatta_turns_next(&device.turns(), now + 300 * kUs, &wait), 0);
    } else {
      regatta_turns_set_runnable(&device.turns(), 0, 1, now);
      EXPECT_EQ(regatta_turns_next(&device.turns(), now, &wait), 0);
    }
  }
}

TEST(Turns, PrioritySaysWhenAndThePartHowMuch) {
  for (const bool conserves : {false, true}) {
    Device device({300'000, 700'000}, {200 * kUs, 200 * kUs}, conserves);
    regatta_turns_set_high(&device.turns(), 0, 1);
    device.run_until(4 * kS);
    EXPECT_LT(device.worst(0, 0.3, 100 * kMs, kS), 0.02) << conserves;
    EXPECT_LT(device.worst(1, 0.7, 100 * kMs, kS), 0.02) << conserves;
  }
}

TEST(Turns, WhatIsLeftOfATurnIsWhenItIsOver) {
  std::mt19937 random(5);
  for (int round = 0; round < 2'000; ++round) {
    regatta_turns turns;
    const unsigned count = 2 + static_cast<unsigned>(random() % 6);
    std::vector<unsigned> shares(count, 1'000'000 / count);
    regatta_turns_init(&turns, count, kMs, 0);
    const bool conserves = random() % 2 == 0;  // then debts are counted from a point that moves
    regatta_turns_set_shares(&turns, shares.data(), conserves, 0);
    for (unsigned i = 0; i < count; ++i) {
      turns.tenants[i].balance = (static_cast<long long>(random() % 40) - 20) * 1'000'000'000'000;
      turns.tenants[i].runnable = random() % 4 != 0;
      turns.tenants[i].is_high = !conserves && random() % 4 == 0;
    }
    turns.tenants[0].runnable = 1;
    regatta_turns_begin(&turns, 0, 0);
    const Ns left = regatta_turns_left(&turns, 0);
    if (left == ~0ULL) {
      EXPECT_NE(regatta_turns_left(&turns, 100 * kS), 0U) << round;
      continue;
    }
    if (left > 10'000) {
      EXPECT_NE(regatta_turns_left(&turns, left - 10'000), 0U) << round;
    }
    EXPECT_EQ(regatta_turns_left(&turns, left + 10), 0U) << round;
  }
}

// It works for 20 ms, ends, and is replaced by the next 20 ms later, again and again.
TEST(Turns, WhatATenantOwesThatHasJustEndedItsWorkIsNotForgotten) {
  Device device({500'000, 500'000}, {100 * kUs, 20 * kMs});
  regatta_turns& turns = device.turns();
  regatta_turns_set_runnable(&turns, 1, 0, 0);
  Ns of_first = 0;
  Ns now = 0;
  for (int round = 0; round < 50; ++round) {
    regatta_turns_set_runnable(&turns, 1, 1, now);
    const Ns end = now + 42 * kMs;
    while (now < end) {
      Ns wait = 0;
      const int tenant = regatta_turns_next(&turns, now, &wait);
      if (tenant < 0) {
        now += std::min(wait, end - now);
        continue;
      }
      regatta_turns_begin(&turns, static_cast<unsigned>(tenant), now);
      const Ns begin = now;
      do {
        now += tenant == 0 ? 100 * kUs : 20 * kMs;
      } while (tenant == 0 && now < end && regatta_turns_left(&turns, now) != 0);
      if (tenant == 1) regatta_turns_set_runnable(&turns, 1, 0, now);
      regatta_turns_end(&turns, now);
      if (tenant == 0) of_first += now - begin;
    }
  }
  EXPECT_NEAR(static_cast<double>(of_first) / static_cast<double>(now), 0.5, 0.02);
}

// It works for 4 ms and pauses for 1 ms, in which the other begins a kernel of 1.9 ms. It has to
// wait for a second one in every other round at most (more often if debts are forgotten: 0.51).
TEST(Turns, WhatANeighbourOwesIsNotForgottenInAShortPause) {
  const std::vector<unsigned> both = {800'000, 200'000};
  const std::vector<unsigned> pausing = {800'000, 1'000'000};
  Device device(both, {100 * kUs, 1'900 * kUs}, true);
  regatta_turns& turns = device.turns();
  double worked = 0;
  while (device.now() < 2 * kS) {
    const Ns begin = device.now();
    device.run_until(begin + 100 * kUs);
    worked += device.share(0, begin, device.now()) * static_cast<double>(device.now() - begin);
    if (worked < 4e6) continue;
    worked = 0;
    regatta_turns_set_runnable(&turns, 0, 0, device.now());
    regatta_turns_set_shares(&turns, pausing.data(), 1, device.now());
    device.run_until(device.now() + kMs);
    regatta_turns_set_runnable(&turns, 0, 1, device.now());
    regatta_turns_set_shares(&turns, both.data(), 1, device.now());
  }
  EXPECT_GT(device.share(0, kS, 2 * kS), 4 / 6.9 - 0.01);
}

TEST(Turns, ATenantThatHasWorkAgainDoesNotWaitForTheWholeQuantumOfOneThatIsOwedLess) {
  Device device({500'000, 500'000}, {100 * kUs, 100 * kUs}, true);
  regatta_turns& turns = device.turns();
  regatta_turns_set_runnable(&turns, 1, 0, 0);
  turns.tenants[1].balance = 1'000'000LL * 100'000;
  Ns wait = 0;
  ASSERT_EQ(regatta_turns_next(&turns, 0, &wait), 0);
  regatta_turns_begin(&turns, 0, 0);
  regatta_turns_set_runnable(&turns, 1, 1, 0);
  EXPECT_LE(regatta_turns_left(&turns, 0), kMs / REGATTA_RETURN_PARTS);
  regatta_turns_end(&turns, kMs);
  ASSERT_EQ(regatta_turns_next(&turns, kMs, &wait), 1);
  regatta_turns_begin(&turns, 1, kMs);
  EXPECT_EQ(turns.tenants[1].returned, 0);
}

TEST(Turns, NobodyRunsWithoutAPart) {
  Device device({0, 400'000}, {100 * kUs, 100 * kUs});
  device.run_until(kS);
  EXPECT_EQ(device.share(0, 0, kS), 0);
  Ns wait = 0;
  regatta_turns_set_runnable(&device.turns(), 1, 0, device.now());
  EXPECT_EQ(regatta_turns_next(&device.turns(), device.now(), &wait), -1);
  EXPECT_EQ(wait, ~0ULL);
}

}  // namespace
}  // namespace regatta::sharing
