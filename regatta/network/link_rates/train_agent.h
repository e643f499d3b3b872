// link_rates/train_agent.h: what one server does to measure rates: it sends packet trains, receives
// those of others, and reports the bytes of its NICs. Acts: Linux sockets.
// Source: ip(7), socket(7) (SO_TIMESTAMPNS), sendmmsg(2).
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "regatta/base/core/result.h"

namespace regatta::link_rates {

class TrainAgent {
 public:
  // `send` carries a line, with its end, to the command that measures; the thread of run() calls
  // it.
  static Result<TrainAgent> open(std::function<void(const std::string&)> send);
  ~TrainAgent();
  TrainAgent(TrainAgent&&) noexcept;
  TrainAgent& operator=(TrainAgent&&) noexcept;

  // A line of that command, without its end; any thread. kInvalidInput for one that it never sends.
  // At most 64 wait, more are left out.
  Status order(std::string_view line);
  // Carries out orders until `stop` is set; looks at it ten times a second.
  Status run(const std::atomic<bool>& stop);

 private:
  struct Impl;
  explicit TrainAgent(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta::link_rates
