#include "regatta/runtime/agent/internal/run_tracker.h"

#include <algorithm>

#include <fmt/core.h>

#include "regatta/base/core/json.h"
#include "regatta/base/core/result.h"
#include "regatta/base/os/log.h"
#include "regatta/base/os/process.h"
#include "regatta/base/rpc/worker_channel.h"
#include "regatta/runtime/agent/agent.pb.h"

namespace regatta::agent {
namespace {

// A worker that lost another one, or waited in vain for it, is seldom the cause.
CauseKind kind_of(Code code) {
  return code == Code::kUnavailable || code == Code::kTimeout ? CauseKind::kPeerTrouble
                                                              : CauseKind::kWorkerLost;
}

Code code_of_name(const std::string& name) {
  return rpc::error_of_event({{"code", name}}).code;
}

}  // namespace

RunTracker::RunTracker(RunDescription description, Seconds now)
    : description_(std::move(description)),
      started_(now),
      ranks_(description_.rank_names.size()),
      servers_(description_.servers.size()) {
  for (auto& server : servers_) {
    server.last_heartbeat = now;
  }
}

bool RunTracker::knows_rank(int run, int rank) const {
  return run == description_.run && rank >= 0 && static_cast<std::size_t>(rank) < ranks_.size();
}

void RunTracker::carrier_was_down(std::size_t server, const std::string& interface, Seconds now) {
  // A real server has interfaces that were never plugged in.
  if (description_.servers[server].links_known) carrier_went_down(server, interface, now);
}

void RunTracker::carrier_went_down(std::size_t server, const std::string& interface, Seconds now) {
  const auto& known = description_.servers[server];
  if (known.links_known && known.links.count(interface) == 0) return;
  servers_[server].down.emplace(interface, now);
}

void RunTracker::on_event(std::size_t server, const proto::AgentEvent& event, Seconds now) {
  REGATTA_CHECK(server < servers_.size());
  servers_[server].last_heartbeat = now;
  if (event.has_line()) on_line(event.line(), now);
  if (event.has_exit()) on_exit(event.exit(), now);
  if (event.has_log() && knows_rank(event.log().run(), event.log().rank())) {
    at(ranks_, event.log().rank()).last_log = event.log().text();
  }
  if (event.has_pause() && knows_rank(event.pause().run(), event.pause().rank())) {
    auto& paused = at(ranks_, event.pause().rank()).paused;
    paused.reset();
    if (event.pause().paused()) paused.emplace(now, event.pause().signal());
  }
  if (event.has_carrier()) {
    const auto& change = event.carrier();
    if (change.up()) servers_[server].down.erase(change.interface());
    if (!change.up() && change.initial()) carrier_was_down(server, change.interface(), now);
    if (!change.up() && !change.initial()) carrier_went_down(server, change.interface(), now);
  }
  if (event.has_launch_failure()) {
    const auto& failure = event.launch_failure();
    if (!knows_rank(failure.run(), failure.rank())) return;
    auto& rank = at(ranks_, failure.rank());
    rank.ended = rank.has_reported_error = true;
    causes_.push_back(
        {CauseKind::kWorkerLost, now,
         Error{code_of_name(failure.code()),
               fmt::format("{}: did not start: {}", at(description_.rank_names, failure.rank()),
                           failure.message())}});
  }
}

void RunTracker::on_line(const proto::WorkerLine& line, Seconds now) {
  if (!knows_rank(line.run(), line.rank())) return;
  const auto index = static_cast<std::size_t>(line.rank());
  auto& rank = ranks_[index];
  const auto event = JsonReader::parse(line.text(), description_.rank_names[index] + ": event");
  std::string kind;
  if (event) event->read("event", kind);
  if (event && kind == "endpoint") event->read_if("text", rank.endpoint);
  const Status status = event ? event->status() : Status(event.error());
  if (!status) return os::log_warning(status.error().message);
  if (kind == "endpoint") return;
  if (kind == "done") rank.done = true;
  if (kind == "error") {
    rank.has_reported_error = true;
    const Error error = rpc::error_of_event(event->raw());
    causes_.push_back(
        {kind_of(error.code), now,
         Error{error.code, fmt::format("{}: {}", description_.rank_names[index], error.message)}});
  }
  events_.emplace_back(Rank{line.rank()}, event->raw());
}

void RunTracker::on_exit(const proto::WorkerExit& exit, Seconds now) {
  if (!knows_rank(exit.run(), exit.rank())) return;
  const auto index = static_cast<std::size_t>(exit.rank());
  auto& rank = ranks_[index];
  rank.ended = true;
  rank.paused.reset();
  const std::string& name = description_.rank_names[index];
  if (exit.stopping()) return;
  std::string how;
  if (exit.signal() != 0) {
    how = fmt::format("{}: killed by {}", name, os::signal_text(exit.signal()));
  } else if (exit.status() != 0 && !rank.has_reported_error) {
    how = fmt::format("{}: ended with exit status {}", name, exit.status());
    if (!rank.last_log.empty()) how += fmt::format("; its last line was: {}", rank.last_log);
  } else if (exit.status() == 0 && !rank.done && !rank.has_reported_error) {
    how = fmt::format("{}: ended before its work was done", name);
  }
  if (!how.empty()) causes_.push_back({CauseKind::kWorkerLost, now, {Code::kUnavailable, how}});
}

void RunTracker::on_server_lost(std::size_t server, const std::string& how, Seconds now) {
  if (servers_[server].lost) return;
  servers_[server].lost = true;
  causes_.push_back(
      {CauseKind::kServerLost,
       now,
       {Code::kUnavailable, fmt::format("server {}: {}", description_.servers[server].name, how)}});
}

void RunTracker::restart_silence_timeouts(Seconds now) {
  for (auto& server : servers_) {
    server.last_heartbeat = now;
  }
}

std::optional<std::vector<std::string>> RunTracker::take_peers() {
  if (peers_taken_) return std::nullopt;
  std::vector<std::string> texts;
  for (const auto& rank : ranks_) {
    if (!rank.endpoint) return std::nullopt;
    texts.push_back(*rank.endpoint);
  }
  peers_taken_ = true;
  return texts;
}

std::vector<std::pair<Rank, nlohmann::json>> RunTracker::take_events() {
  return std::exchange(events_, {});
}

bool RunTracker::succeeded() const {
  return causes_.empty() && std::all_of(ranks_.begin(), ranks_.end(), [](const RankState& rank) {
           return rank.ended && rank.done;
         });
}

Cause RunTracker::paused_cause(std::size_t rank, Seconds since, int signal) const {
  return {CauseKind::kWorkerLost, since,
          Error{Code::kUnavailable,
                fmt::format("{}: stopped by {}; continue it with kill -CONT",
                            description_.rank_names[rank], os::signal_text(signal))}};
}

Cause RunTracker::carrier_cause(std::size_t server, const std::string& interface,
                                Seconds since) const {
  const auto& known = description_.servers[server];
  const auto link = known.links.find(interface);
  std::string text =
      link != known.links.end()
          ? fmt::format("link {}: carrier lost", link->second)
          : fmt::format("server {}: carrier lost on its interface {}", known.name, interface);
  return {CauseKind::kCarrierLost, since, Error{Code::kUnavailable, std::move(text)}};
}

std::vector<Cause> RunTracker::open_causes(Seconds now, bool ripe_only) const {
  std::vector<Cause> causes;
  const FailureTimeouts& timeouts = description_.timeouts;
  for (std::size_t i = 0; i < ranks_.size(); ++i) {
    const auto& paused = ranks_[i].paused;
    if (!paused || (ripe_only && now - paused->first < timeouts.pause)) continue;
    causes.push_back(paused_cause(i, paused->first, paused->second));
  }
  for (std::size_t i = 0; i < servers_.size(); ++i) {
    for (const auto& [interface, since] : servers_[i].down) {
      const bool ripe = description_.servers[i].links_known && now - since >= timeouts.carrier;
      if (ripe || !ripe_only) causes.push_back(carrier_cause(i, interface, since));
    }
    const Seconds silent = now - servers_[i].last_heartbeat;
    if (!servers_[i].lost && silent >= timeouts.heartbeat) {
      causes.push_back(
          {CauseKind::kServerLost, now,
           Error{Code::kUnavailable,
                 fmt::format("server {}: no heartbeat for {:.0f} s; its processes are "
                             "stopped or the server is down",
                             description_.servers[i].name, timeouts.heartbeat.value)}});
    }
  }
  if (!peers_taken_ && now - started_ >= timeouts.join) {
    for (std::size_t i = 0; i < ranks_.size(); ++i) {
      if (ranks_[i].endpoint) continue;
      causes.push_back(
          {CauseKind::kWorkerLost, now,
           Error{Code::kTimeout, fmt::format("{}: did not join within {:.0f} s",
                                             description_.rank_names[i], timeouts.join.value)}});
      break;
    }
  }
  return causes;
}

bool RunTracker::is_suspect(Seconds now) const {
  return std::any_of(servers_.begin(), servers_.end(), [&](const ServerState& server) {
    const Seconds silent = now - server.last_heartbeat;
    return !server.lost && silent >= description_.timeouts.silence &&
           silent < description_.timeouts.heartbeat;
  });
}

std::optional<Error> RunTracker::failure(Seconds now) const {
  std::vector<Cause> causes = causes_;
  const auto ripe = open_causes(now, true);
  causes.insert(causes.end(), ripe.begin(), ripe.end());
  if (causes.empty()) return std::nullopt;
  if (ripe.empty()) {
    // Only reports: give the ones that explain them time to arrive.
    const auto earliest =
        std::min_element(causes.begin(), causes.end(), [](const Cause& a, const Cause& b) {
          return a.at < b.at;
        })->at;
    const bool sure = root_cause(causes).kind != CauseKind::kPeerTrouble;
    const Seconds gather = sure ? description_.timeouts.gather_sure : description_.timeouts.gather;
    if (now - earliest < gather || (!sure && is_suspect(now))) return std::nullopt;
  }
  const auto open = open_causes(now, false);
  causes.insert(causes.end(), open.begin(), open.end());
  return root_cause(causes).error;
}

}  // namespace regatta::agent
