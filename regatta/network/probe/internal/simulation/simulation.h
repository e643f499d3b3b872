// probe/internal/simulation/simulation.h: what the probers of a cluster would report while
// something is broken and its servers are busy: packet by packet, deterministic for a seed. With it
// the locator is tested on faults whose truth is known.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <random>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/diag/fault_verdict.h"
#include "regatta/network/diag/locator.h"
#include "regatta/network/diag/observation.h"
#include "regatta/network/probe/evidence.h"
#include "regatta/network/probe/matrix.h"

namespace regatta::probe {

struct SimulatedFault {
  // A link, NIC, switch, or a server that dies; two swapped cables, over which nothing gets; an
  // address of two NICs, between which nothing gets.
  diag::Culprit culprit;
  double loss = 1;                          // share of the packets that cross it
  bool some_flows = false;                  // all packets of every second flow instead, by its hash
  std::optional<diag::PacketVariant> only;  // packets of this variant alone
  Seconds at;
  Seconds until{1e300};  // repaired then; servers are not

  bool is_broken(Seconds now) const { return now >= at && now < until; }
};

// How often a server stands still, and for how long; each draw is even between two times.
struct Pauses {
  double per_second = 0;
  Seconds least;
  Seconds most;
};

// A server that loses packets before its processes see them, those to itself as well.
struct Overloads {
  double per_second = 0;
  Seconds least;
  Seconds most;
  double loss = 0;
};

struct Noise {
  std::vector<Pauses> pauses;
  Overloads overloads;
};

Noise quiet();
// Both cores of a machine taken by others: gaps of 14 to 15 ms many times a second, as were
// measured, longer ones more rarely, up to a second; now and then packets are lost inside.
Noise busy();

struct SimulationOptions {
  Seconds period{0.01};
  int periods_per_window = 3;
  Seconds grace{0.03};
  Noise noise;
  std::uint64_t seed = 1;
};

// Counts of one probe.
struct RoundTrips {
  std::uint32_t sent = 0;
  std::uint32_t lost = 0;
};

class Simulation {
 public:
  // The matrix must outlive this.
  Simulation(const topo::Graph& graph, const Matrix& matrix, std::vector<SimulatedFault> faults,
             const SimulationOptions& options);

  // The next window; the reports that were written until it ended, in the order of their writing.
  std::vector<diag::ProbeReport> next_window();
  // The reports on cycles that were written until then, since the last call.
  std::vector<diag::VariantReport> consume_variant_reports();
  // Result of a traceroute that begins at the end of the last window, and when it is known; none if
  // its server stalls meanwhile. Answers return over the links of the request.
  struct Answer {
    Seconds at;
    Trace trace;
  };
  std::optional<Answer> trace(const TraceOrder& order);

  // The end of the last one.
  Seconds now() const { return {static_cast<double>(window_) * window_length()}; }
  // Since the first fault, per probe: what a prober sees that waits for every answer.
  const std::vector<RoundTrips>& since_fault() const { return since_fault_; }

 private:
  struct Span {
    double start = 0;
    double end = 0;
  };
  struct Server {
    std::vector<Span> pauses;     // ascending, apart
    std::vector<Span> overloads;  // the same
    double dead_from = 1e300;
    std::mt19937_64 random;
    double drawn_until = 0;
  };
  struct Effect {  // of one fault on one path
    std::uint32_t path = 0;
    std::size_t fault = 0;
    double loss = 0;
  };
  struct Seen {
    std::vector<double> arrived;   // when the server that answers looked
    std::vector<double> answered;  // when the one that sent looked
    std::uint16_t sent = 0;
  };

  double window_length() const {
    return options_.period.value * static_cast<double>(options_.periods_per_window);
  }
  void draw_pauses(Server& server, double until);
  // When `server` continues if it stalls at `time`; else `time`.
  double awake(const Server& server, double time) const;
  bool is_lost_inside(const Server& server, double time) {
    return is_lost_inside(server, time, random_);
  }
  bool is_lost_inside(const Server& server, double time, std::mt19937_64& random);
  bool is_lost_on(std::uint32_t path, double time,
                  std::optional<diag::PacketVariant> variant = std::nullopt);
  bool is_lost_to(std::uint32_t path, std::size_t hop, double time);
  void send(std::uint32_t probe, double due, Seen& seen);
  diag::HostState state(std::size_t server, double start, double written);
  void report(std::size_t server, const std::vector<Seen>& seen);
  void send_variants();
  void send_variant(diag::PacketVariant variant, double start);
  bool variant_chance(double share) { return even_(variant_random_) < share; }
  bool chance(double share) { return even_(random_) < share; }
  bool traced_chance(double share) { return even_(trace_random_) < share; }

  const Matrix& matrix_;
  std::vector<SimulatedFault> faults_;
  SimulationOptions options_;
  std::mt19937_64 random_;
  std::mt19937_64 trace_random_;    // of its own: what probes meet is the same with traces
  std::mt19937_64 variant_random_;  // the same with variants
  std::uniform_real_distribution<double> even_{0, 1};
  std::vector<Server> servers_;    // by node
  std::vector<std::size_t> from_;  // server of each probe
  std::vector<std::size_t> to_;
  std::vector<std::vector<Effect>> effects_;  // per path
  std::vector<std::vector<bool>> hit_;        // per fault: directed links where packets meet it
  std::vector<RoundTrips> since_fault_;
  double first_fault_ = 1e300;
  diag::Window window_ = 0;
  std::multimap<double, diag::ProbeReport> written_;
  std::multimap<double, diag::VariantReport> written_variants_;
};

// Simulates the next window and passes all reports that were written until its end to the locator.
void simulate_window(Simulation& simulation, diag::Locator& locator);

}  // namespace regatta::probe
