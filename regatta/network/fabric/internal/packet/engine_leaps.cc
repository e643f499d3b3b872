#include <algorithm>
#include <bit>
#include <cmath>

#include "regatta/network/fabric/internal/packet/engine.h"

namespace regatta::fabric::packet {
namespace {

constexpr int kLeastLeft = 4;  // packets of a message, after a leap

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

// Whether rates stay, and if so, leaps.
void Engine::look() {
  const std::vector<Sending> sending = senders_.sending();
  const auto steady = steady_->look(sending, now_, lines_.is_calm());
  if (!steady) return;
  if (timers_.empty()) leap(sending, *steady);
  steady_->stop_looking();  // until something changes
}

// Whether all is as it was, and if so, leaps.
void Engine::look_back(std::uint32_t link) {
  if (!timers_.empty() || !recurrence_.is_to_look(link)) return;
  Print print;
  if (!print_all(print)) return;
  std::vector<Sending> sending = senders_.sending();
  const auto period = recurrence_.look(print, sending, now_);
  if (!period) return;
  const std::uint64_t least = kLeastLeft * mtu_;
  auto times = static_cast<std::uint64_t>(time_to_change() / static_cast<double>(period->time));
  for (std::size_t i = 0; i < sending.size(); ++i)
    if (period->bytes[i] != 0)
      times = std::min(times, (std::max(sending[i].left, least) - least) / period->bytes[i]);
  if (times == 0) return;
  if (recorder_.is_on()) record();
  for (std::size_t i = 0; i < sending.size(); ++i)
    leap_packets(sending[i], times * (period->bytes[i] / mtu_));
  pass(static_cast<Picoseconds>(times) * period->time);
  ++leaps_;
  ++leaps_back_;
  steady_->stop_looking();
}

// What is under way, waits or is to happen; false: some of it lies too far ahead to say so.
bool Engine::print_all(Print& print) const {
  lines_.print(print, now_);
  senders_.print(print);
  return calendar_.for_each([&](Picoseconds at, std::uint32_t number) {
    print.add(static_cast<std::uint64_t>(at - now_));
    print.add(number);
  });
}

// Picoseconds until the next flow starts that waits for its time alone, or an outage happens.
double Engine::time_to_change() const {
  const Picoseconds change_at = std::min(flows_.next_start(), next_outage());
  return change_at == kNever ? 0x1p62 : static_cast<double>(change_at - now_);
}

void Engine::leap_packets(const Sending& sending, std::uint64_t packets) {
  senders_.leap(sending.connection, packets * mtu_);
  flows_.leap_packets(sending.flow, packets);
  packets_ += packets;
  for (std::uint32_t at = network_.way_of[sending.connection];; ++at) {
    lines_.leap(network_.ways[at], packets, mtu_);
    if (network_.links[network_.ways[at]].is_to_host) break;
  }
}

void Engine::leap(const std::vector<Sending>& sending, const SteadyRates& steady) {
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
  if (!steady.is_max_min) slip += 2 * static_cast<double>(lines_.longest_pause());
  const double error = steady.deviation * static_cast<double>(time) + slip;
  if (error > most_error_ * static_cast<double>(time)) return;
  if (recorder_.is_on()) record();
  for (std::size_t i = 0; i < sending.size(); ++i) {
    const double packets = std::max(std::round(exact[i]), 0.0);
    rests_[sending[i].connection] = exact[i] - packets;
    leap_packets(sending[i], static_cast<std::uint64_t>(packets));
  }
  pass(time);
  recurrence_.stop();
  bound_ += error;
  ++leaps_;
  if (steady.is_max_min) ++leaps_by_max_min_;
}

// Whether all is as it was when this pair started another flow, but for the numbers of flows; if
// so, what came since comes again as long as the flows are alike.
void Engine::look_for_cycle(std::uint32_t flow) {
  if (!timers_.empty() || !steady_->is_complete() || !cycles_.is_to_look(flows_.pair(flow))) return;
  Moment moment{.print = Print(flow), .flow = flow, .mark = flows_.mark(now_)};
  if (!flows_.print(moment.print, now_)) return;
  if (!print_all(moment.print)) return;
  senders_.print_messages(moment.print);
  for (const double rest : rests_)
    moment.print.add(std::bit_cast<std::uint64_t>(rest));
  moment.crossings = lines_.crossings();
  moment.packets = packets_;
  moment.bound = bound_;
  if (const Moment* before = cycles_.find(moment.print); before != nullptr) {
    const std::uint32_t shift = flow - before->flow;
    const Picoseconds period = moment.mark.at - before->mark.at;
    std::uint64_t times = flows_.repeats(before->mark, moment.mark, shift);
    if (const Picoseconds outage_at = next_outage(); outage_at != kNever && period > 0)
      times = std::min(times, static_cast<std::uint64_t>((outage_at - now_) / period));
    if (times != 0) {
      repeat(*before, moment, times);
      return;
    }
  }
  if (cycles_.is_full()) {
    cycles_.forget();
    flows_.forget_notes();
    moment.mark.notes = 0;
  }
  moment.counts = lines_.counts();
  cycles_.keep(std::move(moment));
}

void Engine::repeat(const Moment& before, const Moment& now, std::uint64_t times) {
  const std::uint32_t shift = now.flow - before.flow;
  const auto all = static_cast<std::uint32_t>(times * shift);
  if (recorder_.is_on()) record();
  flows_.repeat(before.mark, now.mark, shift, times);
  lines_.repeat(before.counts, times, all);
  lines_.add_crossings(times * (now.crossings - before.crossings));
  senders_.repeat(all);
  packets_ += times * (now.packets - before.packets);
  bound_ += static_cast<double>(times) * (now.bound - before.bound);
  cycles_repeated_ += times;
  cycles_.forget();
  cycles_.set_found();
  pass(0);
  flows_.forget_notes();
}

}  // namespace regatta::fabric::packet
