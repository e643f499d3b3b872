// fabric/internal/packet/recorder.h: samples the bytes and queues of links once per bin of a
// history. That costs nothing per packet, and as the bins grow longer, samples become rarer.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "regatta/network/fabric/flow_simulation.h"
#include "regatta/network/fabric/internal/packet/link_queues.h"
#include "regatta/network/fabric/internal/packet/simulation_clock.h"
#include "regatta/network/fabric/packet_simulation.h"

namespace regatta::fabric::packet {

class Recorder {
 public:
  // Each may be null; they outlive it.
  Recorder(LinkHistory* links, QueueHistory* queues) : links_(links), queues_(queues) {}

  bool is_on() const { return links_ != nullptr || queues_ != nullptr; }
  // When to sample, by the clock of the flows; kNever: it is off.
  Picoseconds next_at() const { return is_on() ? next_ : kNever; }

  // `now`: the clock of the packets; `time`: the clock of the flows.
  void sample(LinkQueues& link_queues, Picoseconds now, Picoseconds time) {
    if (time > last_) {
      bytes_.resize(link_queues.count(), 0);
      for (std::uint32_t link = 0; link < bytes_.size(); ++link)
        write(link, link_queues.sample(link, now), time);
      last_ = time;
    }
    // Later bins are no narrower than the whole needs, also where nothing has been sent for long.
    if (links_ != nullptr) links_->reach(seconds(time));
    if (queues_ != nullptr) queues_->reach(seconds(time));
    const double width = links_ != nullptr ? links_->width() : queues_->width();
    const Picoseconds step = std::max<Picoseconds>(picoseconds(width), 1);
    next_ = (time / step + 1) * step;
  }

 private:
  void write(std::uint32_t link, const LinkQueues::LinkSample& sample, Picoseconds time) {
    const double from = seconds(last_);
    const double to = seconds(time);
    if (links_ != nullptr && sample.bytes > bytes_[link]) {
      links_->add(link, (sample.bytes - bytes_[link]) / (to - from), from, to);
      bytes_[link] = sample.bytes;
    }
    if (queues_ != nullptr) queues_->add(link, sample.waiting, from, to);
  }

  LinkHistory* links_;
  QueueHistory* queues_;
  Picoseconds last_ = 0;
  Picoseconds next_ = 0;
  std::vector<double> bytes_;  // per link: recorded so far
};

}  // namespace regatta::fabric::packet
