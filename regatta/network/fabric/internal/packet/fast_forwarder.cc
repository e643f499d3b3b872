#include "regatta/network/fabric/internal/packet/fast_forwarder.h"

#include <algorithm>
#include <bit>
#include <cmath>
#include <utility>

namespace regatta::fabric::packet {
namespace {

constexpr int kLeastLeft = 4;  // packets of a message, after a fast-forward

// How many packets the fastest sends while the others send whole ones; 1 if there is no such.
double stride_of(const std::vector<double>& rates, double fastest) {
  constexpr int kMost = 60;
  for (int stride = 1; stride <= kMost; ++stride)
    if (std::ranges::all_of(rates, [&](double rate) {
          const double packets = stride * rate / fastest;
          return std::abs(packets - std::round(packets)) < 1e-9;
        }))
      return stride;
  return 1;
}

}  // namespace

FastForwarder::FastForwarder(EngineState& state, const PacketOptions& packets,
                             const MixedOptions& options)
    : state_(state),
      mtu_(static_cast<std::uint64_t>(packets.mtu.value)),
      retransmit_after_(static_cast<double>(picoseconds(packets.retransmit_after.value))),
      most_error_(options.most_error),
      steady_state_(state.network, packets, options),
      rests_(state.network.path_of.size(), 0) {
  state_.flows.log().enable();
}

void FastForwarder::outage_happened() {
  changed();
  cycle_detector_.forget();
  state_.flows.log().clear();
  // Rates leave open whose packet goes next, so that others may be lost, and sent again a turn
  // sooner or later; what recurs does not.
  if (bound_ > 0 || fast_forwards_ != fast_forwards_by_recurrence_) bound_ += retransmit_after_;
}

// Whether rates stay, and if so, fast-forwards.
void FastForwarder::check_steady_rates() {
  const std::vector<ActiveSend> sending = state_.senders.sending();
  const auto steady =
      steady_state_.check(sending, state_.clock.now, state_.link_queues.pauses().is_calm());
  if (!steady) return;
  if (state_.timers.empty()) fast_forward(sending, *steady);
  steady_state_.stop_checks();  // until something changes
}

// Whether all is as it was, and if so, fast-forwards.
void FastForwarder::pause_frame_arrived(std::uint32_t link) {
  if (!state_.timers.empty() || !recurrence_detector_.should_check(link)) return;
  StateFingerprint fingerprint;
  if (!fingerprint_all(fingerprint)) return;
  std::vector<ActiveSend> sending = state_.senders.sending();
  const auto period = recurrence_detector_.find_period(fingerprint, sending, state_.clock.now);
  if (!period) return;
  const std::uint64_t least = kLeastLeft * mtu_;
  auto times = static_cast<std::uint64_t>(time_to_change() / static_cast<double>(period->time));
  for (std::size_t i = 0; i < sending.size(); ++i)
    if (period->bytes[i] != 0)
      times = std::min(times, (std::max(sending[i].left, least) - least) / period->bytes[i]);
  if (times == 0) return;
  state_.observers.begin_skip();
  for (std::size_t i = 0; i < sending.size(); ++i)
    fast_forward_packets(sending[i], times * (period->bytes[i] / mtu_));
  state_.skip(static_cast<Picoseconds>(times) * period->time, state_.clock.now - period->time,
              times);
  ++fast_forwards_;
  ++fast_forwards_by_recurrence_;
  steady_state_.stop_checks();
}

// Adds packets in flight, queues and pending events; false: some event lies too far ahead.
bool FastForwarder::fingerprint_all(StateFingerprint& fingerprint) const {
  state_.link_queues.fingerprint(fingerprint, state_.clock.now);
  state_.senders.fingerprint(fingerprint);
  return state_.calendar.for_each([&](Picoseconds at, std::uint32_t number) {
    fingerprint.add(static_cast<std::uint64_t>(at - state_.clock.now));
    fingerprint.add(number);
  });
}

// Picoseconds until the next flow starts that waits for its time alone, an outage happens, or no
// later time can be counted.
double FastForwarder::time_to_change() const {
  const Picoseconds change_at =
      std::min({state_.flows.next_start(state_.clock), state_.next_outage_at(),
                state_.clock.packet_time(kLatest)});
  return static_cast<double>(change_at - state_.clock.now);
}

void FastForwarder::fast_forward_packets(const ActiveSend& sending, std::uint64_t packets) {
  state_.senders.fast_forward(sending.connection, packets * mtu_);
  state_.flows.fast_forward_packets(sending.flow, packets);
  state_.packets += packets;
  for (std::uint32_t at = state_.network.path_of[sending.connection];; ++at) {
    state_.link_queues.fast_forward(state_.network.paths[at], packets, mtu_);
    if (state_.network.links[state_.network.paths[at]].is_to_host) break;
  }
}

void FastForwarder::fast_forward(const std::vector<ActiveSend>& sending,
                                 const SteadyRates& steady) {
  // As far as none starts and none ends, by whole packets of the fastest.
  double most = time_to_change();
  double fastest = 0;
  for (std::size_t i = 0; i < sending.size(); ++i) {
    const std::uint64_t packets = sending[i].left / mtu_;
    most = std::min(most, (static_cast<double>(packets) - kLeastLeft) / steady.rates[i]);
    fastest = std::max(fastest, steady.rates[i]);
  }
  const double stride = stride_of(steady.rates, fastest);
  const double steps = std::floor(most * fastest / stride) * stride;
  if (!(steps >= kLeastLeft)) return;
  const Picoseconds time = std::llround(steps / fastest);
  std::vector<double> exact;
  double slip = 0;  // time of what is rounded, and of a pause that comes sooner or later
  for (std::size_t i = 0; i < sending.size(); ++i) {
    exact.push_back(steps / fastest * steady.rates[i] + rests_[sending[i].connection]);
    if (std::abs(exact[i] - std::round(exact[i])) > 1e-3)
      slip = std::max(slip, 2 / steady.rates[i]);
  }
  if (!steady.is_max_min)
    slip += 2 * static_cast<double>(state_.link_queues.pauses().longest_pause());
  const double error = steady.deviation * static_cast<double>(time) + slip;
  if (error > most_error_ * static_cast<double>(time)) return;
  state_.observers.begin_skip();
  for (std::size_t i = 0; i < sending.size(); ++i) {
    const double packets = std::max(std::round(exact[i]), 0.0);
    rests_[sending[i].connection] = exact[i] - packets;
    fast_forward_packets(sending[i], static_cast<std::uint64_t>(packets));
  }
  const Picoseconds window = state_.clock.now - steady_state_.begun_at();
  state_.skip(time, steady_state_.begun_at(),
              static_cast<std::uint64_t>(time / std::max<Picoseconds>(window, 1)));
  recurrence_detector_.stop();
  bound_ += error;
  ++fast_forwards_;
  if (steady.is_max_min) ++fast_forwards_by_max_min_;
}

// Whether all is as it was when this pair started another flow, but for the numbers of flows; if
// so, what came since comes again as long as the flows are alike.
void FastForwarder::flow_started(std::uint32_t flow) {
  if (!state_.timers.empty() || !steady_state_.is_complete() ||
      !cycle_detector_.should_check(state_.flows.pair(flow)))
    return;
  CycleSnapshot snapshot{.fingerprint = StateFingerprint(flow),
                         .flow = flow,
                         .now = state_.clock.now,
                         .mark = state_.flows.mark(state_.clock)};
  if (!state_.flows.fingerprint(snapshot.fingerprint, state_.clock)) return;
  if (!fingerprint_all(snapshot.fingerprint)) return;
  state_.senders.fingerprint_messages(snapshot.fingerprint);
  for (const double rest : rests_)
    snapshot.fingerprint.add(std::bit_cast<std::uint64_t>(rest));
  snapshot.crossings = state_.link_queues.crossings();
  snapshot.packets = state_.packets;
  snapshot.bound = bound_;
  if (const CycleSnapshot* before = cycle_detector_.find(snapshot.fingerprint); before != nullptr) {
    const std::uint32_t shift = flow - before->flow;
    const Picoseconds period = snapshot.mark.at - before->mark.at;
    std::uint64_t times = state_.flows.repeats(before->mark, snapshot.mark, shift);
    if (period > 0) {
      const Picoseconds end = std::min(state_.next_outage_at(), state_.clock.packet_time(kLatest));
      times = std::min(times, static_cast<std::uint64_t>((end - state_.clock.now) / period));
    }
    if (times != 0) {
      repeat(*before, snapshot, times);
      return;
    }
  }
  if (cycle_detector_.is_full()) {
    cycle_detector_.forget();
    state_.flows.log().clear();
    snapshot.mark.events = 0;
  }
  snapshot.counts = state_.link_queues.counts();
  cycle_detector_.keep(std::move(snapshot));
}

void FastForwarder::repeat(const CycleSnapshot& before, const CycleSnapshot& now,
                           std::uint64_t times) {
  const std::uint32_t shift = now.flow - before.flow;
  const auto all = static_cast<std::uint32_t>(times * shift);
  state_.observers.begin_skip();
  const Picoseconds time = state_.flows.repeat(before.mark, now.mark, shift, times);
  state_.link_queues.repeat(before.counts, times, all);
  state_.link_queues.add_crossings(times * (now.crossings - before.crossings));
  state_.senders.repeat(all);
  state_.packets += times * (now.packets - before.packets);
  bound_ += static_cast<double>(times) * (now.bound - before.bound);
  cycles_repeated_ += times;
  cycle_detector_.forget();
  cycle_detector_.set_found();
  state_.skip(time, before.now, 0);
  state_.flows.log().clear();
}

void FastForwarder::report(MixedReport& report) const {
  report.bound = {bound_ * 1e-12};
  report.fast_forwards = fast_forwards_;
  report.fast_forwards_by_max_min = fast_forwards_by_max_min_;
  report.fast_forwards_by_recurrence = fast_forwards_by_recurrence_;
  report.cycles = cycles_repeated_;
}

}  // namespace regatta::fabric::packet
