// fabric/internal/packet/link_pauses.h: PFC: the buffer at the end of each link for the packets
// that came by it, and the pause frames that the end sends when they are too many.
#pragma once

#include <algorithm>
#include <cstdint>
#include <vector>

#include "regatta/network/fabric/internal/packet/calendar_queue.h"
#include "regatta/network/fabric/internal/packet/fifo_queue.h"
#include "regatta/network/fabric/internal/packet/link_event.h"
#include "regatta/network/fabric/internal/packet/packet.h"
#include "regatta/network/fabric/internal/packet/recurrence_detector.h"
#include "regatta/network/fabric/packet_simulation.h"

namespace regatta::fabric::packet {

class LinkPauses {
 public:
  LinkPauses(const PacketNetwork& network, const PacketOptions& options, CalendarQueue& calendar);

  // Reserves `bytes` on the wire in the buffer at the end of the link; false: there is no room.
  bool reserve(std::uint32_t link, std::uint64_t bytes, Picoseconds now) {
    State& state = links_[link];
    const std::uint64_t held = state.held + bytes;
    if (held > state.most_held) return false;
    state.held = held;
    if (held > state.xoff && !state.is_asked) send_frame(link, now);
    return true;
  }
  // The bytes leave the buffer.
  void release(std::uint32_t link, std::uint64_t bytes, Picoseconds now) {
    State& state = links_[link];
    state.held -= bytes;
    if (state.is_asked && state.held <= xon_) send_frame(link, now);
  }

  // The end of the link asks it to pause, or to resume if it is asked to pause.
  void send_frame(std::uint32_t link, Picoseconds now) {
    State& state = links_[link];
    state.is_asked = !state.is_asked;
    if (state.is_asked) ++asked_;
    const Picoseconds arrives = now + network_.links[link].latency;
    if (state.frames.empty()) calendar_.push(event_number(link, LinkEvent::kPauseFrame), arrives);
    state.frames.push(arrives);
  }
  // A frame reaches the begin of the link: pauses it, or resumes it if it is paused. Returns
  // whether it resumes.
  bool receive_frame(std::uint32_t link, Picoseconds now) {
    State& state = links_[link];
    state.frames.pop();
    if (!state.frames.empty())
      calendar_.push(event_number(link, LinkEvent::kPauseFrame), state.frames.front());
    state.is_paused = !state.is_paused;
    if (state.is_paused) {
      ++state.counts.pauses;
      state.paused_since = now;
      return false;
    }
    state.counts.paused_for += now - state.paused_since;
    longest_pause_ = std::max(longest_pause_, now - state.paused_since);
    --asked_;
    return true;
  }

  bool is_paused(std::uint32_t link) const { return links_[link].is_paused; }
  bool is_asked(std::uint32_t link) const { return links_[link].is_asked; }
  // No link pauses, or is about to.
  bool is_calm() const { return asked_ == 0; }
  Picoseconds longest_pause() const { return longest_pause_; }
  std::vector<std::uint32_t> paused() const;
  // How long the link has paused up to now.
  Picoseconds paused_for(std::uint32_t link, Picoseconds now) const {
    const State& state = links_[link];
    return state.counts.paused_for + (state.is_paused ? now - state.paused_since : 0);
  }

  struct Counts {
    std::uint64_t pauses = 0;
    Picoseconds paused_for = 0;  // without a pause that goes on
  };
  const Counts& counts(std::uint32_t link) const { return links_[link].counts; }
  // Adds the counts since `before` another `times` times.
  void repeat(std::uint32_t link, const Counts& before, std::uint64_t times) {
    Counts& counts = links_[link].counts;
    counts.pauses += times * (counts.pauses - before.pauses);
    counts.paused_for += static_cast<Picoseconds>(times) * (counts.paused_for - before.paused_for);
  }
  // Time is skipped in which what happened since `since` happens another `times` times: counted by
  // skipped() alone.
  void skip(Picoseconds since, std::uint64_t times, Picoseconds time);
  // The pauses of the link in skipped time.
  const Counts& skipped(std::uint32_t link) const { return links_[link].skipped; }
  // Adds all state of the link that later events depend on.
  void fingerprint(std::uint32_t link, StateFingerprint& fingerprint, Picoseconds now) const;

 private:
  struct State {
    std::uint64_t held = 0;         // bytes at the switch at its end that came by it
    std::uint64_t most_held = 0;    // for which there is room
    std::uint64_t xoff = 0;         // more is too much
    FifoQueue<Picoseconds> frames;  // when they reach its begin
    Picoseconds paused_since = 0;   // also the begin of the last pause
    Counts counts;
    Counts skipped;
    bool is_paused = false;
    bool is_asked = false;  // to pause, by its end
  };

  const PacketNetwork& network_;
  CalendarQueue& calendar_;
  const std::uint64_t xon_;
  std::vector<State> links_;
  std::uint64_t asked_ = 0;  // links that are to pause, and have not gone on
  Picoseconds longest_pause_ = 0;
};

}  // namespace regatta::fabric::packet
