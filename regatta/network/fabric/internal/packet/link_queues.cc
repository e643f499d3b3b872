#include "regatta/network/fabric/internal/packet/link_queues.h"

#include <algorithm>

#include "regatta/network/fabric/internal/packet/simulation_clock.h"

namespace regatta::fabric::packet {

LinkQueues::LinkQueues(const PacketNetwork& network, const PacketOptions& options,
                       CalendarQueue& calendar, Random& random)
    : network_(network),
      header_(static_cast<std::uint64_t>(options.header.value)),
      whole_(static_cast<std::uint64_t>(options.mtu.value) + header_),
      payload_(static_cast<double>(options.mtu.value) /
               static_cast<double>(options.mtu.value + options.header.value)),
      can_pause_(options.pauses.has_value()),
      marks_(options.marks.has_value()),
      mark_part_(options.marks ? options.marks->most : 0),
      calendar_(calendar),
      random_(random),
      pauses_(network, options, calendar),
      links_(network.links.size()) {
  for (std::size_t i = 0; i < links_.size(); ++i) {
    const PacketNetwork::Link& link = network.links[i];
    if (link.is_intra_server) continue;  // there is room for all
    LinkQueue& link_queue = links_[i];
    const auto time_of = [&](Bytes bytes) {
      const double time = static_cast<double>(bytes.value) / link.bytes_per_picosecond();
      return time < 0x1p62 ? static_cast<Picoseconds>(time) : kNever / 2;
    };
    if (options.buffer) link_queue.most_wait = time_of(*options.buffer);
    if (!marks_) continue;
    link_queue.mark_from = time_of(options.marks->from);
    link_queue.mark_to = time_of(options.marks->to);
  }
}

void LinkQueues::fingerprint(StateFingerprint& fingerprint, Picoseconds now) const {
  for (std::uint32_t link = 0; link < links_.size(); ++link) {
    const LinkQueue& link_queue = links_[link];
    if (link_queue.free_at == 0) continue;  // nothing has ever crossed it
    fingerprint.add(static_cast<std::uint64_t>(std::max<Picoseconds>(link_queue.free_at - now, 0)));
    fingerprint.add(link_queue.flying.size() << 32U | link_queue.waiting.size() << 1U |
                    std::uint64_t{link_queue.has_send_scheduled});
    for (std::size_t i = 0; i < link_queue.flying.size(); ++i) {
      fingerprint.add(static_cast<std::uint64_t>(link_queue.flying.at(i).arrives - now));
      fingerprint.add(link_queue.flying.at(i).packet);
    }
    for (std::size_t i = 0; i < link_queue.waiting.size(); ++i)
      fingerprint.add(link_queue.waiting.at(i));
    pauses_.fingerprint(link, fingerprint, now);
  }
}

std::vector<LinkQueues::Counts> LinkQueues::counts() const {
  std::vector<Counts> counts;
  counts.reserve(links_.size());
  for (std::uint32_t link = 0; link < links_.size(); ++link)
    counts.push_back(
        {links_[link].bytes, links_[link].sent(), links_[link].marks, pauses_.counts(link)});
  return counts;
}

void LinkQueues::repeat(const std::vector<Counts>& before, std::uint64_t times,
                        std::uint32_t shift) {
  for (std::uint32_t link = 0; link < links_.size(); ++link) {
    LinkQueue& link_queue = links_[link];
    link_queue.bytes += times * (link_queue.bytes - before[link].bytes);
    link_queue.skipped += times * (link_queue.sent() - before[link].sent);
    link_queue.marks += times * (link_queue.marks - before[link].marks);
    pauses_.repeat(link, before[link].pauses, times);
    for (std::size_t k = 0; k < link_queue.flying.size(); ++k)
      link_queue.flying.at(k).packet.flow += shift;
    for (std::size_t k = 0; k < link_queue.waiting.size(); ++k)
      link_queue.waiting.at(k).flow += shift;
  }
}

LinkQueues::LinkSample LinkQueues::sample(std::uint32_t link, Picoseconds now) {
  LinkQueue& link_queue = links_[link];
  const PacketNetwork::Link& of = network_.links[link];
  LinkSample sample{.bytes = static_cast<double>(link_queue.bytes)};
  // Without pauses what waits has been counted already, as if in whole packets.
  const Picoseconds rest = std::max<Picoseconds>(link_queue.free_at - now, 0);
  sample.bytes -= std::min(sample.bytes, payload_ * static_cast<double>(of.bytes_in(rest)));
  if (of.is_from_host) return sample;
  const Picoseconds waits =
      can_pause_ ? link_queue.waiting_time : std::max<Picoseconds>(rest - of.time_of(whole_), 0);
  sample.waiting = static_cast<double>(of.bytes_in(std::max(link_queue.longest, waits)));
  link_queue.longest_before = std::max(link_queue.longest_before, link_queue.longest);
  link_queue.longest = 0;
  return sample;
}

void LinkQueues::report(PacketReport& report, Picoseconds now) const {
  for (std::uint32_t link = 0; link < links_.size(); ++link) {
    const LinkQueue& link_queue = links_[link];
    const PacketNetwork::Link& of = network_.links[link];
    const std::uint64_t pauses = pauses_.counts(link).pauses;
    report.bytes_of_link.push_back(static_cast<double>(link_queue.bytes));
    report.longest_queue.push_back(
        static_cast<double>(of.bytes_in(std::max(link_queue.longest, link_queue.longest_before))));
    report.mean_queue.push_back(link_queue.queued == 0
                                    ? 0
                                    : link_queue.waited * of.bytes_per_picosecond() /
                                          static_cast<double>(link_queue.queued));
    report.marks_of_link.push_back(link_queue.marks);
    report.pauses_of_link.push_back({pauses, {seconds(pauses_.paused_for(link, now))}});
    report.marks += link_queue.marks;
    report.pauses += pauses;
  }
}

PfcSample LinkQueues::pfc_sample(std::uint32_t link, Picoseconds now) const {
  const LinkQueue& link_queue = links_[link];
  return {.queued = network_.links[link].bytes_in(link_queue.waiting_time),
          .sent = link_queue.sent(),
          .paused = {seconds(pauses_.paused_for(link, now) + pauses_.skipped(link).paused_for)},
          .pauses = pauses_.counts(link).pauses + pauses_.skipped(link).pauses};
}

}  // namespace regatta::fabric::packet
