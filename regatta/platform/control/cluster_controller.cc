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

constexpr std::size_t kAfterMost = 10'000;
constexpr int kPriorityMost = 1'000'000'000;

Error no_job(JobId id) {
  return {Code::kNotFound, fmt::format("job {}: there is none; list them with regatta jobs", id)};
}

Error is_over_already(const ManagedJob& job) {
  return {Code::kConflict, fmt::format("job {}: it is over ({}); submit it again", handle_of(job),
                                       at(kJobPhaseNames, static_cast<int>(job.phase)))};
}

// A record also has the places of all replicas, so that a text must leave room for them.
constexpr std::size_t kTextMost = store::kValueMost / 2;

Status check_text(std::string_view text, std::string_view name) {
  if (text.size() <= kTextMost) return {};
  return Error{Code::kInvalidInput,
               fmt::format("{}: it has {} bytes, more than {}; make it smaller", name, text.size(),
                           kTextMost)};
}

// The record of a job that runs has three times the name of the node of each replica.
constexpr std::size_t kBytesOfReplica = 80;

Status check_record(const JobSpec& spec, std::size_t text, std::string_view name) {
  text += kBytesOfNumber * spec.after.size();
  if (text > store::kValueMost)
    return Error{Code::kInvalidInput,
                 fmt::format("{}: after: it names too many jobs; name fewer", name)};
  std::size_t replicas = 0;
  for (const sched::Role& role : spec.request.roles)
    replicas += static_cast<std::size_t>(role.replicas_max);
  const std::size_t most = (store::kValueMost - text) / kBytesOfReplica;
  if (replicas <= most) return {};
  return Error{Code::kInvalidInput,
               fmt::format("{}: roles: {} replicas are more than the {} that a record of a job has "
                           "room for; use fewer, with more devices or cpus each",
                           name, replicas, most)};
}

Error too_many_jobs(const ControllerState& state) {
  return {Code::kExhausted,
          fmt::format("the controller holds {} jobs, and may hold {}; remove jobs that are over",
                      state.tables.jobs.size(), state.options.jobs_max)};
}

ManagedJob& new_job(ControllerState& state, const JobSpec& spec, const std::string& queue,
                    const Moment& moment) {
  const JobId id = ++state.tables.last_job;
  ManagedJob& job = state.tables.jobs[id];
  job.id = id;
  job.name = spec.request.name;
  job.queue = queue;
  job.priority = spec.request.priority;
  job.is_held = spec.is_held;
  job.submitted_ms = moment.unix_ms;
  job.submitted = moment.now;
  job.not_before = moment.now;
  job.after = spec.after;
  for (const JobId before : job.after)
    state.tables.dependents[before].push_back(id);
  job.reason = spec.is_held ? "it is held by its user" : "it waits for the next decision";
  state.tables.pending[job.queue].emplace(-job.priority, id);
  touch(state, job);
  return job;
}

// A number that begins an array stands for all of it.
Status expand_after(const ControllerState& state, std::vector<JobId>& after) {
  std::vector<JobId> all;
  for (const JobId id : after) {
    const ManagedJob* before = state.tables.find_job(id);
    if (before == nullptr || before->array != id) {
      all.push_back(id);
      continue;
    }
    for (const JobId one : jobs_of_handle(state.tables, std::to_string(id)))
      all.push_back(one);
  }
  if (all.size() > kAfterMost)
    return Error{Code::kInvalidInput,
                 fmt::format("after: it names {} jobs; name at most {}", all.size(), kAfterMost)};
  after = std::move(all);
  return {};
}

// Whether the name can stand in a path and as a word of a command.
bool is_plain_name(std::string_view name) {
  constexpr std::string_view kSigns = "/\\[]{}()<>?#%&*|;$'\"`";
  return std::all_of(name.begin(), name.end(), [&](char letter) {
    const auto byte = static_cast<unsigned char>(letter);
    return byte > 0x20 && byte != 0x7f && kSigns.find(letter) == std::string_view::npos;
  });
}

// The spec of a job that may be added, with the name of its queue.
Result<JobSpec> check_spec(const ControllerState& state, const Submission& submission,
                           std::string_view name) {
  REGATTA_TRY_DO(check_text(submission.spec, name));
  REGATTA_TRY(spec, parse_job_spec(submission.spec, name));
  REGATTA_TRY_DO(check_record(spec, submission.spec.size(), name));
  if (!spec.request.user.empty() && spec.request.user != submission.user)
    return Error{Code::kInvalidInput, fmt::format("{}: user: '{}' is not who submits; leave it out",
                                                  name, printable(spec.request.user, 60))};
  if (!is_plain_name(spec.request.name))
    return Error{Code::kInvalidInput,
                 fmt::format("{}: name: '{}' has a space, a sign of a path or a bracket; leave it "
                             "out, as handles of jobs stand in paths and commands",
                             name, printable(spec.request.name, 60))};
  const auto found = state.tables.quotas.find_leaf(spec.request.queue);
  if (!found) return Error{Code::kInvalidInput, fmt::format("{}: {}", name, found.error().message)};
  const int leaf = *found;
  REGATTA_TRY_DO(expand_after(state, spec.after));
  for (const JobId id : spec.after) {
    const ManagedJob* before = state.tables.find_job(id);
    if (before == nullptr)
      return Error{
          Code::kInvalidInput,
          id > 0 && id <= state.tables.last_job
              ? fmt::format("{}: after: job {} was over long ago and is removed; leave it "
                            "out if it succeeded",
                            name, id)
              : fmt::format("{}: after: there is no job {}; name jobs that exist", name, id)};
    if (is_over(before->phase) && before->phase != JobPhase::kSucceeded)
      return Error{Code::kConflict,
                   fmt::format("{}: after: job {} has not succeeded; submit it again first", name,
                               handle_of(*before))};
  }
  spec.request.queue = state.tables.quotas.queue(leaf).name;
  return spec;
}

Status add_job(ControllerState& state, const Submission& submission, std::string_view name,
               const Moment& moment) {
  REGATTA_TRY(spec, check_spec(state, submission, name));
  const std::string queue = spec.request.queue;
  const int size = std::max(1, spec.array.size());
  if (state.tables.jobs.size() + as_index(size) > state.options.jobs_max)
    return too_many_jobs(state);
  const JobId first = state.tables.last_job + 1;
  for (int i = 0; i < size; ++i) {
    ManagedJob& job = new_job(state, spec, queue, moment);
    if (i == 0) job.spec = submission.spec;
    job.user = submission.user;
    if (spec.array.ranges.empty()) continue;
    job.array = first;
    job.array_index = spec.array.index_at(i);
    job.array_limit = spec.array.limit;
    if (job.array_limit > 0 && i >= job.array_limit && !job.is_held)
      job.reason = fmt::format("its array runs {} at a time", job.array_limit);
  }
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
    return too_many_jobs(*state_);
  const JobId first = state_->tables.last_job + 1;
  std::vector<JobId> ids;
  for (std::size_t i = 0; i < submissions.size(); ++i) {
    const std::string name = submissions.size() == 1 ? "job" : fmt::format("jobs[{}]", i);
    const JobId next = state_->tables.last_job + 1;
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
    ids.push_back(next);
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
  REGATTA_TRY(spec, check_spec(*state_, submission, "job"));
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
  REGATTA_TRY_DO(check_text(spec, "queues"));
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

void ClusterController::set_observed(const std::string& key, std::optional<std::string> value) {
  if (value)
    state_->tables.observed[key].value = std::move(*value);
  else if (state_->tables.observed.erase(key) == 0)
    return;
  state_->changed_observed.insert(key);
}

Effects ClusterController::take_effects() {
  Effects effects;
  effects.nodes.assign(state_->ordered_nodes.begin(), state_->ordered_nodes.end());
  effects.needs_decision = std::exchange(state_->needs_decision, false);
  effects.is_urgent = std::exchange(state_->is_urgent, false);
  for (const int index : state_->changed_nodes) {
    ManagedNode& node = at(state_->tables.nodes, index);
    node.revision = ++state_->tables.last_revision;
    effects.changes.push_back(node_change(node));
  }
  if (std::exchange(state_->has_new_quotas, false)) {
    state_->tables.quotas_revision = ++state_->tables.last_revision;
    effects.changes.push_back(quotas_change(state_->tables));
  }
  if (std::exchange(state_->has_new_audit, false)) {
    state_->tables.audit.revision = ++state_->tables.last_revision;
    effects.changes.push_back(audit_change(state_->tables.audit));
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
  for (const std::string& key : state_->changed_observed) {
    const store::Revision revision = ++state_->tables.last_revision;
    const auto record = state_->tables.observed.find(key);
    if (record == state_->tables.observed.end()) {
      effects.changes.push_back({key, revision, std::nullopt});
      continue;
    }
    record->second.revision = revision;
    effects.changes.push_back({key, revision, record->second.value});
  }
  state_->changed_observed.clear();
  state_->changed_nodes.clear();
  state_->changed_jobs.clear();
  state_->changed_once.clear();
  state_->changed_users.clear();
  state_->changed_tokens.clear();
  state_->ordered_nodes.clear();
  return effects;
}

}  // namespace regatta::control
