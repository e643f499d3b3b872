#include "regatta/platform/api/internal/log_routes.h"

#include <algorithm>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/platform/api/problem.h"

namespace regatta::api {
namespace {

Error no_such_replica(std::string_view job, int attempt, int replica, std::size_t count) {
  return {Code::kNotFound, fmt::format("job {}: replica {} has not run in attempt {}, which has {}",
                                       job, replica, attempt, pluralized(count, "replica"))};
}

}  // namespace

struct LogRoutes::LogReader {
  std::shared_ptr<http::Exchange> exchange;
  std::unique_ptr<http::ResponseStream> stream;
  std::int64_t request = 0;
};

void LogRoutes::read(const ApiRequest& request) {
  constexpr std::int64_t kNumberMax = 1'000'000'000;
  const std::int64_t replica = query_number(request, "replica", 0);
  const std::int64_t rank = replica < 0 ? -1 : query_number(request, "rank", 0);
  const std::int64_t offset = rank < 0 ? -1 : query_number(request, "offset", 0);
  const std::int64_t length = offset < 0 ? -1 : query_number(request, "length", 0);
  const std::int64_t attempt = length < 0 ? -1 : query_number(request, "attempt", 0);
  if (attempt < 0) return;
  const std::string& name = request.parameters.front();
  const control::ManagedJob* job = find_handle(runtime_.tables(), name);
  LogQuery query{.key = {.job = job != nullptr ? job->id : control::job_of_handle(name),
                         .attempt = static_cast<int>(std::min(attempt, kNumberMax)),
                         .replica = static_cast<int>(std::min(replica, kNumberMax))},
                 .rank = std::min(rank, kNumberMax),
                 .offset = offset,
                 .length = length,
                 .is_following = request.query("follow") == "true"};
  if (job == nullptr || (query.key.attempt > 0 && query.key.attempt != job->attempts))
    return find_earlier(request, query);
  query.key.attempt = job->attempts;
  if (query.key.replica >= static_cast<int>(job->last_nodes.size()))
    return refuse(request, no_such_replica(handle_of(*job), job->attempts, query.key.replica,
                                           job->last_nodes.size()));
  open(request, query,
       at(runtime_.tables().nodes, at(job->last_nodes, query.key.replica)).facts.name);
}

// The node of a replica of an attempt that is not the job's latest, or of a job that was removed.
void LogRoutes::find_earlier(const ApiRequest& request, const LogQuery& query) {
  const std::string job = printable(request.parameters.front(), 60);
  const Error unknown{
      Code::kNotFound,
      query.key.attempt > 0
          ? fmt::format("job {}: no attempt {} is known; see regatta job", job, query.key.attempt)
          : fmt::format("job {}: there is none; list them with regatta jobs", job)};
  if (history_ == nullptr || query.key.job == 0) return refuse(request, unknown);
  const auto found = [this, request, query, job,
                      unknown](Result<std::vector<history::PastAttempt>> attempts) {
    if (!attempts) return refuse(request, attempts.error());
    LogQuery wanted = query;
    if (wanted.key.attempt == 0 && !attempts->empty()) wanted.key.attempt = attempts->back().number;
    for (const history::PastAttempt& attempt : *attempts) {
      if (attempt.number != wanted.key.attempt) continue;
      if (wanted.key.replica >= static_cast<int>(attempt.replicas.size()))
        return refuse(request, no_such_replica(job, attempt.number, wanted.key.replica,
                                               attempt.replicas.size()));
      return open(request, wanted, at(attempt.replicas, wanted.key.replica).node);
    }
    refuse(request, unknown);
  };
  history_->find_attempts(query.key.job,
                          [loop = &loop_, found, alive = std::weak_ptr(life_)](auto attempts) {
                            loop->post([found, alive, attempts = std::move(attempts)]() mutable {
                              if (!alive.expired()) found(std::move(attempts));
                            });
                          });
}

// Later, as neither a stream nor the handler of a log may be destroyed while it runs.
void LogRoutes::end(const std::shared_ptr<LogReader>& reader) {
  loop_.post([this, reader, alive = std::weak_ptr(life_)] {
    if (!alive.expired()) sessions_.cancel_log(reader->request);
    reader->stream.reset();
  });
}

void LogRoutes::open(const ApiRequest& request, const LogQuery& query, const std::string& node) {
  const auto reader = std::make_shared<LogReader>();
  reader->exchange = request.exchange;
  const auto take = [this, reader,
                     alive = std::weak_ptr(life_)](const node_protocol::LogPart& part) {
    if (alive.expired()) return;
    if (reader->stream == nullptr) {
      if (reader->exchange == nullptr) return;  // the reader has left
      const auto exchange = std::exchange(reader->exchange, nullptr);
      if (part.is_last && !part.error.empty())
        return exchange->respond(problem(404, "NoOutput", part.error));
      http::Response head;
      head.content_type = "text/plain; charset=utf-8";
      head.headers = {{"X-Content-Type-Options", "nosniff"}, {"Cache-Control", "no-store"}};
      reader->stream = exchange->stream(std::move(head));
      reader->stream->on_closed([this, reader, alive = std::weak_ptr(life_)] {
        if (!alive.expired()) end(reader);
      });
    }
    if (!part.data.empty()) static_cast<void>(reader->stream->send(part.data));
    if (part.is_last) loop_.post([reader] { reader->stream.reset(); });
  };
  const auto number = sessions_.request_log(node, query.key, static_cast<int>(query.rank),
                                            query.offset, query.length, query.is_following, take);
  if (!number) return refuse(request, number.error());
  reader->request = *number;
}

}  // namespace regatta::api
