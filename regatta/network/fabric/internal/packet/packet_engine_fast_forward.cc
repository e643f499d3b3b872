#include <algorithm>
#include <bit>
#include <cmath>

#include "regatta/network/fabric/internal/packet/packet_engine.h"

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

// Whether rates stay, and if so, fast-forwards.
void PacketEngine::look() {
  const std::vector<ActiveSend> sending = senders_.sending();
  const auto steady = steady_state_->look(sending, clock_.now, link_queues_.pauses().is_calm());
  if (!steady) return;
  if (timers_.empty()) fast_forward(sending, *steady);
  steady_state_->stop_looking();  // until something changes
}

// Whether all is as it was, and if so, fast-forwards.
void PacketEngine::check_recurrence(std::uint32_t link) {
  if (!timers_.empty() || !recurrence_detector_.should_check(link)) return;
  StateFingerprint fingerprint;
  if (!fingerprint_all(fingerprint)) return;
  std::vector<ActiveSend> sending = senders_.sending();
  const auto period = recurrence_detector_.look(fingerprint, sending, clock_.now);
  if (!period) return;
  const std::uint64_t least = kLeastLeft * mtu_;
  auto times = static_cast<std::uint64_t>(time_to_change() / static_cast<double>(period->time));
  for (std::size_t i = 0; i < sending.size(); ++i)
    if (period->bytes[i] != 0)
      times = std::min(times, (std::max(sending[i].left, least) - least) / period->bytes[i]);
  if (times == 0) return;
  if (recorder_.is_on()) record();
  for (std::size_t i = 0; i < sending.size(); ++i)
    fast_forward_packets(sending[i], times * (period->bytes[i] / mtu_));
  pass(static_cast<Picoseconds>(times) * period->time);
  ++fast_forwards_;
  ++fast_forwards_by_recurrence_;
  steady_state_->stop_looking();
}

// Adds packets in flight, queues and pending events; false: some event lies too far ahead.
bool PacketEngine::fingerprint_all(StateFingerprint& fingerprint) const {
  link_queues_.fingerprint(fingerprint, clock_.now);
  senders_.fingerprint(fingerprint);
  return calendar_.for_each([&](Picoseconds at, std::uint32_t number) {
    fingerprint.add(static_cast<std::uint64_t>(at - clock_.now));
    fingerprint.add(number);
  });
}

// Picoseconds until the next flow starts that waits for its time alone, or an outage happens.
double PacketEngine::time_to_change() const {
  const Picoseconds change_at = std::min(flows_.next_start(clock_), next_outage());
  return change_at == kNever ? 0x1p62 : static_cast<double>(change_at - clock_.now);
}

void PacketEngine::fast_forward_packets(const ActiveSend& sending, std::uint64_t packets) {
  senders_.fast_forward(sending.connection, packets * mtu_);
  flows_.fast_forward_packets(sending.flow, packets);
  packets_ += packets;
  for (std::uint32_t at = network_.path_of[sending.connection];; ++at) {
    link_queues_.fast_forward(network_.paths[at], packets, mtu_);
    if (network_.links[network_.paths[at]].is_to_host) break;
  }
}

void PacketEngine::fast_forward(const std::vector<ActiveSend>& sending, const SteadyRates& steady) {
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
  if (!steady.is_max_min) slip += 2 * static_cast<double>(link_queues_.pauses().longest_pause());
  const double error = steady.deviation * static_cast<double>(time) + slip;
  if (error > most_error_ * static_cast<double>(time)) return;
  if (recorder_.is_on()) record();
  for (std::size_t i = 0; i < sending.size(); ++i) {
    const double packets = std::max(std::round(exact[i]), 0.0);
    rests_[sending[i].connection] = exact[i] - packets;
    fast_forward_packets(sending[i], static_cast<std::uint64_t>(packets));
  }
  pass(time);
  recurrence_detector_.stop();
  bound_ += error;
  ++fast_forwards_;
  if (steady.is_max_min) ++fast_forwards_by_max_min_;
}

// Whether all is as it was when this pair started another flow, but for the numbers of flows; if
// so, what came since comes again as long as the flows are alike.
void PacketEngine::check_cycle(std::uint32_t flow) {
  if (!timers_.empty() || !steady_state_->is_complete() ||
      !cycle_detector_.should_check(flows_.pair(flow)))
    return;
  CycleSnapshot snapshot{
      .fingerprint = StateFingerprint(flow), .flow = flow, .mark = flows_.mark(clock_)};
  if (!flows_.fingerprint(snapshot.fingerprint, clock_)) return;
  if (!fingerprint_all(snapshot.fingerprint)) return;
  senders_.fingerprint_messages(snapshot.fingerprint);
  for (const double rest : rests_)
    snapshot.fingerprint.add(std::bit_cast<std::uint64_t>(rest));
  snapshot.crossings = link_queues_.crossings();
  snapshot.packets = packets_;
  snapshot.bound = bound_;
  if (const CycleSnapshot* before = cycle_detector_.find(snapshot.fingerprint); before != nullptr) {
    const std::uint32_t shift = flow - before->flow;
    const Picoseconds period = snapshot.mark.at - before->mark.at;
    std::uint64_t times = flows_.repeats(before->mark, snapshot.mark, shift);
    if (const Picoseconds outage_at = next_outage(); outage_at != kNever && period > 0)
      times = std::min(times, static_cast<std::uint64_t>((outage_at - clock_.now) / period));
    if (times != 0) {
      repeat(*before, snapshot, times);
      return;
    }
  }
  if (cycle_detector_.is_full()) {
    cycle_detector_.forget();
    flows_.log().clear();
    snapshot.mark.events = 0;
  }
  snapshot.counts = link_queues_.counts();
  cycle_detector_.keep(std::move(snapshot));
}

void PacketEngine::repeat(const CycleSnapshot& before, const CycleSnapshot& now,
                          std::uint64_t times) {
  const std::uint32_t shift = now.flow - before.flow;
  const auto all = static_cast<std::uint32_t>(times * shift);
  if (recorder_.is_on()) record();
  clock_.skipped += flows_.repeat(before.mark, now.mark, shift, times);
  link_queues_.repeat(before.counts, times, all);
  link_queues_.add_crossings(times * (now.crossings - before.crossings));
  senders_.repeat(all);
  packets_ += times * (now.packets - before.packets);
  bound_ += static_cast<double>(times) * (now.bound - before.bound);
  cycles_repeated_ += times;
  cycle_detector_.forget();
  cycle_detector_.set_found();
  pass(0);
  flows_.log().clear();
}

}  // namespace regatta::fabric::packet
