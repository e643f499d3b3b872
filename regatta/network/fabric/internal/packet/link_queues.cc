#include "regatta/network/fabric/internal/packet/link_queues.h"

#include <algorithm>

namespace regatta::fabric::packet {

LinkQueues::LinkQueues(const PacketNetwork& network, const PacketOptions& options,
                       CalendarQueue& calendar, Random& random)
    : network_(network),
      header_(static_cast<std::uint64_t>(options.header.value)),
      whole_(static_cast<std::uint64_t>(options.mtu.value) + header_),
      payload_(static_cast<double>(options.mtu.value) /
               static_cast<double>(options.mtu.value + options.header.value)),
      pauses_(options.pauses.has_value()),
      marks_(options.marks.has_value()),
      calendar_(calendar),
      random_(random),
      links_(network.links.size()) {
  if (pauses_) {
    xon_ = static_cast<std::uint64_t>(options.pauses->xon.value);
  }
  if (marks_) mark_part_ = options.marks->most;
  for (std::size_t i = 0; i < links_.size(); ++i) {
    const PacketNetwork::Link& link = network.links[i];
    LinkQueue& link_queue = links_[i];
    // The headroom holds packets that are sent until the pause frame arrives or in flight then.
    if (link.is_intra_server) {  // there is room for all
      link_queue.most_held = link_queue.xoff = ~0ULL;
      continue;
    }
    if (pauses_) link_queue.xoff = static_cast<std::uint64_t>(options.pauses->xoff.value);
    if (pauses_)
      link_queue.most_held =
          link_queue.xoff + (options.pauses->headroom
                                 ? static_cast<std::uint64_t>(options.pauses->headroom->value)
                                 : link.bytes_in(2 * link.latency) + 2 * whole_);
    const auto time_of = [&](Bytes bytes) {
      return link.time_of(static_cast<std::uint64_t>(bytes.value));
    };
    if (options.buffer) link_queue.most_wait = time_of(*options.buffer);
    if (!marks_) continue;
    link_queue.mark_from = time_of(options.marks->from);
    link_queue.mark_to = time_of(options.marks->to);
  }
}

void LinkQueues::fingerprint(StateFingerprint& fingerprint, Picoseconds now) const {
  for (const LinkQueue& link_queue : links_) {
    if (link_queue.free_at == 0) continue;  // nothing has ever crossed it
    fingerprint.add(static_cast<std::uint64_t>(std::max<Picoseconds>(link_queue.free_at - now, 0)));
    fingerprint.add(link_queue.flying.size() << 32U | link_queue.waiting.size());
    for (std::size_t i = 0; i < link_queue.flying.size(); ++i) {
      fingerprint.add(static_cast<std::uint64_t>(link_queue.flying.at(i).arrives - now));
      fingerprint.add(link_queue.flying.at(i).packet);
    }
    for (std::size_t i = 0; i < link_queue.waiting.size(); ++i)
      fingerprint.add(link_queue.waiting.at(i));
    fingerprint.add(link_queue.held << 3U | std::uint64_t{link_queue.is_looking} << 2U |
                    std::uint64_t{link_queue.is_paused} << 1U | std::uint64_t{link_queue.is_asked});
    fingerprint.add(link_queue.pause_frames.size());
    for (std::size_t i = 0; i < link_queue.pause_frames.size(); ++i)
      fingerprint.add(static_cast<std::uint64_t>(link_queue.pause_frames.at(i) - now));
  }
}

std::vector<LinkQueues::Counts> LinkQueues::counts() const {
  std::vector<Counts> counts;
  counts.reserve(links_.size());
  for (const LinkQueue& link_queue : links_)
    counts.push_back(
        {link_queue.bytes, link_queue.marks, link_queue.pauses, link_queue.paused_for});
  return counts;
}

void LinkQueues::repeat(const std::vector<Counts>& before, std::uint64_t times,
                        std::uint32_t shift) {
  for (std::size_t i = 0; i < links_.size(); ++i) {
    LinkQueue& link_queue = links_[i];
    link_queue.bytes += times * (link_queue.bytes - before[i].bytes);
    link_queue.marks += times * (link_queue.marks - before[i].marks);
    link_queue.pauses += times * (link_queue.pauses - before[i].pauses);
    link_queue.paused_for +=
        static_cast<Picoseconds>(times) * (link_queue.paused_for - before[i].paused_for);
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
      pauses_ ? link_queue.waiting_time : std::max<Picoseconds>(rest - of.time_of(whole_), 0);
  sample.waiting = static_cast<double>(of.bytes_in(std::max(link_queue.longest, waits)));
  link_queue.longest_before = std::max(link_queue.longest_before, link_queue.longest);
  link_queue.longest = 0;
  return sample;
}

void LinkQueues::report(PacketReport& report, Picoseconds now) const {
  for (std::size_t i = 0; i < links_.size(); ++i) {
    const LinkQueue& link_queue = links_[i];
    const Picoseconds paused =
        link_queue.paused_for + (link_queue.is_paused ? now - link_queue.paused_since : 0);
    report.bytes_of_link.push_back(static_cast<double>(link_queue.bytes));
    report.longest_queue.push_back(static_cast<double>(
        network_.links[i].bytes_in(std::max(link_queue.longest, link_queue.longest_before))));
    report.mean_queue.push_back(
        link_queue.queued == 0
            ? 0
            : static_cast<double>(network_.links[i].bytes_in(link_queue.waited)) /
                  static_cast<double>(link_queue.queued));
    report.marks_of_link.push_back(link_queue.marks);
    report.pauses_of_link.push_back({link_queue.pauses, {static_cast<double>(paused) * 1e-12}});
    report.marks += link_queue.marks;
    report.pauses += link_queue.pauses;
  }
}

namespace {

// Depth first over "waits for".
class CycleSearch {
 public:
  explicit CycleSearch(const std::vector<std::vector<std::uint32_t>>& waits_for)
      : waits_for_(waits_for), state_(waits_for.size(), State::kUnseen) {}

  DependencyCycle find() {
    DependencyCycle cycle;
    for (std::uint32_t link = 0; link < waits_for_.size() && cycle.empty(); ++link)
      if (state_[link] == State::kUnseen) cycle = from(link);
    return cycle;
  }

 private:
  enum class State : std::uint8_t { kUnseen, kOnPath, kDone };

  DependencyCycle from(std::uint32_t link) {
    std::vector<std::size_t> next = {0};
    DependencyCycle path = {link};
    state_[link] = State::kOnPath;
    while (!path.empty()) {
      const std::uint32_t here = path.back();
      if (next.back() == waits_for_[here].size()) {
        state_[here] = State::kDone;
        path.pop_back();
        next.pop_back();
        continue;
      }
      const std::uint32_t to = waits_for_[here][next.back()++];
      if (state_[to] == State::kOnPath) return {std::ranges::find(path, to), path.end()};
      if (state_[to] == State::kDone) continue;
      state_[to] = State::kOnPath;
      path.push_back(to);
      next.push_back(0);
    }
    return {};
  }

  const std::vector<std::vector<std::uint32_t>>& waits_for_;
  std::vector<State> state_;
};

}  // namespace

// A paused link waits for room where its packets stand: before other links that are paused.
std::vector<std::vector<std::uint32_t>> LinkQueues::waits() const {
  std::vector<std::vector<std::uint32_t>> waits_for(links_.size());
  for (const std::uint32_t link : paused()) {
    for (std::size_t i = 0; i < links_[link].waiting.size(); ++i) {
      const std::uint32_t from = links_[link].waiting.at(i).from;
      if (links_[from].is_paused && !std::ranges::count(waits_for[from], link))
        waits_for[from].push_back(link);
    }
  }
  return waits_for;
}

DependencyCycle LinkQueues::find_waits() const {
  const auto waits_for = waits();
  return CycleSearch(waits_for).find();
}

std::vector<std::uint32_t> LinkQueues::paused() const {
  std::vector<std::uint32_t> links;
  for (std::uint32_t link = 0; link < links_.size(); ++link)
    if (links_[link].is_paused) links.push_back(link);
  return links;
}

PfcSample LinkQueues::pfc_sample(std::uint32_t link, Picoseconds now) const {
  const LinkQueue& link_queue = links_[link];
  const Picoseconds paused =
      link_queue.paused_for + (link_queue.is_paused ? now - link_queue.paused_since : 0);
  return {.queued = network_.links[link].bytes_in(link_queue.waiting_time),
          .sent = link_queue.queued - link_queue.waiting.size(),
          .paused = {static_cast<double>(paused) * 1e-12},
          .pauses = link_queue.pauses};
}

}  // namespace regatta::fabric::packet
