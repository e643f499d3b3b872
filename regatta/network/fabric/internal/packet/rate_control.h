// fabric/internal/packet/rate_control.h: the rate of a connection under congestion notifications.
// DCQCN: Zhu et al., "Congestion control for large-scale RDMA deployments", SIGCOMM 2015,
// section 3.1 and figure 7. Its timers are read when the connection sends or receives a CNP, so
// that they cost no events.
#pragma once

#include <algorithm>
#include <cstdint>

#include "regatta/base/core/units.h"
#include "regatta/network/fabric/internal/packet/packet.h"

namespace regatta::fabric {

// The paper's names. The defaults are its values for 40 Gbit/s, rates and bytes times ten.
struct Dcqcn {
  double g = 1.0 / 256;             // how fast alpha follows
  Seconds cnp_interval{50e-6};      // N: a receiver tells a connection at most so often
  Seconds alpha_timer{55e-6};       // K
  Seconds increase_timer{55e-6};    // T
  Bytes byte_counter{100'000'000};  // B
  int fast_recovery = 5;            // F: steps
  BytesPerSecond additive{50e6};    // R_AI: 400 Mbit/s
  BytesPerSecond hyper{500e6};      // R_HAI: 4 Gbit/s
  BytesPerSecond least{12.5e6};     // no notice makes it slower than this
};

namespace packet {

// Times in picoseconds, rates in bytes per picosecond.
class RateControl {
 public:
  explicit RateControl(double line_rate)
      : line_rate_(line_rate), rate_(line_rate), target_(line_rate) {}

  double rate() const { return rate_; }
  double alpha() const { return alpha_; }

  // Advances to `now`: alpha falls and the rate rises by all timers that have expired.
  void advance(const Dcqcn& options, Picoseconds now) {
    const auto alpha_timer = static_cast<Picoseconds>(options.alpha_timer.value * 1e12);
    for (; alpha_at_ + alpha_timer <= now && alpha_ > 1e-9; alpha_at_ += alpha_timer)
      alpha_ *= 1 - options.g;
    alpha_at_ += (now - alpha_at_) / alpha_timer * alpha_timer;
    const auto increase_timer = static_cast<Picoseconds>(options.increase_timer.value * 1e12);
    for (; rise_at_ + increase_timer <= now && rate_ < line_rate_; rise_at_ += increase_timer) {
      ++timer_steps_;
      rise(options);
    }
    rise_at_ += (now - rise_at_) / increase_timer * increase_timer;
  }

  void sent(const Dcqcn& options, std::uint64_t bytes) {
    if (rate_ >= line_rate_) return;
    bytes_ += static_cast<double>(bytes);
    if (bytes_ < static_cast<double>(options.byte_counter.value)) return;
    bytes_ = 0;
    ++byte_steps_;
    rise(options);
  }

  // A packet met congestion.
  void on_cnp(const Dcqcn& options, Picoseconds now) {
    advance(options, now);
    target_ = rate_;
    rate_ = std::max(rate_ * (1 - alpha_ / 2), options.least.value * 1e-12);
    alpha_ = (1 - options.g) * alpha_ + options.g;
    alpha_at_ = rise_at_ = now;
    bytes_ = 0;
    timer_steps_ = byte_steps_ = 0;
  }

 private:
  void rise(const Dcqcn& options) {
    const int most = std::max(timer_steps_, byte_steps_);
    const int least = std::min(timer_steps_, byte_steps_);
    if (least > options.fast_recovery)
      target_ += options.hyper.value * 1e-12 * (least - options.fast_recovery);
    else if (most > options.fast_recovery)
      target_ += options.additive.value * 1e-12;
    target_ = std::min(target_, line_rate_);
    rate_ = (rate_ + target_) / 2;
    if (rate_ > line_rate_ * (1 - 1e-6)) rate_ = line_rate_;
  }

  double line_rate_;
  double rate_;    // R_C
  double target_;  // R_T
  double alpha_ = 1;
  Picoseconds alpha_at_ = 0;
  Picoseconds rise_at_ = 0;
  double bytes_ = 0;
  int timer_steps_ = 0;
  int byte_steps_ = 0;
};

}  // namespace packet
}  // namespace regatta::fabric
