#include "regatta/platform/monitoring/alert_conditions.h"

#include <gmock/gmock.h>

namespace regatta::monitoring {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

std::vector<std::string> texts(AlertKind kind, double limit, const control::ClusterTables& tables,
                               const ClusterFacts& facts) {
  std::vector<std::string> texts;
  for (const AlertCondition& condition :
       find_conditions({{.name = "r", .kind = kind, .limit = limit}}, tables, facts, 100'000'000))
    texts.push_back(condition.object + ": " + condition.text);
  return texts;
}

TEST(AlertConditions, FindEachKindOfTroubleAndNothingWithoutIt) {
  control::ClusterTables tables;
  control::ManagedNode& node = tables.nodes.emplace_back();
  node.facts.name = "n1";
  node.facts.devices = 8;
  control::ManagedJob& job = tables.jobs[17];
  job.id = 17;
  job.name = "bert";
  job.failures = 2;
  job.reason = "replica 0 ended with status 1";
  ClusterFacts facts;
  for (std::size_t kind = 0; kind < kAlertKindNames.size(); ++kind)
    EXPECT_THAT(texts(static_cast<AlertKind>(kind), 1, tables, facts), IsEmpty())
        << kAlertKindNames[kind];
  node.is_silent = true;
  node.facts.failed_devices = 0b101;
  facts = {.is_disk_low = true,
           .decision_time = Seconds{7},
           .certificate_end_ms = 100'000'000 + 86'400'000,
           .job_use = {{17, 3}},
           .oldest_ms = {{"research", 90'000'000}},
           .failed_jobs = {17},
           .restarted_jobs = {17}};
  EXPECT_THAT(texts(AlertKind::kNodeSilent, 0, tables, facts),
              ElementsAre("n1: node n1: it is not heard"));
  EXPECT_THAT(texts(AlertKind::kDeviceFailed, 0, tables, facts),
              ElementsAre("n1: node n1: 2 of 8 devices have failed"));
  EXPECT_THAT(texts(AlertKind::kJobFailed, 0, tables, facts),
              ElementsAre("bert-17: job bert-17: it failed: replica 0 ended with status 1"));
  EXPECT_THAT(texts(AlertKind::kJobRestarts, 2, tables, facts),
              ElementsAre("bert-17: job bert-17: it failed and started again 2 times"));
  EXPECT_THAT(texts(AlertKind::kJobRestarts, 3, tables, facts), IsEmpty());
  EXPECT_THAT(texts(AlertKind::kQueueWaiting, 9000, tables, facts),
              ElementsAre("research: queue research: its oldest job waits for 10000 s"));
  EXPECT_THAT(texts(AlertKind::kDeviceIdle, 5, tables, facts),
              ElementsAre("bert-17: job bert-17: its devices work 3 % of the time"));
  EXPECT_THAT(texts(AlertKind::kDeviceIdle, 3, tables, facts), IsEmpty());
  EXPECT_THAT(texts(AlertKind::kDiskLow, 0, tables, facts),
              ElementsAre(": the controller's disk is nearly full"));
  EXPECT_THAT(texts(AlertKind::kCertificateEnds, 2, tables, facts),
              ElementsAre(": the controller's certificate ends in 1.0 days"));
  EXPECT_THAT(texts(AlertKind::kDecisionSlow, 5, tables, facts),
              ElementsAre(": the scheduler took 7.0 s for a decision"));
}

}  // namespace
}  // namespace regatta::monitoring
