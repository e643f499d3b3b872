#include "regatta/platform/api/internal/past_routes.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/platform/api/internal/json_object.h"
#include "regatta/platform/api/problem.h"

namespace regatta::api {
namespace {

constexpr std::int64_t kEventsDefault = 100;
constexpr std::int64_t kEventsMost = 500;

std::string event_json(const history::PastEvent& event) {
  JsonObject object;
  object.add_revision("id", event.id);
  object.add("time_ms", event.time_ms);
  object.add_revision("rev", event.revision);
  object.add("kind", event.kind);
  object.add("object", event.object);
  object.add("reason", event.reason);
  object.add("text", event.text);
  return object.take();
}

std::string past_replica_json(const control::Replica& replica, std::string_view node) {
  JsonObject object;
  object.add("role", replica.role);
  object.add("node", node);
  object.add("devices", replica.devices);
  object.add("phase", at(control::kReplicaPhaseNames, static_cast<int>(replica.phase)));
  if (replica.is_gone()) {
    object.add("exit_status", replica.exit_status);
    object.add("signal", replica.signal);
  }
  if (replica.started_ms > 0) object.add("started_ms", replica.started_ms);
  if (replica.ended_ms > 0) object.add("ended_ms", replica.ended_ms);
  return object.take();
}

std::string past_attempt_json(const history::PastAttempt& attempt) {
  JsonObject object;
  object.add("number", attempt.number);
  object.add("stop", at(control::kStopCauseNames, static_cast<int>(attempt.stop)));
  object.add("started_ms", attempt.started_ms);
  if (attempt.ended_ms > 0) object.add("ended_ms", attempt.ended_ms);
  std::string replicas;
  for (const history::PastReplica& past : attempt.replicas)
    append_item(replicas, past_replica_json(past.replica, past.node));
  object.add_raw("replicas", finished_list(std::move(replicas)));
  return object.take();
}

// The attempt under way as one of the past that has no end yet.
history::PastAttempt running_attempt(const control::ClusterTables& tables,
                                     const control::ManagedJob& job) {
  history::PastAttempt attempt{.job = job.id,
                               .number = job.attempt->number,
                               .stop = job.attempt->stop,
                               .started_ms = job.attempt->started_ms,
                               .ended_ms = 0,
                               .replicas = {}};
  for (const control::Replica& replica : job.attempt->replicas)
    attempt.replicas.push_back({at(tables.nodes, replica.node).facts.name, replica});
  return attempt;
}

Error no_history() {
  return {Code::kUnsupported, "this controller keeps no history"};
}

// False with an answer where the text of the query is no number in the range.
bool read_number(const ApiRequest& request, std::string_view key, std::int64_t most,
                 std::int64_t& value) {
  const std::string_view text = request.query(key);
  if (text.empty()) return true;
  const auto number = parse_number<std::int64_t>(text);
  if (number && *number >= 1 && *number <= most) {
    value = *number;
    return true;
  }
  refuse(request,
         {Code::kInvalidInput,
          fmt::format("{}: not a whole number from 1 to {}; give such a number", key, most)});
  return false;
}

}  // namespace

// A handler for the history that runs `answer` in the loop's thread.
template <typename Answer>
auto PastRoutes::in_loop(Answer answer) {
  // The history's thread may outlive this object, but not the loop.
  return [loop = &loop_, answer = std::move(answer), alive = std::weak_ptr(life_)](auto found) {
    loop->post([answer, alive, found = std::move(found)]() mutable {
      if (!alive.expired()) answer(std::move(found));
    });
  };
}

void PastRoutes::list_events(const ApiRequest& request) {
  if (history_ == nullptr) return refuse(request, no_history());
  constexpr std::int64_t kAny = std::int64_t{1} << 53;
  std::int64_t limit = kEventsDefault;
  history::EventFilter filter{.kind = std::string(request.query("kind")),
                              .object = std::string(request.query("object"))};
  if (!read_number(request, "limit", kEventsMost, limit) ||
      !read_number(request, "since_ms", kAny, filter.since_ms) ||
      !read_number(request, "after", kAny, filter.before_id))
    return;
  // One more tells whether there is a next page.
  filter.limit = static_cast<int>(limit) + 1;
  runtime_.when_durable([this, request, limit, filter] {
    history_->find_events(
        filter, in_loop([this, request, limit](Result<std::vector<history::PastEvent>> found) {
          if (!found) return refuse(request, found.error());
          JsonObject page;
          page.add_revision("rev", runtime_.durable());
          if (static_cast<std::int64_t>(found->size()) > limit) {
            found->resize(static_cast<std::size_t>(limit));
            page.add_revision("next", found->back().id);
          }
          std::string items;
          for (const history::PastEvent& event : *found)
            append_item(items, event_json(event));
          page.add_raw("items", finished_list(std::move(items)));
          respond_json(runtime_, request, page.take());
        }));
  });
}

void PastRoutes::list_attempts(const ApiRequest& request) {
  if (history_ == nullptr) return refuse(request, no_history());
  const std::string& name = request.parameters.front();
  const control::ManagedJob* known = find_handle(runtime_.tables(), name);
  const control::JobId id = known != nullptr ? known->id : control::job_of_handle(name);
  runtime_.when_durable([this, request, id] {
    history_->find_attempts(
        id, in_loop([this, request, id](Result<std::vector<history::PastAttempt>> found) {
          if (!found) return refuse(request, found.error());
          const control::ManagedJob* job = runtime_.tables().find_job(id);
          if (job == nullptr && found->empty())
            return refuse(
                request, {Code::kNotFound, fmt::format("job {}: there is none, and the history "
                                                       "knows no attempt of it",
                                                       printable(request.parameters.front(), 60))});
          if (job != nullptr && job->attempt != nullptr)
            found->push_back(running_attempt(runtime_.tables(), *job));
          std::string items;
          for (const history::PastAttempt& attempt : *found)
            append_item(items, past_attempt_json(attempt));
          JsonObject page;
          page.add_revision("rev", runtime_.durable());
          page.add_raw("items", finished_list(std::move(items)));
          respond_json(runtime_, request, page.take());
        }));
  });
}

}  // namespace regatta::api
