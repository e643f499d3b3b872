// fabric/internal/packet/link_event.h: the events of links and their numbers in the calendar.
#pragma once

#include <cstdint>

namespace regatta::fabric::packet {

// A packet reaches the end of the link; the link is free for the next packet; a PFC frame that
// pauses or resumes the link reaches its begin.
enum class LinkEvent : std::uint8_t { kArrival, kFree, kPauseFrame };
inline constexpr std::uint32_t kLinkEvents = 3;

constexpr std::uint32_t event_number(std::uint32_t link, LinkEvent event) {
  return link * kLinkEvents + static_cast<std::uint32_t>(event);
}

}  // namespace regatta::fabric::packet
