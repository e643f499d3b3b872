// probe/trace_agent.h: what a prober does besides its probes, in a thread of its own: carries out
// the orders of the collector (probe/evidence.h), and tells when a NIC loses or gets back its
// carrier. Sleeps while there is nothing to do.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/network/probe/internal/report_text.h"
#include "regatta/network/probe/matrix.h"

namespace regatta::probe {

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
  // kInvalidInput for what is none, or names a way that does not begin here.
  Status order(std::string_view line);

  // From now on nothing is told.
  void stop();

 private:
  struct Impl;
  explicit TraceAgent(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

}  // namespace regatta::probe
