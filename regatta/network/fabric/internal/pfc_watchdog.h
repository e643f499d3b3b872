// fabric/internal/pfc_watchdog.h: finds queues that are paused for good (a PFC storm: a NIC or a
// deadlock that never lets its sender go on) among those that are paused because the network is
// busy, by counters that switches have. Rules: SONiC's PFC watchdog, sonic-swss pull requests 335
// (kLegacy) and 3036 (kBlocked); detection time with 1 % of slack for the jitter of polls: pull
// request 4784.
#pragma once

#include <compare>
#include <cstdint>
#include <map>
#include <optional>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/units.h"

namespace regatta::fabric {

// A lossless queue by which a switch sends.
struct PortQueue {
  std::uint32_t link = 0;  // directed: number_of()
  int queue = 0;           // its priority

  friend auto operator<=>(const PortQueue&, const PortQueue&) = default;
};

// The values of a poll; `sent`, `paused` and `pauses` count from any beginning.
struct PfcSample {
  Seconds at;
  bool is_up = true;         // the link
  std::uint64_t queued = 0;  // bytes that wait now
  std::uint64_t sent = 0;    // packets
  Seconds paused;            // by the peer
  std::uint64_t pauses = 0;  // pause frames of the peer
};

enum class PfcStormRule : std::uint8_t {
  kBlocked,  // packets wait, none was sent, and it was paused for more than `share` of the time
  // The older rule: none was sent, and packets wait and a pause came, or the queue is empty and was
  // paused for more than `share` of the time. It also fires where there was nothing to send.
  kLegacy,
};

inline constexpr double kPfcWatchdogSlack = 0.99;  // of the times below: less is enough

struct PfcWatchdogOptions {
  PfcStormRule rule = PfcStormRule::kBlocked;
  double share = 0.99;
  // The rule has to hold for so long in a row. Polls of 20 ms find a storm within 200 ms: the first
  // poll begins before it, and detection takes 160.
  Seconds detection{0.16};
  Seconds recovery{0.2};  // without a pause
};

// As published: polls of 100 ms, two of them to detect, 200 ms to recover.
inline constexpr PfcWatchdogOptions kPublishedPfcWatchdogOptions{.detection = {0.2}};
inline constexpr PfcWatchdogOptions kLegacyPfcWatchdogOptions{
    .rule = PfcStormRule::kLegacy, .share = 0.8, .detection = {0.2}};

struct PfcStormAlarm {
  PortQueue queue;
  bool is_storm = false;  // it begins; else it is over
  Seconds since;          // the first poll from which on the rule held, or no pause came
  Seconds at;
};

class PfcWatchdog {
 public:
  explicit PfcWatchdog(const PfcWatchdogOptions& options = {}) : options_(options) {}

  // Adds the next sample of a queue. Counters that go back, and a link that goes down, restart it.
  std::optional<PfcStormAlarm> add(const PortQueue& queue, const PfcSample& sample);

  bool is_in_storm(const PortQueue& queue) const;

 private:
  struct State {
    PfcSample last;
    bool is_storm = false;
    Seconds held;  // how long the rule, or in a storm the calm, has held up to `last`
  };

  PfcWatchdogOptions options_;
  std::map<PortQueue, State> states_;
};

}  // namespace regatta::fabric
