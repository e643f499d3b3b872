// fuzz/sched_state_fuzz.cc: any bytes as a state of the scheduler, what is decided of it, and any
// bytes as a policy.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/platform/sched/decide.h"
#include "regatta/platform/sched/state_file.h"

namespace {

using namespace regatta;  // NOLINT(google-build-using-namespace): one file

// Larger ones are valid but make the fuzzer slow.
bool is_small(const sched::SchedulerState& state) {
  constexpr int kReplicasMax = 64;
  const auto is_small_job = [](const sched::JobRequest& job) {
    int replicas = 0;
    for (const sched::Role& role : job.roles) {
      if (role.replicas_max > kReplicasMax || role.subgroup_replicas > kReplicasMax) return false;
      replicas += role.replicas_max;
    }
    return replicas <= kReplicasMax;
  };
  for (const sched::RunningJob& job : state.snapshot.running)
    if (!is_small_job(job.request)) return false;
  for (const sched::PendingJob& job : state.queue.jobs)
    if (!is_small_job(job.request)) return false;
  return state.snapshot.nodes.size() <= 64 && state.snapshot.running.size() <= 32 &&
         state.queue.jobs.size() <= 32;
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto policy = sched::parse_scheduling_policy(text, "fuzz.yaml");
  if (!policy) REGATTA_CHECK(policy.error().message.starts_with("fuzz.yaml:"));
  const auto state = sched::parse_state(text, "fuzz.yaml", [](const std::string&) {
    return Error{Code::kNotFound, "there are no other files"};
  });
  if (!state) {
    REGATTA_CHECK(state.error().message.starts_with("fuzz.yaml:"));
    return 0;
  }
  if (!is_small(*state)) return 0;
  for (const std::string& name : sched::scheduling_policy_names()) {
    const auto decision =
        sched::decide(state->snapshot, state->queue, *sched::find_scheduling_policy(name));
    REGATTA_CHECK(decision.has_value());
    sched::ClusterSnapshot after = state->snapshot;
    sched::JobQueue queue = state->queue;
    sched::apply_decision(*decision, after, queue);
    REGATTA_CHECK(sched::check_snapshot(after).has_value());
  }
  return 0;
}
