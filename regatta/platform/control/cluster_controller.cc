#include "regatta/platform/control/cluster_controller.h"

#include <algorithm>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/yaml_map.h"
#include "regatta/platform/control/internal/attempts.h"
#include "regatta/platform/sched/state_file.h"

namespace regatta::control {
namespace {

constexpr int kPriorityMost = 1'000'000'000;

Error no_job(JobId id) {
  return {Code::kNotFound, fmt::format("job {}: there is none; list them with regatta jobs", id)};
}

Error is_over_already(const ManagedJob& job) {
  return {Code::kConflict, fmt::format("job {}: it is over ({}); submit it again", handle_of(job),
                                       at(kJobPhaseNames, static_cast<int>(job.phase)))};
}

// The spec of a job that may be added, with the name of its queue.
Result<JobSpec> check_spec(const ClusterTables& tables, const Submission& submission,
                           std::string_view name) {
  REGATTA_TRY(spec, parse_job_spec(submission.spec, name));
  if (!spec.request.user.empty() && spec.request.user != submission.user)
    return Error{Code::kInvalidInput, fmt::format("{}: user: '{}' is not who submits; leave it out",
                                                  name, printable(spec.request.user, 60))};
  REGATTA_TRY(leaf, tables.quotas.find_leaf(spec.request.queue));
  for (const JobId id : spec.after) {
    const ManagedJob* before = tables.find_job(id);
    if (before == nullptr)
      return Error{
          Code::kInvalidInput,
          id > 0 && id <= tables.last_job
              ? fmt::format("{}: after: job {} was over long ago and is removed; leave it "
                            "out if it succeeded",
                            name, id)
              : fmt::format("{}: after: there is no job {}; name jobs that exist", name, id)};
    if (is_over(before->phase) && before->phase != JobPhase::kSucceeded)
      return Error{Code::kConflict,
                   fmt::format("{}: after: job {} has not succeeded; submit it again first", name,
                               handle_of(*before))};
  }
  spec.request.queue = tables.quotas.queue(leaf).name;
  return spec;
}

Status add_job(ControllerState& state, const Submission& submission, std::string_view name,
               const Moment& moment) {
  REGATTA_TRY(spec, check_spec(state.tables, submission, name));
  const JobId id = ++state.tables.last_job;
  ManagedJob& job = state.tables.jobs[id];
  job.id = id;
  job.spec = submission.spec;
  job.name = std::move(spec.request.name);
  job.queue = std::move(spec.request.queue);
  job.user = submission.user;
  job.priority = spec.request.priority;
  job.is_held = spec.is_held;
  job.submitted_ms = moment.unix_ms;
  job.submitted = moment.now;
  job.not_before = moment.now;
  job.after = std::move(spec.after);
  for (const JobId before : job.after)
    state.tables.dependents[before].push_back(id);
  job.reason = spec.is_held ? "it is held by its user" : "it waits for the next decision";
  state.tables.pending[job.queue].emplace(-job.priority, id);
  touch(state, job);
  return {};
}

}  // namespace

ClusterController::ClusterController(ControllerOptions options, ClusterTables tables)
    : state_(std::make_unique<ControllerState>()) {
  state_->options = options;
  state_->tables = std::move(tables);
  find_aging(*state_);
}

ClusterController::ClusterController(ClusterController&&) noexcept = default;
ClusterController& ClusterController::operator=(ClusterController&&) noexcept = default;
ClusterController::~ClusterController() = default;

const ClusterTables& ClusterController::tables() const {
  return state_->tables;
}

Result<std::vector<JobId>> ClusterController::submit(std::span<const Submission> submissions,
                                                     std::string_view once_key,
                                                     std::string_view body_hash,
                                                     const Moment& moment) {
  if (!once_key.empty()) {
    const auto found = state_->tables.once.find(std::string(once_key));
    if (found != state_->tables.once.end()) {
      if (found->second.body_hash == body_hash) return found->second.jobs;
      return Error{
          Code::kConflict,
          fmt::format("idempotency key {}: it came with another body before; use a new one",
                      printable(once_key, 60))};
    }
  }
  if (state_->tables.jobs.size() + submissions.size() > state_->options.jobs_max)
    return Error{Code::kExhausted,
                 fmt::format("the controller holds {} jobs, and may hold {}; "
                             "remove jobs that are over",
                             state_->tables.jobs.size(), state_->options.jobs_max)};
  const JobId first = state_->tables.last_job + 1;
  std::vector<JobId> ids;
  for (std::size_t i = 0; i < submissions.size(); ++i) {
    const std::string name = submissions.size() == 1 ? "job" : fmt::format("jobs[{}]", i);
    if (const Status status = add_job(*state_, submissions[i], name, moment); !status) {
      for (JobId id = first; id <= state_->tables.last_job; ++id) {
        const ManagedJob& job = state_->tables.jobs.at(id);
        state_->tables.pending[job.queue].erase({-job.priority, id});
        for (const JobId before : job.after)
          std::erase(state_->tables.dependents[before], id);
        state_->changed_jobs.erase(id);
        state_->tables.jobs.erase(id);
      }
      state_->tables.last_job = first - 1;
      return status.error();
    }
    ids.push_back(state_->tables.last_job);
  }
  if (!once_key.empty()) {
    state_->tables.once[std::string(once_key)] = {.body_hash = std::string(body_hash),
                                                  .jobs = ids,
                                                  .created_ms = moment.unix_ms,
                                                  .revision = 0,
                                                  .created = moment.now};
    state_->once_keys.emplace_back(moment.now, once_key);
    state_->changed_once.emplace(once_key);
  }
  state_->needs_decision = true;
  return ids;
}

Result<sched::JobRequest> ClusterController::check_submission(const Submission& submission,
                                                              const Moment& moment) const {
  REGATTA_TRY(spec, check_spec(state_->tables, submission, "job"));
  sched::JobRequest request = std::move(spec.request);
  // As the next job would be called.
  request.name = fmt::format("{}-{}", request.name, state_->tables.last_job + 1);
  request.user = submission.user;
  request.submitted = moment.now;
  return request;
}

Status ClusterController::cancel(JobId id, const Moment& moment) {
  ManagedJob* job = state_->tables.find_job(id);
  if (job == nullptr) return no_job(id);
  if (job->phase == JobPhase::kCancelled || (job->is_cancelled && !is_over(job->phase))) return {};
  if (is_over(job->phase)) return is_over_already(*job);
  job->is_cancelled = true;
  if (job->attempt != nullptr) {
    begin_stop(*state_, *job, StopCause::kCancelled, "its user cancelled it", moment);
    return {};
  }
  set_over(*state_, *job, JobPhase::kCancelled, "its user cancelled it", moment);
  return {};
}

Status ClusterController::set_held(JobId id, bool is_held) {
  ManagedJob* job = state_->tables.find_job(id);
  if (job == nullptr) return no_job(id);
  if (is_over(job->phase)) return is_over_already(*job);
  if (job->is_held == is_held) return {};
  job->is_held = is_held;
  if (job->phase == JobPhase::kPending)
    job->reason = is_held ? "it is held by its user" : "it waits for the next decision";
  touch(*state_, *job);
  state_->needs_decision = true;
  return {};
}

Status ClusterController::set_priority(JobId id, int priority) {
  ManagedJob* job = state_->tables.find_job(id);
  if (job == nullptr) return no_job(id);
  if (is_over(job->phase)) return is_over_already(*job);
  if (priority < -kPriorityMost || priority > kPriorityMost)
    return Error{Code::kInvalidInput, fmt::format("priority: {} is beyond {}; give a smaller one",
                                                  priority, kPriorityMost)};
  if (job->phase == JobPhase::kPending) {
    state_->tables.pending[job->queue].erase({-job->priority, id});
    state_->tables.pending[job->queue].emplace(-priority, id);
  }
  job->priority = priority;
  touch(*state_, *job);
  state_->needs_decision = true;
  return {};
}

Status ClusterController::set_quotas(std::string_view spec) {
  REGATTA_TRY(tree, parse_json(spec, "queues"));
  REGATTA_TRY(document, YamlDocument::read(std::move(tree), "queues"));
  document.root().allow({"queues"});
  sched::QuotaTree quotas = sched::read_quota_tree(document, document.root());
  REGATTA_TRY_DO(document.status());
  for (const auto& [id, job] : state_->tables.jobs) {
    if (!is_over(job.phase) && !quotas.find_leaf(job.queue))
      return Error{Code::kConflict,
                   fmt::format("queue {}: job {} is in it; keep the queue until its jobs are over",
                               job.queue, handle_of(job))};
  }
  state_->tables.quotas = std::move(quotas);
  state_->tables.quotas_spec = spec;
  state_->has_new_quotas = true;
  state_->needs_decision = true;
  return {};
}

Status ClusterController::start(JobId id, std::vector<Replica> places, const Moment& moment) {
  ManagedJob* job = state_->tables.find_job(id);
  if (job == nullptr || job->phase != JobPhase::kPending || job->is_held ||
      job->not_before > moment.now)
    return Error{Code::kConflict, fmt::format("job {}: it does not wait any more", id)};
  REGATTA_TRY_DO(check_places(*state_, *job, places));
  begin_attempt(*state_, *job, std::move(places), moment);
  return {};
}

void ClusterController::set_waiting_reason(JobId id, std::string reason) {
  ManagedJob* job = state_->tables.find_job(id);
  // Most jobs wait for the same reason as before, which is not written again.
  if (job == nullptr || job->phase != JobPhase::kPending || job->is_held || job->reason == reason)
    return;
  job->reason = std::move(reason);
  touch(*state_, *job);
}

Status ClusterController::evict(JobId id, std::string reason, const Moment& moment) {
  ManagedJob* job = state_->tables.find_job(id);
  if (job == nullptr || job->attempt == nullptr || job->attempt->stop != StopCause::kNone)
    return Error{Code::kConflict, fmt::format("job {}: it does not run any more", id)};
  begin_stop(*state_, *job, StopCause::kEvicted, std::move(reason), moment);
  return {};
}

Status ClusterController::move(JobId id, std::vector<Replica> places, std::string reason,
                               const Moment& moment) {
  ManagedJob* job = state_->tables.find_job(id);
  if (job == nullptr || job->attempt == nullptr || job->attempt->stop != StopCause::kNone)
    return Error{Code::kConflict, fmt::format("job {}: it does not run any more", id)};
  REGATTA_TRY_DO(check_places(*state_, *job, places));
  job->next = std::move(places);
  begin_stop(*state_, *job, StopCause::kMoved, std::move(reason), moment);
  return {};
}

Status ClusterController::set_intent(std::string_view node, NodeIntent intent) {
  const int index = state_->tables.find_node(node);
  if (index < 0)
    return Error{
        Code::kNotFound,
        fmt::format("node {}: there is none; list them with regatta nodes", printable(node, 60))};
  at(state_->tables.nodes, index).intent = intent;
  state_->changed_nodes.insert(index);
  state_->needs_decision = true;
  return {};
}

Effects ClusterController::take_effects() {
  Effects effects;
  effects.nodes.assign(state_->ordered_nodes.begin(), state_->ordered_nodes.end());
  effects.needs_decision = std::exchange(state_->needs_decision, false);
  for (const int index : state_->changed_nodes) {
    ManagedNode& node = at(state_->tables.nodes, index);
    node.revision = ++state_->tables.last_revision;
    effects.changes.push_back(node_change(node));
  }
  if (std::exchange(state_->has_new_quotas, false)) {
    state_->tables.quotas_revision = ++state_->tables.last_revision;
    effects.changes.push_back(quotas_change(state_->tables));
  }
  for (const JobId id : state_->changed_jobs) {
    ManagedJob& job = state_->tables.jobs.at(id);
    job.revision = ++state_->tables.last_revision;
    if (job.attempt != nullptr && job.attempt->fence == 0) job.attempt->fence = job.revision;
    effects.changes.push_back(job_change(state_->tables, job));
    job.ended.reset();
  }
  const identity::IdentityTables& identities = state_->tables.identities;
  for (const std::string& name : state_->changed_users) {
    const store::Revision revision = ++state_->tables.last_revision;
    const auto user = state_->tables.identities.users.find(name);
    if (user == identities.users.end()) {
      effects.changes.push_back({"user/" + name, revision, std::nullopt});
      continue;
    }
    user->second.revision = revision;
    effects.changes.push_back(user_change(user->second));
  }
  for (const std::string& id : state_->changed_tokens) {
    const store::Revision revision = ++state_->tables.last_revision;
    const auto token = state_->tables.identities.tokens.find(id);
    if (token == identities.tokens.end()) {
      effects.changes.push_back({"token/" + id, revision, std::nullopt});
      continue;
    }
    token->second.revision = revision;
    effects.changes.push_back(token_change(token->second));
  }
  for (const JobId id : std::exchange(state_->removed_jobs, {}))
    effects.changes.push_back({job_key(id), ++state_->tables.last_revision, std::nullopt});
  for (const std::string& key : std::exchange(state_->removed_once, {}))
    effects.changes.push_back(
        {control::once_key(key), ++state_->tables.last_revision, std::nullopt});
  for (const std::string& key : state_->changed_once) {
    OnceResult& once = state_->tables.once.at(key);
    once.revision = ++state_->tables.last_revision;
    effects.changes.push_back(once_change(key, once));
  }
  state_->changed_nodes.clear();
  state_->changed_jobs.clear();
  state_->changed_once.clear();
  state_->changed_users.clear();
  state_->changed_tokens.clear();
  state_->ordered_nodes.clear();
  return effects;
}

}  // namespace regatta::control
