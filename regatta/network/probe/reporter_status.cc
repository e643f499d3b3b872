#include <algorithm>

#include "regatta/network/probe/reporter_listener.h"

namespace regatta::probe {

void ReporterStatus::add_report(NodeId server, Seconds now) {
  State& state = states_[server.index()];
  if (!state.is_known || state.is_silent) ++reporting_;
  if (!state.is_known || state.is_silent) {
    state.silence = state.is_known ? now - state.heard_at : Seconds{};
    state.has_news = true;
  }
  state.is_known = true;
  state.is_silent = false;
  state.heard_at = now;
}

std::vector<ReporterChange> ReporterStatus::update(Seconds now) {
  // A caller that did not look for so long cannot have heard any reporter.
  const Seconds pause = updated_ ? now - *updated_ : Seconds{};
  if (pause > patience_)
    for (State& state : states_)
      state.heard_at = std::min(now, state.heard_at + pause);
  updated_ = now;
  std::vector<ReporterChange> news;
  for (std::size_t i = 0; i < states_.size(); ++i) {
    State& state = states_[i];
    const NodeId server{static_cast<int>(i)};
    if (state.has_news) {
      news.push_back({.server = server, .silence = state.silence});
      state.has_news = false;
    }
    if (!state.is_known || state.is_silent || now - state.heard_at < patience_) continue;
    state.is_silent = true;
    --reporting_;
    news.push_back({.server = server, .is_silent = true, .silence = now - state.heard_at});
  }
  return news;
}

std::vector<NodeId> ReporterStatus::missing() const {
  std::vector<NodeId> nodes;
  for (std::size_t i = 0; i < states_.size(); ++i)
    if (!states_[i].is_known || states_[i].is_silent) nodes.push_back(NodeId{static_cast<int>(i)});
  return nodes;
}

}  // namespace regatta::probe
