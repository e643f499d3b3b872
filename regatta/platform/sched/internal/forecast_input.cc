#include "regatta/platform/sched/internal/forecast_input.h"

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "regatta/base/core/ids.h"
#include "regatta/platform/sched/internal/job_progress.h"
#include "regatta/platform/sched/internal/pending_order.h"

namespace regatta::sched {
namespace {

bool has_limits(const QuotaTree& tree) {
  const auto is_set = [](const auto& limit) { return limit.has_value(); };
  for (int queue = 0; queue < tree.size(); ++queue) {
    const QuotaQueue& quotas = tree.queue(queue);
    if (std::any_of(quotas.limit.begin(), quotas.limit.end(), is_set) ||
        std::any_of(quotas.user_limit.begin(), quotas.user_limit.end(), is_set) ||
        std::any_of(quotas.device_types.begin(), quotas.device_types.end(),
                    [](const auto& type) { return type.limit || type.user_limit; }))
      return true;
  }
  return false;
}

ForecastCluster repaired(const ClusterSnapshot& snapshot) {
  ClusterSnapshot empty;
  empty.nodes = snapshot.nodes;
  for (ClusterNode& node : empty.nodes) {
    node.health = NodeHealth::kReady;
    node.failed_devices = 0;
  }
  return ForecastCluster(empty);
}

class InputBuilder {
 public:
  InputBuilder(const DecisionState& state, const StartForecastOptions& options,
               ForecastInput& input)
      : state_(state),
        options_(options),
        input_(input),
        repaired_(repaired(state.snapshot)),
        repaired_free_(repaired_.free_now()) {}

  ForecastJob job(const JobRequest& request, int account, Seconds completed) {
    input_.lowest_priority = std::min(input_.lowest_priority, request.priority);
    return {.request = &request,
            .kind = kind_of(request, account),
            .run_time = options_.run_time ? options_.run_time(request) : request.run_time,
            .devices = devices_min(request),
            .elapsed = completed.value,
            .submitted = request.submitted.value,
            .gap = 0};
  }

  ForecastRun run(const RunningJob& running) {
    const JobRequest& request = running.request;
    ForecastRun made{
        .places = input_.cluster.places_of(state_.snapshot, running),
        .job = job(request, state_.accounts.at(&request),
                   std::max(Seconds{0}, work_done(state_.snapshot, running))),
        .started = running.started.value,
        .held = {.shape = input_.cluster.shape_of(request), .amounts = {}},
    };
    // Decisions expect an end as they would without the failure.
    if (is_degraded(state_.snapshot, running)) made.job.run_time = {};
    if (counts_quotas()) made.held.amounts = amounts_on(state_, request, running.replicas);
    return made;
  }

 private:
  bool counts_quotas() const { return state_.policy.is_fair || input_.has_limits; }

  // Without limits and fairness all queues are one.
  int kind_of(const JobRequest& request, int account) {
    ForecastKind kind{
        .shape = input_.cluster.shape_of(request), .account = 0, .leaf = 0, .variants = {}};
    if (counts_quotas()) {
      kind.leaf = input_.usage.leaf_of(account);
      kind.account = account;
    }
    // The users of a queue differ by their limits alone.
    const auto key = std::make_tuple(kind.shape, kind.leaf, input_.has_limits ? kind.account : 0);
    const auto [entry, is_new] = numbers_.emplace(key, static_cast<int>(input_.kinds.size()));
    if (!is_new) return entry->second;
    add_variants(request, kind);
    kind.never_fits = !repaired_.fits(repaired_.shape_of(request), repaired_free_);
    input_.kinds.push_back(std::move(kind));
    return entry->second;
  }

  void add_variants(const JobRequest& request, ForecastKind& kind) {
    if (!counts_quotas()) {
      kind.variants = {{kind.shape, {}}};
      return;
    }
    for (const JobRequest& on_type : by_device_type(state_, request))
      kind.variants.push_back({input_.cluster.shape_of(on_type),
                               amounts_wanted(state_, on_type, smallest_size(on_type))});
  }

  const DecisionState& state_;
  const StartForecastOptions& options_;
  ForecastInput& input_;
  ForecastCluster repaired_;  // all nodes ready, no jobs
  ForecastCluster::Free repaired_free_;
  std::map<std::tuple<int, int, int>, int> numbers_;
};

}  // namespace

Result<ForecastInput> make_forecast_input(const ClusterSnapshot& snapshot, const JobQueue& queue,
                                          const SchedulingPolicy& policy,
                                          const StartForecastOptions& options) {
  REGATTA_TRY(state, DecisionState::create(snapshot, queue, policy));
  ForecastInput input{.now = snapshot.now.value,
                      .decision_interval = options.decision_interval.value,
                      .snapshot = &snapshot,
                      .policy = policy,
                      .precautions = state.precautions,
                      .quotas = &queue.quotas,
                      .cluster = ForecastCluster(snapshot),
                      .kinds = {},
                      .usage = state.usage,
                      .has_limits = has_limits(queue.quotas),
                      .shares = {},
                      .capacity = state.capacity,
                      .lowest_priority = std::numeric_limits<int>::max(),
                      .running = {},
                      .pending = {},
                      .wanted = {},
                      .arrivals = {}};
  if (policy.is_fair)
    input.shares = fair_shares(queue.quotas, queue_demands(state), state.capacity);
  InputBuilder builder(state, options, input);
  for (const RunningJob& job : snapshot.running)
    input.running.push_back(builder.run(job));
  for (const PendingJob& job : queue.jobs)
    input.pending.push_back(
        builder.job(job.request, state.accounts.at(&job.request), job.completed));
  // In the order of submission, without a job that passes another, later ones change nothing.
  if (policy.order == JobOrder::kSubmitted && policy.backfill == BackfillRule::kNone &&
      !policy.is_fair)
    return input;
  for (std::size_t i = 1; i < options.recent.size(); ++i) {
    const JobRequest& job = options.recent[i];
    const Result<int> leaf = queue.quotas.find_leaf(job.queue);
    if (!leaf) continue;  // the queue is gone
    input.arrivals.push_back(builder.job(job, input.usage.account(*leaf, job.user), {0}));
    input.arrivals.back().gap = (job.submitted - options.recent[i - 1].submitted).value;
  }
  return input;
}

}  // namespace regatta::sched
