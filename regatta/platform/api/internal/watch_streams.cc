#include "regatta/platform/api/internal/watch_streams.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/platform/api/internal/json_object.h"
#include "regatta/platform/api/object_json.h"
#include "regatta/platform/api/problem.h"

namespace regatta::api {
namespace {

constexpr std::size_t kChangesKept = 200'000;
constexpr Seconds kFlushInterval{0.25};
constexpr int kIdleFlushes = 60;  // 15 s: then a comment shows that the stream lives

std::string_view query_of(const http::Request& request, std::string_view key) {
  for (const auto& [name, value] : request.query)
    if (name == key) return value;
  return "";
}

// The object of a record's key as it is now; "" when it has changed since the revision that is
// durable, for then another event follows, or when the watcher does not know the kind.
std::string object_of(const control::ClusterTables& tables, store::Revision durable,
                      std::string_view key) {
  const std::size_t slash = key.find('/');
  const std::string_view kind = key.substr(0, slash);
  const std::string_view id = key.substr(slash + 1);
  if (kind == "job") {
    const control::ManagedJob* job = tables.find_job(parse_number<control::JobId>(id).value_or(0));
    if (job == nullptr || job->revision > durable) return "";
    return job_json(tables, *job, false);
  }
  if (kind == "node") {
    const int index = tables.find_node(id);
    if (index < 0 || at(tables.nodes, index).revision > durable) return "";
    return node_json(tables, at(tables.nodes, index));
  }
  if (kind == "queues" && tables.quotas_revision <= durable) return queues_json(tables);
  return "";
}

}  // namespace

WatchStreams::WatchStreams(http::EventLoop& loop, controller::ControllerRuntime& runtime)
    : loop_(loop), runtime_(runtime), history_(kChangesKept, runtime.durable()) {
  runtime.on_commit([this, alive = std::weak_ptr(life_)](std::span<const store::Change> changes) {
    if (!alive.expired()) history_.add(changes);
  });
}

WatchStreams::~WatchStreams() = default;

void WatchStreams::open(const std::shared_ptr<http::Exchange>& exchange) {
  const http::Request& request = exchange->request();
  Watcher watcher;
  for (const std::string& kind : split(query_of(request, "kinds"), ','))
    if (!kind.empty()) watcher.kinds.insert(kind);
  watcher.is_lines =
      request.header("Accept").find("application/x-ndjson") != std::string_view::npos;
  std::string_view from = request.header("Last-Event-ID");
  if (from.empty()) from = query_of(request, "from");
  watcher.sent = runtime_.durable();
  if (!from.empty()) {
    const auto revision = parse_number<store::Revision>(from);
    if (!revision || *revision < 0)
      return exchange->respond(
          problem(400, "InvalidInput", "from: no revision; use the rev of a list"));
    if (!history_.since(*revision))
      return exchange->respond(problem(
          410, "TooOld", fmt::format("rev {} is too old; list again and watch from there", from)));
    watcher.sent = *revision;
  }
  http::Response head;
  head.content_type = watcher.is_lines ? "application/x-ndjson" : "text/event-stream";
  head.headers = {{"Cache-Control", "no-store"}};
  head.body = watcher.is_lines ? "" : ": open\n\n";
  watcher.stream = exchange->stream(std::move(head));
  watchers_.push_back(std::move(watcher));
  const auto place = std::prev(watchers_.end());
  place->stream->on_closed([this, place, alive = std::weak_ptr(life_)] {
    if (!alive.expired()) remove(place);
  });
  if (!std::exchange(is_flush_due_, true)) flush();
}

std::string WatchStreams::event_of(const Watcher& watcher, store::Revision revision,
                                   const std::string& key, Rendered& rendered) const {
  const std::string kind = key.substr(0, key.find('/'));
  if (!watcher.kinds.empty() && !watcher.kinds.contains(kind)) return "";
  const auto [found, is_new] = rendered.objects.try_emplace(key);
  if (is_new) found->second = object_of(runtime_.tables(), runtime_.durable(), key);
  const std::string& object = found->second;
  if (object.empty()) return "";
  if (watcher.is_lines)
    return fmt::format("{{\"rev\":\"{}\",\"kind\":\"{}\",\"object\":{}}}\n", revision, kind,
                       object);
  return fmt::format("id: {}\nevent: {}\ndata: {}\n\n", revision, kind, object);
}

const std::optional<std::string>& WatchStreams::news_text(const Watcher& watcher,
                                                          Rendered& rendered) const {
  const auto [found, is_new] =
      rendered.texts.try_emplace({watcher.sent, watcher.kinds, watcher.is_lines});
  if (!is_new) return found->second;
  const auto news = history_.since(watcher.sent);
  if (!news) return found->second;
  found->second.emplace();
  for (const auto& [revision, key] : *news)
    *found->second += event_of(watcher, revision, key, rendered);
  return found->second;
}

bool WatchStreams::send_news(Watcher& watcher, Rendered& rendered) {
  const std::optional<std::string>& news = news_text(watcher, rendered);
  if (!news) return false;  // it fell too far behind, and resumes with a new list
  watcher.sent = std::max(watcher.sent, history_.last());
  if (news->empty() && ++watcher.idle_flushes < kIdleFlushes) return true;
  watcher.idle_flushes = 0;
  // One that is dropped calls its handler.
  static_cast<void>(watcher.stream->send(!news->empty() ? *news
                                         : watcher.is_lines
                                             ? "\n"
                                             : fmt::format("id: {}\n: alive\n\n", watcher.sent)));
  return true;
}

void WatchStreams::remove(Place place) {
  if (std::exchange(place->is_leaving, true)) return;
  loop_.post([this, place, alive = std::weak_ptr(life_)] {
    if (!alive.expired()) watchers_.erase(place);
  });
}

void WatchStreams::flush() {
  Rendered rendered;
  for (auto place = watchers_.begin(); place != watchers_.end(); ++place)
    if (!place->is_leaving && !send_news(*place, rendered)) remove(place);
  if (watchers_.empty()) {
    is_flush_due_ = false;
    return;
  }
  loop_.after(kFlushInterval, [this, alive = std::weak_ptr(life_)] {
    if (!alive.expired()) flush();
  });
}

}  // namespace regatta::api
