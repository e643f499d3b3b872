#include "regatta/network/fabric/internal/pfc_watchdog.h"

namespace regatta::fabric {
namespace {

bool went_back(const PfcSample& last, const PfcSample& now) {
  return now.sent < last.sent || now.paused < last.paused || now.pauses < last.pauses;
}

bool holds(const PfcWatchdogOptions& options, const PfcSample& last, const PfcSample& now) {
  if (now.sent != last.sent) return false;
  const bool is_paused = (now.paused - last.paused) > (now.at - last.at) * options.share;
  if (options.rule == PfcStormRule::kBlocked) return now.queued > 0 && is_paused;
  return now.queued > 0 ? now.pauses > last.pauses : is_paused;
}

bool is_calm(const PfcSample& last, const PfcSample& now) {
  return now.paused == last.paused && now.pauses == last.pauses;
}

}  // namespace

std::optional<PfcStormAlarm> PfcWatchdog::add(const PortQueue& queue, const PfcSample& sample) {
  const auto [at, is_new] = states_.try_emplace(queue, State{.last = sample, .held = {}});
  State& state = at->second;
  if (is_new || sample.at <= state.last.at) return std::nullopt;
  const PfcSample last = state.last;
  state.last = sample;
  // The old rule knew nothing of links.
  const bool is_down =
      options_.rule == PfcStormRule::kBlocked && !(last.is_up && sample.is_up) && !state.is_storm;
  if (went_back(last, sample) || is_down) {
    state.held = {};
    return std::nullopt;
  }
  const bool is_held = state.is_storm ? is_calm(last, sample) : holds(options_, last, sample);
  state.held = is_held ? state.held + (sample.at - last.at) : Seconds{};
  const Seconds wanted = state.is_storm ? options_.recovery : options_.detection;
  if (!is_held || state.held < wanted * kPfcWatchdogSlack) return std::nullopt;
  const PfcStormAlarm alarm{.queue = queue,
                            .is_storm = !state.is_storm,
                            .since = sample.at - state.held,
                            .at = sample.at};
  state.is_storm = alarm.is_storm;
  state.held = {};
  return alarm;
}

bool PfcWatchdog::is_in_storm(const PortQueue& queue) const {
  const auto at = states_.find(queue);
  return at != states_.end() && at->second.is_storm;
}

}  // namespace regatta::fabric
