#include "regatta/network/fabric/internal/packet/link_pauses.h"

namespace regatta::fabric::packet {

LinkPauses::LinkPauses(const PacketNetwork& network, const PacketOptions& options,
                       CalendarQueue& calendar)
    : network_(network),
      calendar_(calendar),
      xon_(options.pauses ? static_cast<std::uint64_t>(options.pauses->xon.value) : 0),
      links_(network.links.size()) {
  const auto whole = static_cast<std::uint64_t>(options.mtu.value + options.header.value);
  for (std::size_t i = 0; i < links_.size(); ++i) {
    const PacketNetwork::Link& link = network.links[i];
    State& state = links_[i];
    if (link.is_intra_server) {  // there is room for all
      state.most_held = state.xoff = ~0ULL;
    } else if (options.pauses) {
      state.xoff = static_cast<std::uint64_t>(options.pauses->xoff.value);
      // The headroom holds packets that are sent until the pause frame arrives or in flight then.
      state.most_held =
          state.xoff + (options.pauses->headroom
                            ? static_cast<std::uint64_t>(options.pauses->headroom->value)
                            : link.bytes_in(2 * link.latency) + 2 * whole);
    }
  }
}

std::vector<std::uint32_t> LinkPauses::paused() const {
  std::vector<std::uint32_t> links;
  for (std::uint32_t link = 0; link < links_.size(); ++link)
    if (links_[link].is_paused) links.push_back(link);
  return links;
}

void LinkPauses::skip(Picoseconds since, std::uint64_t times, Picoseconds time) {
  for (State& state : links_) {
    if (state.is_paused && state.paused_since <= since)
      state.skipped.paused_for += time;
    else if (state.counts.pauses > 0 && state.paused_since > since)
      state.skipped.pauses += times;
  }
}

void LinkPauses::fingerprint(std::uint32_t link, StateFingerprint& fingerprint,
                             Picoseconds now) const {
  const State& state = links_[link];
  fingerprint.add(state.held << 2U | std::uint64_t{state.is_paused} << 1U |
                  std::uint64_t{state.is_asked});
  fingerprint.add(state.frames.size());
  for (std::size_t i = 0; i < state.frames.size(); ++i)
    fingerprint.add(static_cast<std::uint64_t>(state.frames.at(i) - now));
}

}  // namespace regatta::fabric::packet
