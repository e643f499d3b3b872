#include "regatta/platform/monitoring/alert_conditions.h"

#include <bit>
#include <utility>

#include <fmt/format.h>

#include "regatta/platform/monitoring/device_table.h"

namespace regatta::monitoring {
namespace {

constexpr double kMsPerSecond = 1000;
constexpr double kSecondsPerDay = 86400;

class ConditionFinder {
 public:
  ConditionFinder(const control::ClusterTables& tables, const ClusterFacts& facts,
                  std::int64_t unix_ms)
      : tables_(tables), facts_(facts), unix_ms_(unix_ms) {}

  void find(const AlertRule& rule) {
    rule_ = &rule;
    switch (rule.kind) {
      case AlertKind::kNodeSilent:
        for (const control::ManagedNode& node : tables_.nodes)
          if (node.is_silent)
            add(node.facts.name, fmt::format("node {}: it is not heard", node.facts.name));
        return;
      case AlertKind::kDeviceFailed:
        return find_failed_devices();
      case AlertKind::kJobFailed:
        for (const control::JobId id : facts_.failed_jobs)
          add_job(id, [](const control::ManagedJob& job) { return "it failed: " + job.reason; });
        return;
      case AlertKind::kJobRestarts:
        for (const control::JobId id : facts_.restarted_jobs)
          add_job(id, [&](const control::ManagedJob& job) {
            return job.failures < rule.limit
                       ? ""
                       : fmt::format("it failed and started again {} times", job.failures);
          });
        return;
      case AlertKind::kQueueWaiting:
        return find_waiting_queues();
      case AlertKind::kDeviceIdle:
        for (const auto& [id, use] : facts_.job_use)
          if (use < rule.limit)
            add_job(id, [percent = use](const control::ManagedJob&) {
              return fmt::format("its devices work {:.0f} % of the time", percent);
            });
        return;
      case AlertKind::kDiskLow:
        if (facts_.is_disk_low) add("", "the controller's disk is nearly full");
        return;
      case AlertKind::kCertificateEnds:
        return find_certificate();
      case AlertKind::kDecisionSlow:
        if (facts_.decision_time.value > rule.limit)
          add("", fmt::format("the scheduler took {:.1f} s for a decision",
                              facts_.decision_time.value));
        return;
    }
  }
  std::vector<AlertCondition> take() { return std::move(conditions_); }

 private:
  void add(const std::string& object, std::string text) {
    conditions_.push_back({.rule = rule_->name, .object = object, .text = std::move(text)});
  }
  // `problem` gives "" where there is none.
  template <typename Problem>
  void add_job(control::JobId id, const Problem& problem) {
    const control::ManagedJob* const job = tables_.find_job(id);
    if (job == nullptr) return;
    const std::string text = problem(*job);
    const std::string handle = control::handle_of(*job);
    if (!text.empty()) add(handle, fmt::format("job {}: {}", handle, text));
  }
  void find_failed_devices() {
    for (const control::ManagedNode& node : tables_.nodes)
      if (const int failed = std::popcount(node.facts.failed_devices); failed > 0)
        add(node.facts.name, fmt::format("node {}: {} of {} devices have failed", node.facts.name,
                                         failed, node.facts.devices));
  }
  void find_waiting_queues() {
    for (const auto& [queue, since_ms] : facts_.oldest_ms) {
      const double waited_s = static_cast<double>(unix_ms_ - since_ms) / kMsPerSecond;
      if (waited_s > rule_->limit)
        add(queue, fmt::format("queue {}: its oldest job waits for {:.0f} s", queue, waited_s));
    }
  }
  void find_certificate() {
    if (facts_.certificate_end_ms == 0) return;
    const double left =
        static_cast<double>(facts_.certificate_end_ms - unix_ms_) / kMsPerSecond / kSecondsPerDay;
    if (left < rule_->limit)
      add("", fmt::format("the controller's certificate ends in {:.1f} days", left));
  }

  const control::ClusterTables& tables_;
  const ClusterFacts& facts_;
  std::int64_t unix_ms_;
  const AlertRule* rule_ = nullptr;
  std::vector<AlertCondition> conditions_;
};

}  // namespace

std::vector<AlertCondition> find_conditions(const std::vector<AlertRule>& rules,
                                            const control::ClusterTables& tables,
                                            const ClusterFacts& facts, std::int64_t unix_ms) {
  ConditionFinder finder(tables, facts, unix_ms);
  for (const AlertRule& rule : rules)
    if (rule.is_enabled) finder.find(rule);
  return finder.take();
}

}  // namespace regatta::monitoring
