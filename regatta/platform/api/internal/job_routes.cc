#include "regatta/platform/api/internal/job_routes.h"

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/stats.h"
#include "regatta/base/core/text.h"
#include "regatta/platform/api/internal/json_object.h"
#include "regatta/platform/api/object_json.h"
#include "regatta/platform/api/problem.h"

namespace regatta::api {
namespace {

using controller::ControllerRuntime;

constexpr int kPageDefault = 100;
constexpr int kPageMax = 500;
constexpr int kScannedMax = 20'000;  // objects that one page looks at
constexpr std::size_t kOnceKeyMax = 255;
constexpr int kPriorityMax = 1'000'000'000;
constexpr std::size_t kMetricsBytesMax = 5 << 20;
constexpr std::string_view kNoMetrics = R"({"series":[],"predicted":null})";

// The body of a repeated request is compared by it. It keeps users from mistakes, not from
// themselves.
std::string body_hash(std::string_view body) {
  return fmt::format("{:016x}-{}", fnv1a(body), body.size());
}

Result<std::vector<control::Submission>> submissions_of(const ApiRequest& request,
                                                        const YamlNode& tree) {
  const std::string_view body = request.http().body;
  const auto submission = [&](const YamlNode& node) {
    return control::Submission{body.substr(node.begin, node.end - node.begin), request.caller.user};
  };
  const YamlNode* jobs = tree.find("jobs");
  if (jobs == nullptr) return std::vector{submission(tree)};
  if (jobs->kind != YamlKind::kList || tree.entries.size() != 1)
    return Error{Code::kInvalidInput, "body: jobs: a list stands here, and nothing beside it"};
  std::vector<control::Submission> made;
  made.reserve(jobs->items.size());
  for (const YamlNode& node : jobs->items)
    made.push_back(submission(node));
  if (made.empty()) return Error{Code::kInvalidInput, "body: jobs: it is empty; give a job"};
  return made;
}

const controller::StartTimes* start_of(ControllerRuntime& runtime, const control::ManagedJob& job) {
  return job.phase == control::JobPhase::kPending ? runtime.predicted_start(snapshot_name(job))
                                                  : nullptr;
}

// Users change their own jobs, operators all.
std::optional<http::Response> check_owner(const control::ManagedJob& job, const Caller& caller) {
  if (caller.role >= AccessRole::kOperator || job.user == caller.user) return std::nullopt;
  return problem(403, "NotYours",
                 fmt::format("job {}: it belongs to {}; ask an operator", handle_of(job),
                             printable(job.user, 60)));
}

template <typename Work>
void change_job(ControllerRuntime& runtime, const ApiRequest& request, Work work) {
  const auto job = find_job(runtime, request);
  if (!job) return refuse(request, job.error());
  if (auto refusal = check_owner(**job, request.caller))
    return respond(runtime, request, std::move(*refusal));
  const control::JobId id = (*job)->id;
  const auto ids = control::jobs_of_handle(runtime.tables(), request.parameters.front());
  const Status status = runtime.change([&](auto& core, const control::Moment& moment) {
    if (ids.size() == 1) return work(core, id, moment);
    // Those of an array that are over already stay as they are.
    for (const control::JobId one : ids)
      if (!is_over(core.tables().find_job(one)->phase)) static_cast<void>(work(core, one, moment));
    return Status();
  });
  if (!status) return respond(runtime, request, problem(status.error()));
  const control::ManagedJob& changed = *runtime.tables().find_job(id);
  respond_json(runtime, request, job_json(runtime.tables(), changed, true), 200, changed.revision);
}

Error replica_not_run(const control::ManagedJob& job, std::int64_t replica) {
  return {Code::kNotFound, fmt::format("job {}: replica {} has not run; it has run {} replicas",
                                       handle_of(job), replica, job.last_nodes.size())};
}

}  // namespace

Result<const control::ManagedJob*> find_job(const ControllerRuntime& runtime,
                                            const ApiRequest& request) {
  const std::string& text = request.parameters.front();
  const control::ManagedJob* job = control::find_handle(runtime.tables(), text);
  if (job == nullptr)
    return Error{Code::kNotFound, fmt::format("job {}: there is none; list them with regatta jobs",
                                              printable(text, 60))};
  return job;
}

void submit_jobs(ControllerRuntime& runtime, const ApiRequest& request) {
  const std::string_view key = request.http().header("Idempotency-Key");
  if (key.size() > kOnceKeyMax)
    return refuse(request, {Code::kInvalidInput,
                            fmt::format("Idempotency-Key: longer than {} bytes; use a shorter one",
                                        kOnceKeyMax)});
  const auto tree = parse_json(request.http().body, "body", kBodyBounds);
  if (!tree) return refuse(request, tree.error());
  const auto submissions = submissions_of(request, *tree);
  if (!submissions) return refuse(request, submissions.error());
  // Keys of two users do not meet.
  const std::string once = key.empty() ? "" : fmt::format("{}/{}", request.caller.user, key);
  const auto ids = runtime.change([&](auto& core, const control::Moment& moment) {
    return core.submit(*submissions, once, once.empty() ? "" : body_hash(request.http().body),
                       moment);
  });
  if (!ids) {
    const bool is_other_body = ids.error().message.starts_with("idempotency key");
    return respond(
        runtime, request,
        is_other_body ? problem(422, "KeyReused", ids.error().message) : problem(ids.error()));
  }
  request.exchange->set_object(ids->size() == 1
                                   ? std::to_string(ids->front())
                                   : fmt::format("{} to {}", ids->front(), ids->back()));
  if (tree->find("jobs") == nullptr) {
    const control::ManagedJob* job = runtime.tables().find_job(ids->front());
    if (job != nullptr) request.exchange->set_object(handle_of(*job));
    if (job != nullptr)
      return respond_json(runtime, request, job_json(runtime.tables(), *job, true), 201,
                          job->revision);
  }
  std::string list;
  for (const control::JobId id : *ids)
    append_item(list, fmt::format("\"{}\"", id));
  respond_json(runtime, request, fmt::format(R"({{"ids":{}}})", finished_list(std::move(list))),
               201);
}

void list_jobs(ControllerRuntime& runtime, const ApiRequest& request) {
  const std::int64_t limit = query_number(request, "limit", kPageDefault);
  if (limit < 0) return;
  if (limit < 1 || limit > kPageMax)
    return refuse(request, {Code::kInvalidInput,
                            fmt::format("limit: not from 1 to {}; give such a number", kPageMax)});
  const std::string_view after = request.query("after");
  const std::string_view phase = request.query("phase");
  const std::string_view queue = request.query("queue");
  const std::string_view user =
      request.query("mine") == "true" ? request.caller.user : request.query("user");
  const auto& jobs = runtime.tables().jobs;
  // The newest first: jobs that come later do not move the pages.
  auto job = after.empty() ? jobs.end() : jobs.lower_bound(control::job_of_handle(after));
  std::string items;
  int taken = 0;
  control::JobId last = 0;
  for (int scanned = 0; job != jobs.begin() && taken < limit && scanned < kScannedMax; ++scanned) {
    --job;
    last = job->first;
    const control::ManagedJob& each = job->second;
    if (!phase.empty() && phase != at(control::kJobPhaseNames, static_cast<int>(each.phase)))
      continue;
    if ((!queue.empty() && each.queue != queue) || (!user.empty() && each.user != user)) continue;
    append_item(items, job_json(runtime.tables(), each, false, start_of(runtime, each)));
    ++taken;
  }
  JsonObject page;
  page.add_revision("rev", runtime.tables().last_revision);
  page.add("total", jobs.size());
  if (job != jobs.begin() && last > 0) page.add_revision("next", last);
  page.add_raw("items", finished_list(std::move(items)));
  respond_json(runtime, request, page.take());
}

void get_job(ControllerRuntime& runtime, const ApiRequest& request) {
  const auto job = find_job(runtime, request);
  if (!job) return refuse(request, job.error());
  respond_json(runtime, request, job_json(runtime.tables(), **job, true, start_of(runtime, **job)),
               200, (*job)->revision);
}

void patch_job(ControllerRuntime& runtime, const ApiRequest& request) {
  const auto job = find_job(runtime, request);
  if (!job) return refuse(request, job.error());
  if (auto refusal = check_revision(request, (*job)->revision))
    return respond(runtime, request, std::move(*refusal));
  const auto document = request.body();
  if (!document) return refuse(request, document.error());
  document->root().allow({"priority"});
  const int priority = document->root().integer("priority", {-kPriorityMax, kPriorityMax});
  if (const Status status = document->status(); !status) return refuse(request, status.error());
  change_job(runtime, request, [priority](auto& core, control::JobId id, const auto&) {
    return core.set_priority(id, priority);
  });
}

void act_on_job(ControllerRuntime& runtime, const ApiRequest& request, RouteId route) {
  change_job(runtime, request,
             [route](auto& core, control::JobId id, const control::Moment& moment) {
               return route == RouteId::kCancelJob ? core.cancel(id, moment)
                                                   : core.set_held(id, route == RouteId::kHoldJob);
             });
}

void get_job_metrics(ControllerRuntime& runtime, controller::NodeSessions& sessions,
                     const ApiRequest& request) {
  const auto job = find_job(runtime, request);
  if (!job) return refuse(request, job.error());
  const std::int64_t replica = query_number(request, "replica", 0);
  if (replica < 0) return;
  const std::vector<int>& nodes = (*job)->last_nodes;
  if (nodes.empty()) return respond_json(runtime, request, std::string(kNoMetrics));
  if (replica >= static_cast<std::int64_t>(nodes.size()))
    return refuse(request, replica_not_run(**job, replica));
  const auto text = std::make_shared<std::string>();
  const Status asked = sessions.request_metrics(
      at(runtime.tables().nodes, at(nodes, static_cast<int>(replica))).facts.name,
      {(*job)->id, (*job)->attempts, static_cast<int>(replica)},
      [text, exchange = request.exchange](const node_protocol::LogPart& part) {
        if (text->size() + part.data.size() <= kMetricsBytesMax) *text += part.data;
        if (!part.is_last) return;
        if (!part.error.empty()) return exchange->respond(problem(503, "Unavailable", part.error));
        // A node is not trusted with what others read as JSON.
        const auto tree = parse_json(*text, "metrics", kBodyBounds);
        if (!tree) return exchange->respond(problem(tree.error()));
        http::Response response;
        response.content_type = "application/json";
        response.headers = {{"Cache-Control", "no-store"}};
        response.body = std::move(*text);
        exchange->respond(std::move(response));
      });
  if (!asked) refuse(request, asked.error());
}

}  // namespace regatta::api
