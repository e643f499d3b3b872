#include "regatta/platform/api/internal/device_streams.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/os/clock.h"
#include "regatta/platform/api/internal/device_json.h"

namespace regatta::api {
namespace {

constexpr Seconds kEventInterval{1};
constexpr double kBytesPerSecond = 50'000;  // of one reader, in the mean
constexpr Seconds kIdleMost{15};            // then a comment shows that the stream lives

}  // namespace

void DeviceStreams::open(const std::shared_ptr<http::Exchange>& exchange) {
  const http::Request& request = exchange->request();
  Reader reader;
  reader.is_lines = request.header("Accept").find("application/x-ndjson") != std::string_view::npos;
  reader.cursor = monitor_.devices().cursor();
  for (const auto& [name, value] : request.query)
    if (name == "devices") reader.cursor = value;
  http::Response head;
  head.content_type = reader.is_lines ? "application/x-ndjson" : "text/event-stream";
  head.headers = {{"Cache-Control", "no-store"}};
  head.body = reader.is_lines ? "" : ": open\n\n";
  reader.stream = exchange->stream(std::move(head));
  reader.sent = os::monotonic_now();
  readers_.push_back(std::move(reader));
  const auto place = std::prev(readers_.end());
  place->stream->on_closed([this, place, alive = std::weak_ptr(life_)] {
    // The stream may not be destroyed in its own handler.
    loop_.post([this, place, alive] {
      if (!alive.expired()) readers_.erase(place);
    });
  });
  if (!std::exchange(is_flush_due_, true)) flush();
}

void DeviceStreams::send(Reader& reader, Seconds now, std::map<std::string, Event>& events) {
  if (now < reader.due) return;
  const auto [found, is_new] = events.try_emplace(reader.cursor);
  Event& event = found->second;
  if (is_new) {
    event.cursor = reader.cursor;
    event.json = device_event(monitor_, event.cursor);
  }
  reader.cursor = event.cursor;
  std::string text;
  if (!event.json.empty())
    text = reader.is_lines ? fmt::format("{{\"kind\":\"device\",\"object\":{}}}\n", event.json)
                           : fmt::format("event: device\ndata: {}\n\n", event.json);
  else if (now - reader.sent >= kIdleMost)
    text = reader.is_lines ? "\n" : ": alive\n\n";
  if (text.empty()) return;
  const Seconds share{static_cast<double>(text.size()) / kBytesPerSecond};
  reader.sent = now;
  reader.due = now + std::max(kEventInterval, share);
  static_cast<void>(reader.stream->send(text));  // one that is dropped calls its handler
}

void DeviceStreams::flush() {
  const Seconds now = os::monotonic_now();
  std::map<std::string, Event> events;
  for (Reader& reader : readers_)
    send(reader, now, events);
  if (readers_.empty()) {
    is_flush_due_ = false;
    return;
  }
  loop_.after(kEventInterval / 4, [this, alive = std::weak_ptr(life_)] {
    if (!alive.expired()) flush();
  });
}

}  // namespace regatta::api
