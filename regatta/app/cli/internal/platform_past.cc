#include "regatta/app/cli/internal/platform_past.h"

#include <algorithm>
#include <cstdio>
#include <set>
#include <vector>

#include <fmt/format.h>

#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/time_flag.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/clock.h"

namespace regatta::cli {
namespace {

constexpr int kPastPage = 500;
constexpr TimeRange kSinceRange{{1}, {3650.0 * 86400}, "1h"};

Result<std::string> events_target(const PastEventOptions& options) {
  std::string target = fmt::format("/v1/events?limit={}", kPastPage);
  if (!options.object.empty()) target += "&object=" + url_text(options.object);
  if (options.since.empty()) return target;
  REGATTA_TRY(time, time_flag("events: --since", options.since, kSinceRange));
  const double since_ms = (os::system_now() - time).value * 1000;
  return target + fmt::format("&since_ms={:.0f}", std::max(since_ms, 1.0));
}

// The newest first, up to the limit.
Result<std::vector<nlohmann::json>> past_events(PlatformClient& client,
                                                const PastEventOptions& options) {
  REGATTA_TRY(target, events_target(options));
  const std::vector<std::string> list = split(options.kinds, ',');
  std::set<std::string> kinds(list.begin(), list.end());
  kinds.erase("");
  std::vector<nlohmann::json> events;
  std::string after;
  for (;;) {
    REGATTA_TRY(page, client.call({.target = target + (after.empty() ? "" : "&after=" + after)}));
    for (const nlohmann::json& event : page.value("items", nlohmann::json::array()))
      if (kinds.empty() || kinds.contains(text_in(event, "kind"))) events.push_back(event);
    after = text_in(page, "next");
    const auto limit = static_cast<std::size_t>(options.limit);
    if (events.size() > limit) events.resize(limit);
    if (after.empty() || events.size() == limit) return events;
  }
}

std::string past_event_text(const nlohmann::json& event) {
  const std::string object = text_in(event, "object");
  const std::string what = fmt::format("{}{}: {}", object.empty() ? "" : object + ": ",
                                       text_in(event, "reason"), text_in(event, "text"));
  return fmt::format("{}  {:<6}  {}\n", time_text(event.value("time_ms", 0LL)),
                     text_in(event, "kind"), printable(what, 300));
}

std::string end_of(const nlohmann::json& replica) {
  if (!replica.contains("exit_status")) return "-";
  const int signal = replica.value("signal", 0);
  return signal > 0 ? fmt::format("signal {}", signal)
                    : fmt::format("status {}", replica.value("exit_status", 0));
}

std::string run_time_text(const nlohmann::json& object) {
  const long long started = object.value("started_ms", 0LL);
  const long long ended = object.value("ended_ms", 0LL);
  if (started == 0 || ended < started) return "-";
  return format_duration(Seconds{static_cast<double>(ended - started) / 1000});
}

}  // namespace

Status print_past_events(PlatformClient& client, const PastEventOptions& options) {
  REGATTA_TRY(events, past_events(client, options));
  std::reverse(events.begin(), events.end());
  for (const nlohmann::json& event : events) {
    const std::string line = options.json ? event.dump() + "\n" : past_event_text(event);
    std::fputs(line.c_str(), stdout);
  }
  if (events.empty() && !options.json) std::fputs("no events\n", stdout);
  return {};
}

Status print_attempts(PlatformClient& client, const std::string& job) {
  REGATTA_TRY(page, client.call({.target = "/v1/jobs/" + url_text(job) + "/attempts"}));
  std::vector<std::vector<std::string>> rows = {
      {"attempt", "replica", "node", "devices", "phase", "end", "started", "ran for"}};
  for (const nlohmann::json& attempt : page.value("items", nlohmann::json::array())) {
    const std::string number = std::to_string(attempt.value("number", 0));
    const nlohmann::json replicas = attempt.value("replicas", nlohmann::json::array());
    for (std::size_t i = 0; i < replicas.size(); ++i)
      rows.push_back({i == 0 ? number : "", std::to_string(i),
                      printable(text_in(replicas[i], "node"), 60),
                      fmt::format("{:#x}", replicas[i].value("devices", 0U)),
                      text_in(replicas[i], "phase"), end_of(replicas[i]),
                      time_text(replicas[i].value("started_ms", 0LL)), run_time_text(replicas[i])});
  }
  if (rows.size() > 1) std::fputs(format_table(rows).c_str(), stdout);
  return {};
}

}  // namespace regatta::cli
