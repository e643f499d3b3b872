#include "regatta/network/fabric/internal/packet/lines.h"

#include <algorithm>

namespace regatta::fabric::packet {

Lines::Lines(const Network& network, const PacketOptions& options, Calendar& calendar,
             Random& random)
    : network_(network),
      header_(static_cast<std::uint64_t>(options.header.value)),
      whole_(static_cast<std::uint64_t>(options.mtu.value) + header_),
      payload_(static_cast<double>(options.mtu.value) /
               static_cast<double>(options.mtu.value + options.header.value)),
      pauses_(options.pauses.has_value()),
      marks_(options.marks.has_value()),
      calendar_(calendar),
      random_(random),
      lines_(network.links.size()) {
  if (pauses_) {
    xon_ = static_cast<std::uint64_t>(options.pauses->xon.value);
  }
  if (marks_) mark_part_ = options.marks->most;
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    const Network::Link& link = network.links[i];
    Line& line = lines_[i];
    // What comes after the word to pause was sent: until it is there, and what was under way then.
    if (link.is_pipe) {  // there is room for all
      line.most_held = line.xoff = ~0ULL;
      continue;
    }
    if (pauses_) line.xoff = static_cast<std::uint64_t>(options.pauses->xoff.value);
    if (pauses_)
      line.most_held =
          line.xoff + (options.pauses->headroom
                           ? static_cast<std::uint64_t>(options.pauses->headroom->value)
                           : link.bytes_in(2 * link.latency) + 2 * whole_);
    const auto time_of = [&](Bytes bytes) {
      return link.time_of(static_cast<std::uint64_t>(bytes.value));
    };
    if (options.buffer) line.most_wait = time_of(*options.buffer);
    if (!marks_) continue;
    line.mark_from = time_of(options.marks->from);
    line.mark_to = time_of(options.marks->to);
  }
}

void Lines::print(Print& print, Picoseconds now) const {
  for (const Line& line : lines_) {
    if (line.free_at == 0) continue;  // nothing has ever crossed it
    print.add(static_cast<std::uint64_t>(std::max<Picoseconds>(line.free_at - now, 0)));
    print.add(line.flying.size() << 32U | line.waiting.size());
    for (std::size_t i = 0; i < line.flying.size(); ++i) {
      print.add(static_cast<std::uint64_t>(line.flying.at(i).arrives - now));
      print.add(line.flying.at(i).packet);
    }
    for (std::size_t i = 0; i < line.waiting.size(); ++i)
      print.add(line.waiting.at(i));
    print.add(line.held << 3U | std::uint64_t{line.is_looking} << 2U |
              std::uint64_t{line.is_paused} << 1U | std::uint64_t{line.is_asked});
    print.add(line.words.size());
    for (std::size_t i = 0; i < line.words.size(); ++i)
      print.add(static_cast<std::uint64_t>(line.words.at(i) - now));
  }
}

std::vector<Lines::Counts> Lines::counts() const {
  std::vector<Counts> counts;
  counts.reserve(lines_.size());
  for (const Line& line : lines_)
    counts.push_back({line.bytes, line.marks, line.pauses, line.paused_for});
  return counts;
}

void Lines::repeat(const std::vector<Counts>& before, std::uint64_t times, std::uint32_t shift) {
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    Line& line = lines_[i];
    line.bytes += times * (line.bytes - before[i].bytes);
    line.marks += times * (line.marks - before[i].marks);
    line.pauses += times * (line.pauses - before[i].pauses);
    line.paused_for += static_cast<Picoseconds>(times) * (line.paused_for - before[i].paused_for);
    for (std::size_t k = 0; k < line.flying.size(); ++k)
      line.flying.at(k).packet.flow += shift;
    for (std::size_t k = 0; k < line.waiting.size(); ++k)
      line.waiting.at(k).flow += shift;
  }
}

Lines::Glance Lines::glance(std::uint32_t link, Picoseconds now) {
  Line& line = lines_[link];
  const Network::Link& of = network_.links[link];
  Glance glance{.bytes = static_cast<double>(line.bytes)};
  // Without pauses what waits has been counted already, as if in whole packets.
  const Picoseconds rest = std::max<Picoseconds>(line.free_at - now, 0);
  glance.bytes -= std::min(glance.bytes, payload_ * static_cast<double>(of.bytes_in(rest)));
  if (of.is_from_host) return glance;
  const Picoseconds waits =
      pauses_ ? line.waiting_time : std::max<Picoseconds>(rest - of.time_of(whole_), 0);
  glance.waiting = static_cast<double>(of.bytes_in(std::max(line.longest, waits)));
  line.longest_before = std::max(line.longest_before, line.longest);
  line.longest = 0;
  return glance;
}

void Lines::report(PacketReport& report, Picoseconds now) const {
  for (std::size_t i = 0; i < lines_.size(); ++i) {
    const Line& line = lines_[i];
    const Picoseconds paused = line.paused_for + (line.is_paused ? now - line.paused_since : 0);
    report.bytes_of_link.push_back(static_cast<double>(line.bytes));
    report.longest_queue.push_back(static_cast<double>(
        network_.links[i].bytes_in(std::max(line.longest, line.longest_before))));
    report.mean_queue.push_back(line.queued == 0
                                    ? 0
                                    : static_cast<double>(network_.links[i].bytes_in(line.waited)) /
                                          static_cast<double>(line.queued));
    report.marks_of_link.push_back(line.marks);
    report.pauses_of_link.push_back({line.pauses, {static_cast<double>(paused) * 1e-12}});
    report.marks += line.marks;
    report.pauses += line.pauses;
  }
}

namespace {

// Depth first over "waits for".
class CircleSearch {
 public:
  explicit CircleSearch(const std::vector<std::vector<std::uint32_t>>& waits_for)
      : waits_for_(waits_for), state_(waits_for.size(), State::kUnseen) {}

  Circle find() {
    Circle circle;
    for (std::uint32_t link = 0; link < waits_for_.size() && circle.empty(); ++link)
      if (state_[link] == State::kUnseen) circle = from(link);
    return circle;
  }

 private:
  enum class State : std::uint8_t { kUnseen, kOnWay, kDone };

  Circle from(std::uint32_t link) {
    std::vector<std::size_t> next = {0};
    Circle way = {link};
    state_[link] = State::kOnWay;
    while (!way.empty()) {
      const std::uint32_t here = way.back();
      if (next.back() == waits_for_[here].size()) {
        state_[here] = State::kDone;
        way.pop_back();
        next.pop_back();
        continue;
      }
      const std::uint32_t to = waits_for_[here][next.back()++];
      if (state_[to] == State::kOnWay) return {std::ranges::find(way, to), way.end()};
      if (state_[to] == State::kDone) continue;
      state_[to] = State::kOnWay;
      way.push_back(to);
      next.push_back(0);
    }
    return {};
  }

  const std::vector<std::vector<std::uint32_t>>& waits_for_;
  std::vector<State> state_;
};

}  // namespace

// A paused link waits for room where its packets stand: before other links that are paused.
std::vector<std::vector<std::uint32_t>> Lines::waits() const {
  std::vector<std::vector<std::uint32_t>> waits_for(lines_.size());
  for (const std::uint32_t link : paused()) {
    for (std::size_t i = 0; i < lines_[link].waiting.size(); ++i) {
      const std::uint32_t from = lines_[link].waiting.at(i).from;
      if (lines_[from].is_paused && !std::ranges::count(waits_for[from], link))
        waits_for[from].push_back(link);
    }
  }
  return waits_for;
}

Circle Lines::find_waits() const {
  const auto waits_for = waits();
  return CircleSearch(waits_for).find();
}

std::vector<std::uint32_t> Lines::paused() const {
  std::vector<std::uint32_t> links;
  for (std::uint32_t link = 0; link < lines_.size(); ++link)
    if (lines_[link].is_paused) links.push_back(link);
  return links;
}

PauseSample Lines::pause_sample(std::uint32_t link, Picoseconds now) const {
  const Line& line = lines_[link];
  const Picoseconds paused = line.paused_for + (line.is_paused ? now - line.paused_since : 0);
  return {.queued = network_.links[link].bytes_in(line.waiting_time),
          .sent = line.queued - line.waiting.size(),
          .paused = {static_cast<double>(paused) * 1e-12},
          .pauses = line.pauses};
}

}  // namespace regatta::fabric::packet
