#include "regatta/platform/monitoring/tenant_ledger.h"

#include <gmock/gmock.h>

namespace regatta::monitoring {
namespace {

using control::JobPhase;

constexpr Seconds kLease{30};

class TenantLedgerTest : public testing::Test {
 protected:
  TenantLedgerTest() {
    control::ManagedNode& node = tables_.nodes.emplace_back();
    node.facts.name = "n1";
    node.facts.device_type = "h100";
    node.facts.devices = 8;
  }
  control::ManagedJob& job(control::JobId id, JobPhase phase, std::uint32_t devices = 0) {
    control::ManagedJob& job = tables_.jobs[id];
    job.id = id;
    job.queue = "research";
    job.user = "ada";
    job.phase = phase;
    job.attempt.reset();
    if (devices != 0) {
      job.attempts = 1;
      job.attempt = std::make_unique<control::Attempt>();
      job.attempt->replicas.push_back(
          {.devices = devices, .phase = control::ReplicaPhase::kRunning});
    }
    return job;
  }
  void see(control::JobId id, double now) { ledger_.see(tables_, id, Seconds{now}); }
  const TenantSums& sums() const { return ledger_.tenants().at({"research", "ada"}).sums; }
  // The ledger of a controller that starts with the stored records.
  TenantLedger restarted(std::int64_t stored_ms, std::int64_t now_ms) {
    for (const auto& [key, value] : ledger_.take_records(stored_ms))
      tables_.observed[key] = {.value = value};
    TenantLedger again({{"h100", 2}});
    EXPECT_TRUE(again.load(tables_, Seconds{5000}, now_ms, kLease));
    return again;
  }

  control::ClusterTables tables_;
  TenantLedger ledger_{{{"h100", 2}}};
};

TEST_F(TenantLedgerTest, CountsWaitingDevicesAndMoneyToTheMomentOfEachChange) {
  job(1, JobPhase::kPending);
  see(1, 100);
  job(1, JobPhase::kRunning, 0xf);
  see(1, 130);
  EXPECT_DOUBLE_EQ(sums().waiting_s, 30);
  EXPECT_EQ(sums().starts, 1);
  job(1, JobPhase::kSucceeded);
  see(1, 1030);
  EXPECT_DOUBLE_EQ(sums().device_s, 3600);
  EXPECT_DOUBLE_EQ(sums().money, 2);
  EXPECT_DOUBLE_EQ(sums().waiting_s, 30);
  EXPECT_DOUBLE_EQ(ledger_.job(1)->device_s, 3600);
  ledger_.advance(Seconds{9999});
  EXPECT_DOUBLE_EQ(sums().device_s, 3600) << "nobody has devices now";
}

TEST_F(TenantLedgerTest, LeavesOutHeldJobsAndDevicesThatAreNotThereYet) {
  job(1, JobPhase::kPending).is_held = true;
  see(1, 0);
  job(2, JobPhase::kStarting, 0xf).attempt->replicas.front().phase =
      control::ReplicaPhase::kWaiting;
  see(2, 0);
  ledger_.advance(Seconds{100});
  EXPECT_DOUBLE_EQ(sums().waiting_s, 0);
  EXPECT_DOUBLE_EQ(sums().device_s, 0);
}

TEST_F(TenantLedgerTest, AddsMeasuredUseToJobAndTenant) {
  job(1, JobPhase::kRunning, 0b11);
  see(1, 0);
  ledger_.add_use(1, {.measured_s = 2, .used_s = 1.5});
  ledger_.add_use(99, {.measured_s = 5, .used_s = 5});
  EXPECT_DOUBLE_EQ(sums().used_s, 1.5);
  EXPECT_DOUBLE_EQ(ledger_.job(1)->measured_s, 2);
  EXPECT_EQ(ledger_.job(99), nullptr);
}

TEST_F(TenantLedgerTest, GoesOnAfterARestartWithTheDevicesThatJobsKept) {
  job(1, JobPhase::kRunning, 0b11).attempt->started_ms = 1'000'000;
  see(1, 0);
  ledger_.advance(Seconds{60});
  EXPECT_DOUBLE_EQ(sums().device_s, 120);
  const TenantLedger again = restarted(1'060'000, 1'070'000);
  const TenantAccount& account = again.tenants().at({"research", "ada"});
  EXPECT_DOUBLE_EQ(account.sums.device_s, 140) << "ten seconds without a controller";
  EXPECT_EQ(account.devices, 2);
  EXPECT_EQ(account.sums.starts, 1) << "the start is counted once";
}

TEST_F(TenantLedgerTest, CountsNoLongerWithoutAControllerThanAgentsDo) {
  job(1, JobPhase::kRunning, 0b1).attempt->started_ms = 1'000'000;
  see(1, 0);
  const TenantLedger again = restarted(1'000'000, 9'000'000'000);
  EXPECT_DOUBLE_EQ(again.tenants().at({"research", "ada"}).sums.device_s, kLease.value);
}

TEST_F(TenantLedgerTest, StoresATenantOnlyWhenItHasChanged) {
  job(1, JobPhase::kPending);
  see(1, 0);
  ledger_.advance(Seconds{1});
  EXPECT_EQ(ledger_.take_records(0).size(), 1U);
  EXPECT_EQ(ledger_.take_records(0).size(), 0U);
}

}  // namespace
}  // namespace regatta::monitoring
