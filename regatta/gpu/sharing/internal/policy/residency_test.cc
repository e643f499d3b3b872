#include "regatta/gpu/sharing/internal/policy/residency.h"

#include <algorithm>
#include <cstdio>
#include <numeric>
#include <random>
#include <vector>

#include <gtest/gtest.h>

namespace regatta::sharing {
namespace {

using U64 = unsigned long long;
constexpr U64 kGiB = 1ULL << 30;
constexpr U64 kMs = 1'000'000;
constexpr U64 kS = 1'000'000'000;
constexpr U64 kRate = 25'000;  // bytes a us: 25 GB/s

struct Tenant {
  U64 demand = 0;
  U64 bound = 0;  // of it: moves last, as a whole
  bool runnable = false;
  bool obeys = true;
  U64 lease_ns = 0;
  U64 resident = 0;
  U64 granted = 0;
  U64 moved = 0;      // both directions
  U64 worked_ns = 0;  // while in
  U64 waits_since = 0;
  U64 longest_wait = 0;
  U64 bound_done = 0;  // of the move that is under way
  bool bound_there = false;
};

// A device and its link, both directions at once; tenants obey at the speed of the link.
class Machine {
 public:
  Machine(U64 capacity, std::vector<Tenant> all, U64 longest_wait = 600 * kS)
      : tenants(std::move(all)) {
    regatta_residency_init(&policy, kRate, longest_wait);
    policy.capacity = capacity;
  }

  void run(U64 length, U64 step = 10 * kMs) {
    for (const U64 end = now + length; now < end; now += step) {
      decide();
      move(step);
      for (Tenant& one : tenants) {
        const bool is_in = one.granted >= one.demand && one.resident >= one.demand;
        if (one.runnable && is_in) one.worked_ns += step;
        if (!one.runnable || is_in) one.waits_since = now;
        one.longest_wait = std::max(one.longest_wait, now - one.waits_since);
      }
    }
  }

  U64 decide() {
    see();
    U64 may[REGATTA_TENANTS_MAX] = {};
    const U64 wake = regatta_residency_step(&policy, now, may);
    for (std::size_t i = 0; i < tenants.size(); ++i)
      tenants[i].granted = may[i] < tenants[i].bound ? 0 : may[i];
    see();
    U64 held = 0;
    for (const Tenant& one : tenants)
      held += std::max(one.resident, one.granted);
    most_held = std::max(most_held, held);
    return wake;
  }
  U64 moved() const {
    return std::accumulate(tenants.begin(), tenants.end(), U64{0},
                           [](U64 sum, const Tenant& one) { return sum + one.moved; });
  }
  U64 worked_ns() const {
    return std::accumulate(tenants.begin(), tenants.end(), U64{0},
                           [](U64 sum, const Tenant& one) { return sum + one.worked_ns; });
  }

  regatta_residency policy{};
  std::vector<Tenant> tenants;
  U64 now = kS;
  U64 most_held = 0;

 private:
  void see() {
    for (unsigned i = 0; i < tenants.size(); ++i) {
      const Tenant& one = tenants[i];
      regatta_residency_tenant seen{};
      seen.demand = one.demand;
      seen.resident = one.resident;
      seen.bound = one.bound;
      seen.granted = one.granted;
      seen.lease_ns = one.lease_ns;
      seen.is_runnable = one.runnable ? 1 : 0;
      seen.is_stuck = one.obeys ? 0 : 1;
      regatta_residency_update(&policy, i, &seen, now);
    }
  }
  // Bound memory is called back part by part, but counts as resident until all of it has gone, and
  // as gone until all of it is back.
  static void move_bound(Tenant& one, U64& link, bool in) {
    const U64 part = std::min(link, one.bound - one.bound_done);
    one.bound_done += part;
    one.moved += part;
    link -= part;
    if (one.bound_done < one.bound) return;
    one.bound_done = 0;
    one.bound_there = in;
    one.resident = in ? one.bound : 0;
  }
  void move(U64 step) {
    U64 out = kRate * (step / 1000);
    U64 in = out;
    for (Tenant& one : tenants) {
      const U64 kept = one.bound_there ? one.bound : 0;
      if (one.resident > one.granted && one.obeys) {
        const U64 part = std::min(out, one.resident - std::max(one.granted, kept));
        one.resident -= part;
        one.moved += part;
        out -= part;
        if (one.granted < kept && one.resident == kept) move_bound(one, out, false);
      } else if (one.bound != 0 && !one.bound_there && one.granted >= one.bound) {
        move_bound(one, in, true);
      } else if (one.resident < std::min(one.granted, one.demand)) {
        const U64 part = std::min(in, std::min(one.granted, one.demand) - one.resident);
        one.resident += part;
        one.moved += part;
        in -= part;
      }
    }
  }
};

std::vector<Tenant> equal_tenants(std::size_t count, U64 demand) {
  return std::vector<Tenant>(count, Tenant{.demand = demand, .runnable = true});
}

TEST(Residency, MovesNothingOutWhileAllFit) {
  Machine machine(80 * kGiB, equal_tenants(4, 20 * kGiB));
  machine.run(60 * kS);
  EXPECT_EQ(machine.moved(), 80 * kGiB);  // each came in once
  for (const Tenant& one : machine.tenants)
    EXPECT_GT(one.worked_ns, 50 * kS);
}

TEST(Residency, ServesEightTenantsOfFourFifthsInTurn) {
  Machine machine(80 * kGiB, equal_tenants(8, 64 * kGiB));
  machine.run(1000 * kS);
  EXPECT_LE(machine.most_held, 80 * kGiB);
  std::printf("worked %.3f of the time, moved %llu GiB, longest wait %.0f s\n",
              static_cast<double>(machine.worked_ns()) / (1000.0 * kS), machine.moved() / kGiB,
              static_cast<double>(machine.tenants[7].longest_wait) / kS);
  EXPECT_GT(machine.worked_ns(), 850 * kS);
  const U64 round = 8 * (regatta_residency_slice_ns(&machine.policy, 0) + 6 * kS);
  for (const Tenant& one : machine.tenants) {
    EXPECT_GT(one.worked_ns, 60 * kS);
    EXPECT_LE(one.longest_wait, round);
  }
}

TEST(Residency, CutsStaysWhereManyWaitButNotBelowWhatASwapCosts) {
  Machine machine(80 * kGiB, equal_tenants(8, 64 * kGiB), 40 * kS);
  machine.run(500 * kS);
  EXPECT_LT(regatta_residency_slice_ns(&machine.policy, 0), 10 * kS);
  EXPECT_GE(regatta_residency_slice_ns(&machine.policy, 0),
            regatta_swap_cost_ns(&machine.policy, 0));
  for (const Tenant& one : machine.tenants)
    EXPECT_LE(one.longest_wait, 40 * kS + 8 * 6 * kS);
}

TEST(Residency, AsksTheLongestIdleFirstAndNoMoreThanIsLacking) {
  Machine machine(100 * kGiB, equal_tenants(3, 40 * kGiB));
  machine.tenants[2].runnable = false;
  machine.run(20 * kS);
  machine.tenants[1].runnable = false;
  machine.run(20 * kS);
  machine.tenants[0].runnable = false;
  machine.run(20 * kS);
  machine.tenants[2].runnable = true;
  machine.decide();
  EXPECT_EQ(machine.tenants[0].granted, 40 * kGiB);
  EXPECT_EQ(machine.tenants[1].granted, 20 * kGiB);
}

TEST(Residency, WaitsUntilAStayIsOverAndSaysWhen) {
  Machine machine(100 * kGiB, equal_tenants(2, 80 * kGiB));
  machine.tenants[1].runnable = false;
  machine.run(10 * kS);
  machine.tenants[1].runnable = true;
  const U64 wake = machine.decide();
  EXPECT_EQ(machine.tenants[0].granted, 80 * kGiB);
  ASSERT_NE(wake, ~0ULL);
  machine.now = wake - 1;
  EXPECT_EQ(machine.decide(), wake);
  machine.now = wake;
  machine.decide();
  EXPECT_EQ(machine.tenants[0].granted, 20 * kGiB);  // what the other lacks, it keeps the rest
}

TEST(Residency, BringsNothingInBeforeSpaceWasGivenBack) {
  Machine machine(100 * kGiB, equal_tenants(2, 100 * kGiB));
  machine.run(200 * kS);
  EXPECT_LE(machine.most_held, 100 * kGiB);
  EXPECT_GT(machine.tenants[0].worked_ns, 60 * kS);
  EXPECT_GT(machine.tenants[1].worked_ns, 60 * kS);
}

TEST(Residency, AShortPauseDoesNotCostATenantItsMemory) {
  Machine machine(100 * kGiB, equal_tenants(2, 80 * kGiB));
  machine.tenants[1].runnable = false;
  machine.run(10 * kS);
  machine.tenants[1].runnable = true;
  machine.tenants[0].runnable = false;
  machine.run(kS);
  EXPECT_EQ(machine.tenants[0].granted, 80 * kGiB);
  machine.run(7 * kS);  // longer than its swap takes
  EXPECT_LT(machine.tenants[0].granted, 80 * kGiB);
}

TEST(Residency, ATenantThatGrowsInItsStayComesFirst) {
  Machine machine(100 * kGiB, equal_tenants(3, 40 * kGiB));
  machine.run(10 * kS);  // two are in, the third waits
  machine.tenants[0].demand = 50 * kGiB;
  machine.run(kS);
  EXPECT_EQ(machine.tenants[0].resident, 50 * kGiB);
  EXPECT_EQ(machine.tenants[2].granted, 10 * kGiB);  // it had the rest of the device
}

TEST(Residency, GoesOnWithoutATenantThatDoesNotObey) {
  Machine machine(100 * kGiB, equal_tenants(3, 50 * kGiB));
  machine.run(5 * kS);
  machine.tenants[0].obeys = false;
  machine.run(300 * kS);
  EXPECT_LE(machine.most_held, 100 * kGiB);
  EXPECT_GT(machine.tenants[1].worked_ns, 100 * kS);
  EXPECT_GT(machine.tenants[2].worked_ns, 100 * kS);
}

TEST(Residency, WhoDoesNotFitBesideATenantThatDoesNotObeyBlocksNobody) {
  Machine machine(100 * kGiB, equal_tenants(3, 50 * kGiB));
  machine.tenants[1].runnable = machine.tenants[2].runnable = false;
  machine.tenants[1].demand = 60 * kGiB;
  machine.tenants[2].demand = 40 * kGiB;
  machine.run(10 * kS);
  machine.tenants[0].obeys = false;
  machine.tenants[1].runnable = true;
  machine.run(10 * kS);
  machine.tenants[2].runnable = true;
  machine.run(300 * kS);
  EXPECT_EQ(machine.tenants[0].resident, 50 * kGiB);
  EXPECT_EQ(machine.tenants[1].worked_ns, 0U);
  EXPECT_GT(machine.tenants[2].worked_ns, 200 * kS);
}

TEST(Residency, ShrinksAtOnceWhenTheDeviceHasLess) {
  Machine machine(100 * kGiB, equal_tenants(2, 50 * kGiB));
  machine.run(10 * kS);
  machine.policy.capacity = 70 * kGiB;
  machine.decide();
  EXPECT_EQ(machine.tenants[0].granted + machine.tenants[1].granted, 70 * kGiB);
}

TEST(Residency, TakesWhatIsBoundWhereTheRestIsNotEnoughAndThenAllOfIt) {
  Machine machine(100 * kGiB, equal_tenants(3, 45 * kGiB));
  machine.tenants[0].bound = 20 * kGiB;
  machine.tenants[1].bound = 45 * kGiB;
  machine.tenants[2].runnable = false;
  machine.run(20 * kS);
  machine.tenants[0].runnable = machine.tenants[1].runnable = false;
  machine.run(20 * kS);
  machine.tenants[2].runnable = true;
  machine.tenants[2].demand = 30 * kGiB;
  machine.decide();
  EXPECT_EQ(machine.tenants[0].granted, 25 * kGiB) << "20 GiB of what is loose";
  EXPECT_EQ(machine.tenants[1].granted, 45 * kGiB);
  machine.run(20 * kS);
  machine.tenants[2].demand = 60 * kGiB;
  machine.decide();
  EXPECT_EQ(machine.tenants[0].granted, 0U) << "the rest of what is loose, and what is bound";
  EXPECT_EQ(machine.tenants[1].granted, 0U) << "not less, though less was lacking";
}

TEST(Residency, ServesThoseWhoseMemoryIsBoundAsTheOthers) {
  Machine machine(80 * kGiB, equal_tenants(8, 64 * kGiB));
  machine.tenants[2].bound = machine.tenants[5].bound = 64 * kGiB;
  machine.tenants[6].bound = 1 * kGiB;
  machine.run(2000 * kS);
  EXPECT_LE(machine.most_held, 80 * kGiB);
  const U64 round = 8 * (regatta_residency_slice_ns(&machine.policy, 0) + 7 * kS);
  for (const Tenant& one : machine.tenants) {
    EXPECT_GT(one.worked_ns, 120 * kS);
    EXPECT_LE(one.longest_wait, round);
  }
}

TEST(Residency, StaysALeaseWhereOneIsGiven) {
  Machine machine(100 * kGiB, equal_tenants(2, 80 * kGiB));
  machine.tenants[0].lease_ns = 60 * kS;
  machine.run(50 * kS);
  EXPECT_EQ(machine.tenants[0].granted, 80 * kGiB);
  machine.run(15 * kS);
  EXPECT_LT(machine.tenants[0].granted, 80 * kGiB);
}

// Any tenants, who come, grow, shrink, pause and die: never more than the device has, nobody waits
// for ever, and the link takes no more than it may.
TEST(Residency, HoldsUnderAnyLoad) {
  for (unsigned seed = 1; seed <= 40; ++seed) {
    std::mt19937 random(seed);
    const auto below = [&](U64 limit) {
      return std::uniform_int_distribution<U64>(0, limit - 1)(random);
    };
    const U64 capacity = (20 + below(100)) * kGiB;
    Machine machine(capacity, std::vector<Tenant>(2 + below(10)), (30 + below(300)) * kS);
    for (int round = 0; round < 60; ++round) {
      for (Tenant& one : machine.tenants) {
        if (below(4) == 0) one.runnable = below(3) != 0;
        if (below(6) == 0) one.demand = std::max(one.bound, below(capacity / kGiB + 1) * kGiB);
        one.resident = std::min(one.resident, one.demand);  // what was freed is gone
        if (one.resident == 0 && one.bound_done == 0) one.bound = below(3) * one.demand / 2;
        if (below(200) == 0) {  // dies; another one may come
          const auto index = static_cast<unsigned>(&one - machine.tenants.data());
          regatta_residency_forget(&machine.policy, index);
          one = Tenant();
        }
      }
      machine.run(below(20) * kS, 50 * kMs);
      ASSERT_LE(machine.most_held, capacity) << "seed " << seed;
    }
    for (Tenant& one : machine.tenants) {
      one.runnable = true;
      one.worked_ns = one.longest_wait = 0;
      one.waits_since = machine.now;
    }
    const U64 moved = machine.moved();
    const U64 begin = machine.now;
    machine.run(3000 * kS, 100 * kMs);
    U64 round_ns = 0;
    for (unsigned i = 0; i < machine.tenants.size(); ++i)
      round_ns +=
          regatta_residency_slice_ns(&machine.policy, i) + regatta_swap_cost_ns(&machine.policy, i);
    for (const Tenant& one : machine.tenants) {
      ASSERT_LE(one.longest_wait, round_ns) << "seed " << seed;
      ASSERT_GT(one.worked_ns, 0U) << "seed " << seed;
    }
    // Out and in at once: at most half of the time is lost where waits are bounded.
    ASSERT_LE((machine.moved() - moved) / 2 / kRate * 1000, (machine.now - begin) / 2) << seed;
    ASSERT_LE(machine.most_held, capacity) << "seed " << seed;
  }
}

}  // namespace
}  // namespace regatta::sharing
