#include "regatta/gpu/sharing/internal/daemon/turn_scheduler.h"

#include <algorithm>
#include <cmath>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "regatta/base/core/ids.h"

namespace regatta::sharing {
namespace {

using Ns = std::uint64_t;
constexpr Ns kUs = 1'000;
constexpr Ns kMs = 1'000'000;
constexpr Ns kS = 1'000'000'000;
constexpr Ns kNever = ~0ULL;

// Processes that obey orders after a delay, one in each tenant: it waits for its turn, launches
// kernels of one length until the deadline or until it is closed, and says when the last one ended.
// The device gives each process that has a kernel a slice of its time in turn.
class Machine {
 public:
  struct Process {
    Ns kernel = 100 * kUs;
    bool has_work = true;
    // Its load:
    bool works = false;
    Ns hears_ns = kNever;  // when it sees that its turn has come
    Ns left_ns = 0;        // of its kernel
    unsigned used_up = ~0U;
    // The turn in its page:
    bool is_open = false;
    unsigned number = 0;
    Ns deadline_ns = 0;
    Ns used = 0;        // by kernels that have ended, since it last said so
    Ns entered_ns = 0;  // when it first launched in the turn of entered_number
    unsigned entered_number = ~0U;
    Ns ended_ns = 0;
    Ns queued_until_ns = 0;  // it has given the device work until then, as it told
  };

  Machine(std::size_t count, unsigned seed, Ns delay_ns = 30 * kUs)
      : processes(count), random_(seed), delay_ns_(delay_ns), uses_(count) {
    for (auto& one : tenants)
      one = {};
    for (std::size_t i = 0; i < count; ++i)
      tenants[i].limits = {.quota_ppm = 1'000'000 / static_cast<unsigned>(count),
                           .weight = 1,
                           .present = 1,
                           .runnable = 0};
  }

  void set(regatta_share_policy policy) { scheduler.set_tenants(policy, tenants, now); }
  void give_work(std::size_t tenant, bool has_work) {
    processes[tenant].has_work = has_work;
    say(tenant);
  }

  void run_until(Ns end) {
    while (now < end) {
      obey();
      choose_process();
      Ns next = std::min(end, std::max(scheduler.wake_ns(), now + 1));
      for (const Process& one : processes)
        next = std::min(next, one.hears_ns);
      if (active_ >= 0) {
        next = std::min(next, now + processes[as_index(active_)].left_ns);
        if (others_work()) next = std::min(next, slice_end_ns_);
      }
      work_until(next);
      for (std::size_t i = 0; i < processes.size(); ++i)
        go_on(i);
    }
  }

  double share(std::size_t tenant, Ns from, Ns to) const {
    Ns sum = 0;
    for (const auto& [begin, end] : uses_[tenant])
      if (end > from && begin < to) sum += std::min(end, to) - std::max(begin, from);
    return static_cast<double>(sum) / static_cast<double>(to - from);
  }
  double worst(std::size_t tenant, double part, Ns from) const {
    double most = 0;
    for (Ns begin = from; begin + kS <= now; begin += 50 * kMs)
      most = std::max(most, std::abs(share(tenant, begin, begin + kS) - part));
    return most;
  }

  TurnScheduler scheduler{TurnSchedulerOptions{.launch_ns = 0}, 0};  // here kernels begin at once
  TurnScheduler::Tenants tenants;
  std::vector<Process> processes;
  Ns now = 0;
  long most_at_work = 0;  // tenants that had a kernel on the device at one time
  bool tells_ends = true;

 private:
  void say(std::size_t tenant) {
    Process& one = processes[tenant];
    const bool wants = one.has_work && !one.works;
    const bool ends = tells_ends && one.works && one.deadline_ns != 0;
    if (ends && one.is_open) one.queued_until_ns = one.deadline_ns;
    scheduler.set_activity(static_cast<int>(tenant),
                           {.wants = wants,
                            .works = one.works,
                            .is_used_up = wants && one.used_up == one.number,
                            .ends_ns = ends ? std::max(now + one.left_ns, one.deadline_ns) : 0,
                            .entered_ns = one.entered_number == one.number ? one.entered_ns : 0,
                            .ended_ns = one.ended_ns,
                            .used_ns = std::exchange(one.used, 0)},
                           now);
  }

  void obey() {
    if (scheduler.open_tenant() >= 0) say(static_cast<std::size_t>(scheduler.open_tenant()));
    while (const auto order = scheduler.next_order(now)) {
      Process& one = processes[as_index(order->tenant)];
      one.deadline_ns = order->deadline_ns;
      if (order->kind == TurnCommand::Kind::kChange) continue;
      one.number = order->number;
      one.is_open = order->kind == TurnCommand::Kind::kOpen;
      if (one.is_open) one.hears_ns = now + delay_ns_ / 2 + random_() % delay_ns_;
      say(static_cast<std::size_t>(order->tenant));
    }
  }

  void launch(std::size_t tenant) {
    Process& one = processes[tenant];
    one.works = true;
    if (one.entered_number != one.number) one.entered_ns = now;
    one.entered_number = one.number;
    one.left_ns = one.kernel;
    most_at_work = std::max(most_at_work, std::ranges::count(processes, true, &Process::works));
  }

  bool others_work() const { return std::ranges::count(processes, true, &Process::works) > 1; }

  void choose_process() {
    const bool is_idle = active_ < 0 || !processes[as_index(active_)].works;
    if (!is_idle && now < slice_end_ns_) return;
    const int count = static_cast<int>(processes.size());
    const int from = std::max(active_, 0);
    active_ = is_idle ? -1 : active_;
    for (int i = 1; i <= count; ++i) {
      if (!processes[as_index((from + i) % count)].works) continue;
      active_ = (from + i) % count;
      break;
    }
    slice_end_ns_ = now + REGATTA_TIME_SLICE_NS;
  }

  void work_until(Ns next) {
    if (active_ >= 0 && next > now) {
      processes[as_index(active_)].left_ns -= next - now;
      uses_[as_index(active_)].emplace_back(now, next);
    }
    now = next;
  }

  void go_on(std::size_t tenant) {
    Process& one = processes[tenant];
    const bool may = one.is_open && one.has_work && one.used_up != one.number;
    if (one.hears_ns <= now) {
      one.hears_ns = kNever;
      if (may && !one.works) launch(tenant);
      say(tenant);
    }
    if (!one.works || one.left_ns != 0) return;
    one.ended_ns = now;
    one.used += one.kernel;
    if (may && (one.deadline_ns == 0 || now < one.deadline_ns)) return launch(tenant);
    if (one.has_work && now < one.queued_until_ns) return launch(tenant);
    one.works = false;
    if (one.is_open && one.has_work) one.used_up = one.number;
    say(tenant);
  }

  std::mt19937 random_;
  Ns delay_ns_;
  std::vector<std::vector<std::pair<Ns, Ns>>> uses_;
  int active_ = -1;
  Ns slice_end_ns_ = 0;
};

TEST(TurnScheduler, LetsAtMostTheNextTenantWorkBesideTheLastKernelsOfATurn) {
  for (unsigned seed = 0; seed < 20; ++seed) {
    Machine machine(2 + seed % 15, seed);
    machine.tells_ends = seed % 3 == 0;
    machine.set(static_cast<regatta_share_policy>(seed % 4));
    std::mt19937 random(seed);
    for (int step = 0; step < 200; ++step) {
      Machine::Process& one = machine.processes[random() % machine.processes.size()];
      if (!one.works) one.kernel = (1 + random() % 100) * 100 * kUs;
      machine.give_work(random() % machine.processes.size(), random() % 2 == 0);
      machine.run_until(machine.now + random() % (20 * kMs));
    }
    EXPECT_LE(machine.most_at_work, 2) << seed;
  }
}

TEST(TurnScheduler, OpensTheNextTurnBeforeTheDeviceIsIdle) {
  for (const bool knows_ends : {false, true}) {
    Machine machine(2, 1, 200 * kUs);
    machine.tells_ends = knows_ends;
    machine.set(REGATTA_SHARE_EQUAL);
    for (const std::size_t i : {0U, 1U}) {
      machine.processes[i].kernel = 500 * kUs;
      machine.give_work(i, true);
    }
    machine.run_until(kS);
    for (Ns turn = 0; turn < 40; ++turn) {
      machine.scheduler.learn_delay(200 * kUs);
      machine.run_until(kS + turn * 10 * kMs);
    }
    machine.run_until(3 * kS);
    const double all = machine.share(0, 2 * kS, 3 * kS) + machine.share(1, 2 * kS, 3 * kS);
    EXPECT_GT(all, knows_ends ? 0.99 : 0.97);
  }
}

// The last kernels of a turn take several turns of the others.
TEST(TurnScheduler, ChargesEachOfTwoTenantsAtOnceForItsSlices) {
  for (const Ns kernel : {3 * kMs, 4'600 * kUs, 12 * kMs, 40 * kMs}) {
    Machine machine(2, 3);
    machine.tells_ends = false;
    machine.set(REGATTA_SHARE_EQUAL);
    machine.processes[0].kernel = kernel;
    machine.processes[1].kernel = 250 * kUs;
    for (const std::size_t i : {0U, 1U})
      machine.give_work(i, true);
    machine.run_until(5 * kS);
    EXPECT_NEAR(machine.share(0, kS, 5 * kS), 0.5, 0.02) << kernel;
    EXPECT_NEAR(machine.share(1, kS, 5 * kS), 0.5, 0.02) << kernel;
  }
}

TEST(TurnScheduler, KeepsThePartsOfEveryPolicyInEverySecond) {
  for (const auto policy : {REGATTA_SHARE_FIXED, REGATTA_SHARE_EQUAL, REGATTA_SHARE_WEIGHT,
                            REGATTA_SHARE_BURST_WEIGHT}) {
    for (const std::size_t count : {2U, 5U, 16U}) {
      Machine machine(count, 3);
      std::vector<double> shares(count);
      double weights = 0;
      for (std::size_t i = 0; i < count; ++i) {
        machine.tenants[i].limits.weight = 1 + static_cast<unsigned>(i % 3);
        machine.tenants[i].limits.quota_ppm = 900'000 / static_cast<unsigned>(count);
        machine.processes[i].kernel = 5 * kUs << i % 8;
        weights += 1 + static_cast<double>(i % 3);
      }
      if (policy == REGATTA_SHARE_BURST_WEIGHT)
        for (auto& one : machine.tenants)
          one.limits.quota_ppm = 0;
      machine.set(policy);
      for (std::size_t i = 0; i < count; ++i) {
        shares[i] = policy == REGATTA_SHARE_FIXED   ? 0.9 / static_cast<double>(count)
                    : policy == REGATTA_SHARE_EQUAL ? 1 / static_cast<double>(count)
                                                    : (1 + static_cast<double>(i % 3)) / weights;
        machine.give_work(i, true);
      }
      machine.run_until(4 * kS);
      for (std::size_t i = 0; i < count; ++i)
        EXPECT_LT(machine.worst(i, shares[i], 0), 0.02) << policy << " " << count << " " << i;
    }
  }
}

TEST(TurnScheduler, SwitchesThePolicyWithoutAnIdleDevice) {
  Machine machine(2, 1);
  machine.tenants[0].limits.weight = 3;
  machine.set(REGATTA_SHARE_EQUAL);
  for (const std::size_t i : {0U, 1U})
    machine.give_work(i, true);
  machine.run_until(2 * kS);
  machine.set(REGATTA_SHARE_WEIGHT);
  machine.run_until(4 * kS);
  EXPECT_NEAR(machine.share(0, kS, 2 * kS), 0.5, 0.02);
  EXPECT_NEAR(machine.share(0, 2 * kS, 3 * kS), 0.75, 0.02);
  EXPECT_GT(
      machine.share(0, 2 * kS, 2 * kS + 100 * kMs) + machine.share(1, 2 * kS, 2 * kS + 100 * kMs),
      0.97);
}

TEST(TurnScheduler, GivesWhatAnIdleTenantLeavesUnderBurstWeightOnly) {
  for (const auto policy : {REGATTA_SHARE_FIXED, REGATTA_SHARE_EQUAL, REGATTA_SHARE_WEIGHT,
                            REGATTA_SHARE_BURST_WEIGHT}) {
    Machine machine(2, 1);
    machine.set(policy);
    machine.give_work(0, true);
    machine.give_work(1, false);
    machine.run_until(2 * kS);
    EXPECT_NEAR(machine.share(0, kS, 2 * kS), policy == REGATTA_SHARE_BURST_WEIGHT ? 1 : 0.5, 0.02)
        << policy;
    // A tenant that returns has its share within 100 ms.
    machine.give_work(1, true);
    machine.run_until(3 * kS);
    EXPECT_NEAR(machine.share(1, 2 * kS, 2 * kS + 100 * kMs), 0.5, 0.05) << policy;
    EXPECT_LT(machine.worst(1, 0.5, 2 * kS), 0.02) << policy;
  }
}

TEST(TurnScheduler, LeavesLaunchesOpenWhereNobodyElseHasWork) {
  Machine machine(2, 1);
  machine.set(REGATTA_SHARE_BURST_WEIGHT);
  machine.give_work(1, false);
  machine.give_work(0, true);
  machine.run_until(100 * kMs);
  machine.give_work(0, false);
  machine.run_until(200 * kMs);
  EXPECT_TRUE(machine.processes[0].is_open);
  machine.give_work(1, true);
  machine.run_until(201 * kMs);
  EXPECT_FALSE(machine.processes[0].is_open);
  EXPECT_TRUE(machine.processes[1].is_open);
}

TEST(TurnScheduler, ATenantInDebtIsServedWhenItHasPaidThoughNobodyElseDoesAnything) {
  Machine machine(2, 1);
  machine.set(REGATTA_SHARE_EQUAL);
  machine.processes[1].kernel = 400 * kMs;
  machine.give_work(0, false);
  machine.give_work(1, true);
  machine.run_until(410 * kMs);
  machine.give_work(0, true);
  machine.run_until(420 * kMs);
  machine.give_work(0, false);
  machine.run_until(2 * kS);
  EXPECT_GT(machine.share(1, kS, 2 * kS), 0.39);
}

TEST(TurnScheduler, HighPriorityIsServedAfterTheKernelThatRuns) {
  Machine machine(2, 1);
  machine.tenants[0].is_high = true;
  machine.processes[0].kernel = 200 * kUs;
  machine.processes[1].kernel = 700 * kUs;
  machine.set(REGATTA_SHARE_BURST_WEIGHT);
  machine.give_work(0, false);
  machine.give_work(1, true);
  machine.run_until(50 * kMs);
  std::mt19937 random(1);
  for (int i = 0; i < 300; ++i) {
    const Ns asked = machine.now;
    machine.give_work(0, true);
    while (!machine.processes[0].works && machine.now < asked + 10 * kMs)
      machine.run_until(machine.now + 10 * kUs);
    EXPECT_LT(machine.now - asked, 700 * kUs + 60 * kUs);
    machine.give_work(0, false);
    machine.run_until(machine.now + kMs + random() % (8 * kMs));
  }
}

TEST(TurnScheduler, GoesOnWhenATenantDiesInItsTurn) {
  Machine machine(2, 1);
  machine.set(REGATTA_SHARE_EQUAL);
  for (const std::size_t i : {0U, 1U})
    machine.give_work(i, true);
  machine.run_until(100 * kMs);
  while (!machine.processes[0].works)
    machine.run_until(machine.now + kMs);
  machine.processes[0] = {.has_work = false};
  machine.tenants[0] = {};
  machine.scheduler.forget(0, machine.now);
  machine.set(REGATTA_SHARE_EQUAL);
  const Ns died = machine.now;
  machine.run_until(died + kS);
  EXPECT_GT(machine.share(1, died + kMs, died + kS), 0.98);
}

// Its launches were open, as nobody else had work; the next one's page knows nothing of that.
TEST(TurnScheduler, OpensATurnForWhoTakesTheNumberOfATenantThatHasGone) {
  TurnScheduler scheduler({}, 0);
  TurnScheduler::Tenants tenants{};
  tenants[0].limits = {.quota_ppm = 1'000'000, .weight = 1, .present = 1, .runnable = 0};
  for (const Ns begin : {kMs, 10 * kMs}) {
    scheduler.set_tenants(REGATTA_SHARE_FIXED, tenants, begin);
    scheduler.set_activity(0, {.wants = true}, begin);
    const auto order = scheduler.next_order(begin);
    ASSERT_TRUE(order);
    EXPECT_EQ(order->kind, TurnCommand::Kind::kOpen);
    scheduler.set_activity(0, {.works = true}, begin + kMs);
    scheduler.set_activity(0, {.used_ns = kMs}, begin + 2 * kMs);
    while (scheduler.next_order(begin + 2 * kMs))
      continue;
    EXPECT_EQ(scheduler.open_tenant(), 0);
    scheduler.forget(0, begin + 3 * kMs);
    EXPECT_EQ(scheduler.open_tenant(), -1);
  }
}

// It works for a tenth of the time and has half of it.
TEST(TurnScheduler, ChargesWorkOnceWhereATurnLastsOverManyPauses) {
  TurnScheduler scheduler({}, 0);
  TurnScheduler::Tenants tenants{};
  tenants[0].limits = {.quota_ppm = 500'000, .weight = 1, .present = 1, .runnable = 0};
  scheduler.set_tenants(REGATTA_SHARE_FIXED, tenants, 0);
  scheduler.set_activity(0, {.wants = true}, kMs);
  ASSERT_EQ(scheduler.next_order(kMs)->kind, TurnCommand::Kind::kOpen);
  Ns now = kMs;
  for (int i = 0; i < 100; ++i) {
    scheduler.set_activity(0, {.works = true, .entered_ns = kMs, .ended_ns = now - kMs}, now);
    while (scheduler.next_order(now))
      continue;
    EXPECT_EQ(scheduler.open_tenant(), 0) << i;
    const Ns ended = now + 100 * kUs;
    for (const Ns seen : {ended, ended + 400 * kUs}) {  // told again while it pauses
      scheduler.set_activity(0, {.entered_ns = kMs, .ended_ns = ended}, seen);
      while (scheduler.next_order(seen))
        continue;
    }
    now += kMs;
  }
}

// A tenant whose memory is to leave, at work or idle with its launches open.
TEST(TurnScheduler, EndsTheTurnOfWhoseMemoryLeavesAndGivesItNoOther) {
  for (const bool is_at_work : {true, false}) {
    TurnScheduler scheduler({}, 0);
    TurnScheduler::Tenants tenants{};
    tenants[0].limits = {.quota_ppm = 500'000, .weight = 1, .present = 1, .runnable = 0};
    scheduler.set_tenants(REGATTA_SHARE_BURST_WEIGHT, tenants, 0);
    scheduler.set_activity(0, {.wants = true}, kMs);
    ASSERT_EQ(scheduler.next_order(kMs)->kind, TurnCommand::Kind::kOpen);
    scheduler.set_activity(0, {.works = is_at_work}, 2 * kMs);
    while (scheduler.next_order(2 * kMs))
      continue;
    EXPECT_EQ(scheduler.open_tenant(), 0);
    scheduler.set_activity(0, {.works = is_at_work, .is_swapped_out = true}, 3 * kMs);
    const auto close = scheduler.next_order(3 * kMs);
    ASSERT_TRUE(close);
    EXPECT_EQ(close->kind, TurnCommand::Kind::kClose);
    scheduler.set_activity(0, {.is_swapped_out = true}, 4 * kMs);
    EXPECT_FALSE(scheduler.next_order(4 * kMs));
    EXPECT_EQ(scheduler.open_tenant(), -1);
    scheduler.set_activity(0, {.wants = true}, 5 * kMs);
    ASSERT_EQ(scheduler.next_order(5 * kMs)->kind, TurnCommand::Kind::kOpen) << "it is back";
  }
}

TEST(TurnScheduler, AsksWhetherTheProcessesOfATurnThatDoesNotEndAreStopped) {
  TurnScheduler scheduler({}, 0);
  TurnScheduler::Tenants tenants{};
  for (const std::size_t i : {0U, 1U})
    tenants[i].limits = {.quota_ppm = 500'000, .weight = 1, .present = 1, .runnable = 0};
  scheduler.set_tenants(REGATTA_SHARE_EQUAL, tenants, 0);
  Ns now = kMs;
  std::vector<Ns> checks;
  for (const int tenant : {0, 1}) {
    scheduler.set_activity(tenant, {.wants = true}, now);
    if (tenant == 0) {
      ASSERT_EQ(scheduler.next_order(now)->kind, TurnCommand::Kind::kOpen);
      scheduler.set_activity(0, {.works = true, .entered_ns = now}, now);
    }
  }
  while (now < 40 * kMs) {
    const auto order = scheduler.next_order(now);
    if (!order) {
      now = std::max(now + 1, scheduler.wake_ns());
    } else if (order->kind == TurnCommand::Kind::kCheck) {
      checks.push_back(now);
    } else if (order->kind == TurnCommand::Kind::kOpen) {
      EXPECT_EQ(order->tenant, 1) << "while the last work of the first is in flight";
      EXPECT_LE(now, 7 * kMs);
      scheduler.set_activity(1, {.works = true, .entered_ns = now}, now);
    }
  }
  ASSERT_GE(checks.size(), 3U);
  EXPECT_LE(checks.front(), 17 * kMs) << "two turns of 5 ms, and 5 ms more";
  // It is: what it has in flight is charged, and its turn ends.
  scheduler.set_activity(1, {.ended_ns = now + 3 * kMs}, now);
  static_cast<void>(scheduler.next_order(now));
  EXPECT_NE(scheduler.open_tenant(), 1);
}

TEST(TurnScheduler, LetsOthersWorkBesideATurnWhoseWorkDoesNotEnd) {
  Machine machine(2, 1);
  machine.set(REGATTA_SHARE_EQUAL);
  machine.processes[0].kernel = 1000 * kS;
  for (const std::size_t i : {0U, 1U})
    machine.give_work(i, true);
  machine.run_until(60 * kS);
  EXPECT_NEAR(machine.share(1, kS, 60 * kS), 0.5, 0.02) << "slices of the device's time";
}

TEST(UseHistory, CountsTheLastSecondAndAll) {
  UseHistory history;
  history.add(3, 0, 50 * kMs);
  for (Ns begin = kS; begin < 3 * kS; begin += 10 * kMs)
    history.add(3, begin, begin + 3 * kMs);
  EXPECT_EQ(history.last_second(3, 3 * kS), 300 * kMs);
  EXPECT_EQ(history.last_second(3, 3 * kS + 500 * kMs), 150 * kMs);
  EXPECT_EQ(history.last_second(3, 5 * kS), 0U);
  EXPECT_EQ(history.total(3), 650 * kMs);
  history.add(3, 5 * kS, 25 * kS);
  EXPECT_EQ(history.last_second(3, 25 * kS), kS);
  history.forget(3);
  EXPECT_EQ(history.total(3), 0U);
}

}  // namespace
}  // namespace regatta::sharing
