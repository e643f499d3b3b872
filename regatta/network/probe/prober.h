// probe/prober.h: the probes of one server: sends its own, answers those of others, and reports
// their results window by window. One thread wakes up once a period, receives all packets in one
// system call and sends the due ones in a few.
//
// Windows and periods are those of the system clock, so that all servers count alike. The kernel
// stamps arriving packets; an answer carries the time that it waited for its prober to wake up,
// which is subtracted from the latency.
#pragma once

#include <atomic>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/network/probe/internal/report_text.h"
#include "regatta/network/probe/matrix.h"

namespace regatta::probe {

inline constexpr int kControlsPerWindow = 1;  // packets over loopback

struct ProberOptions {
  Seconds period{0.01};
  int periods_per_window = 3;
  int grace_periods = 3;  // after the end of a window until it is reported
  // As the matrix was planned for. By RDMA arrivals have no time stamps, so no round trips are
  // reported.
  Transport transport = Transport::kUdp;
};

class Prober {
 public:
  // Opens kProbePort on all addresses; without the right to a raw socket also the source ports of
  // its probes and answers. kConflict when another process has one of them. By RDMA it opens the
  // devices of its probes and answers: kUnsupported when there is none.
  static Result<Prober> open(const Matrix& matrix, const ServerPart& part,
                             const ProberOptions& options = {});
  ~Prober();
  Prober(Prober&&) noexcept;
  Prober& operator=(Prober&&) noexcept;

  // Runs until `stop` is set or `emit` (gets a whole line) fails, and returns that error.
  Status run(const std::atomic<bool>& stop, const std::function<Status(const std::string&)>& emit);

 private:
  struct Impl;
  explicit Prober(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// The thread of a prober that handles requests of the collector (probe/evidence.h), and reports
// when a NIC loses or regains its carrier. Sleeps when idle.

struct TraceAgentOptions {
  Seconds window{0.03};  // as in Prober: a period times the periods of a window
  // Called from the trace agent's thread with a line and its end.
  std::function<void(const std::string&)> send;
};

class TraceAgent {
 public:
  // In the network namespace of the calling thread. `matrix` is read only during this call.
  static Result<TraceAgent> open(const Matrix& matrix, const ServerPart& part,
                                 TraceAgentOptions options);
  ~TraceAgent();
  TraceAgent(TraceAgent&&) noexcept;
  TraceAgent& operator=(TraceAgent&&) noexcept;

  // Accepts a line of the collector, without its end. Never waits: of many requests the latest are
  // left out. kInvalidInput for other lines, or a path that does not begin here.
  Status order(std::string_view line);

  // Stops all reports.
  void stop();

 private:
  struct Impl;
  explicit TraceAgent(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta::probe
