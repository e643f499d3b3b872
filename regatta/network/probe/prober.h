// probe/prober.h: the probes of one server: sends its own, answers those of others, and
// tells what became of them window by window. One thread that wakes up once a period, takes all
// that came in one system call and sends what is due in a few.
//
// Windows and periods are those of the system clock, so that all servers count alike. The kernel
// stamps what arrives; the time that an answer waited for its prober to wake up is in the answer,
// and taken out of the latency.
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
  int grace_periods = 3;  // after the end of a window until it is told
  // As the matrix was planned for. By RDMA nobody stamps what comes, so no round trips are told.
  Transport transport = Transport::kUdp;
};

class Prober {
 public:
  // Opens kProbePort on all addresses; without the right to a raw socket also the source ports of
  // its probes and answers. kConflict when another has one of them. By RDMA it opens the devices of
  // its probes and answers: kUnsupported when there is none.
  static Result<Prober> open(const Matrix& matrix, const ServerPart& part,
                             const ProberOptions& options = {});
  ~Prober();
  Prober(Prober&&) noexcept;
  Prober& operator=(Prober&&) noexcept;

  // Until `stop` is set or `tell` (a whole line) fails, whose error is returned.
  Status run(const std::atomic<bool>& stop, const std::function<Status(const std::string&)>& tell);

 private:
  struct Impl;
  explicit Prober(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// What a prober does besides its probes, in a thread of its own: carries out
// the orders of the collector (probe/evidence.h), and tells when a NIC loses or gets back its
// carrier. Sleeps while there is nothing to do.

struct TraceAgentOptions {
  Seconds window{0.03};  // as Prober has it: a period times the periods of a window
  // Hears a line with its end; from the trace agent's thread.
  std::function<void(const std::string&)> tell;
};

class TraceAgent {
 public:
  // In the network namespace that the calling thread is in. `matrix` is read here only.
  static Result<TraceAgent> open(const Matrix& matrix, const ServerPart& part,
                                 TraceAgentOptions options);
  ~TraceAgent();
  TraceAgent(TraceAgent&&) noexcept;
  TraceAgent& operator=(TraceAgent&&) noexcept;

  // A line of the collector, without its end. Never waits: of many orders the latest are left out.
  // kInvalidInput for what is none, or names a path that does not begin here.
  Status order(std::string_view line);

  // From now on nothing is told.
  void stop();

 private:
  struct Impl;
  explicit TraceAgent(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta::probe
