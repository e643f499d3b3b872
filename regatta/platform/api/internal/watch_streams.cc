#include "regatta/platform/api/internal/watch_streams.h"

#include <algorithm>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/clock.h"
#include "regatta/platform/api/internal/json_object.h"
#include "regatta/platform/api/object_json.h"
#include "regatta/platform/api/problem.h"

namespace regatta::api {
namespace {

constexpr std::size_t kChangesKept = 200'000;
constexpr Seconds kFlushInterval{0.2};
// So long without news a stream shows that it lives: pages say after 5 s that they are stale.
constexpr Seconds kEventsIdle{2};
constexpr Seconds kLinesIdle{15};
constexpr std::size_t kWatchersPerTurn = 50;

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
    if (alive.expired()) return;
    history_.add(changes);
    flush_early();
  });
}

WatchStreams::~WatchStreams() = default;

void WatchStreams::open(const std::shared_ptr<http::Exchange>& exchange) {
  const http::Request& request = exchange->request();
  Watcher watcher;
  for (const std::string& kind : split(request.query_value("kinds"), ','))
    if (!kind.empty()) watcher.kinds.insert(kind);
  watcher.is_lines =
      request.header("Accept").find("application/x-ndjson") != std::string_view::npos;
  std::string_view from = request.header("Last-Event-ID");
  if (from.empty()) from = request.query_value("from");
  watcher.sent = runtime_.durable();
  watcher.heard = os::monotonic_now();
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
                                   const std::string& key) const {
  const std::string kind = key.substr(0, key.find('/'));
  if (!watcher.kinds.empty() && !watcher.kinds.contains(kind)) return "";
  const std::string object = object_of(runtime_.tables(), runtime_.durable(), key);
  if (object.empty()) return "";
  if (watcher.is_lines)
    return fmt::format("{{\"rev\":\"{}\",\"kind\":\"{}\",\"object\":{}}}\n", revision, kind,
                       object);
  return fmt::format("id: {}\nevent: {}\ndata: {}\n\n", revision, kind, object);
}

std::optional<std::string> WatchStreams::news_of(const Watcher& watcher) const {
  const auto changes = history_.since(watcher.sent);
  if (!changes) return std::nullopt;
  std::string text;
  for (const auto& [revision, key] : *changes)
    text += event_of(watcher, revision, key);
  return text;
}

bool WatchStreams::send_news(Watcher& watcher, News& news, Seconds now) {
  const NewsKey key{watcher.sent, watcher.is_lines, watcher.kinds};
  auto found = news.find(key);
  if (found == news.end()) {
    auto text = news_of(watcher);
    if (!text) return false;  // it fell too far behind, and resumes with a new list
    found = news.emplace(key, NewsText{std::move(*text), history_.last()}).first;
  }
  watcher.sent = std::max(watcher.sent, found->second.last);
  if (!found->second.text.empty()) {
    watcher.heard = now;
    last_news_ = now;
    static_cast<void>(watcher.stream->send(found->second.text));  // one that is dropped says so
    return true;
  }
  if (now - watcher.heard < (watcher.is_lines ? kLinesIdle : kEventsIdle)) return true;
  watcher.heard = now;
  static_cast<void>(watcher.stream->send(
      watcher.is_lines ? "\n" : fmt::format("id: {}\nevent: alive\ndata: {{}}\n\n", watcher.sent)));
  return true;
}

void WatchStreams::remove(Place place) {
  if (std::exchange(place->is_leaving, true)) return;
  loop_.post([this, place, alive = std::weak_ptr(life_)] {
    if (!alive.expired()) watchers_.erase(place);
  });
}

void WatchStreams::flush() {
  is_early_flush_due_ = false;
  flush_some(std::make_shared<News>(), watchers_.size(), os::monotonic_now());
}

void WatchStreams::flush_some(const std::shared_ptr<News>& news, std::size_t left, Seconds start) {
  const Seconds now = os::monotonic_now();
  // Texts that wait to be sent take memory: these leave before the next watchers get theirs.
  std::size_t count = std::min({left, kWatchersPerTurn, watchers_.size()});
  left -= count;
  for (; count > 0; --count) {
    watchers_.splice(watchers_.end(), watchers_, watchers_.begin());
    const Place place = std::prev(watchers_.end());
    if (!place->is_leaving && !send_news(*place, *news, now)) remove(place);
  }
  if (left > 0 && !watchers_.empty())
    return loop_.post([this, news, left, start, alive = std::weak_ptr(life_)] {
      if (!alive.expired()) flush_some(news, left, start);
    });
  is_flush_due_ = !watchers_.empty();
  if (is_flush_due_)
    flush_after(std::max(Seconds{0}, kFlushInterval - (os::monotonic_now() - start)));
}

void WatchStreams::flush_after(Seconds delay) {
  loop_.after(delay, [this, number = ++flush_number_, alive = std::weak_ptr(life_)] {
    if (!alive.expired() && number == flush_number_) flush();
  });
}

// After a pause the first change goes out at once; those that follow wait for the interval.
void WatchStreams::flush_early() {
  if (watchers_.empty() || is_early_flush_due_) return;
  if (os::monotonic_now() - last_news_ < kFlushInterval) return;
  is_early_flush_due_ = true;
  flush_after(Seconds{0});
}

}  // namespace regatta::api
