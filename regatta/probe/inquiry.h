// probe/inquiry.h: what to ask probers besides their windows, and what the answers say. At first,
// and again each ten minutes, where routers see each way go, held against the plan; when probes are
// lost, who answers on those ways and what connections send again. Pure: the caller asks, and says
// what time it is by the clock that windows are numbered by.
//
// Routers answer few questions a second: those who ask spread them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <span>
#include <vector>

#include "regatta/core/result.h"
#include "regatta/core/units.h"
#include "regatta/diag/observation.h"
#include "regatta/diag/verdict.h"
#include "regatta/fabric/routes.h"
#include "regatta/probe/evidence.h"
#include "regatta/probe/matrix.h"
#include "regatta/topo/graph.h"

namespace regatta::probe {

struct Question {
  NodeId server;
  Order order;
};

// What was found about a culprit: packets of traceroutes over it that should have ended at the last
// router before it and at the routers behind it, and segments of connections that cross it and of
// others.
struct Gathered {
  std::uint32_t before_sent = 0;
  std::uint32_t before_answered = 0;
  std::uint32_t behind_sent = 0;
  std::uint32_t behind_answered = 0;
  std::uint64_t segments = 0;
  std::uint64_t again = 0;
  std::uint64_t other_segments = 0;
  std::uint64_t other_again = 0;

  bool has_traces() const { return before_sent + behind_sent > 0; }
  bool has_connections() const { return segments > 0; }
};

// A router answered that does not stand on the way: the switches hash otherwise than was planned.
struct Elsewhere {
  std::uint32_t way = 0;
  std::uint32_t planned = 0;  // directed link
  std::uint32_t taken = 0;    // the same
};

class Inquiry {
 public:
  // `seeds` by NodeId, as the matrix was planned with. All must outlive this.
  Inquiry(const topo::Graph& graph, const fabric::Routes& routes,
          std::span<const std::uint32_t> seeds, const Matrix& matrix);

  // What to ask now. `lossy`: ways that lose something; `standing`: what is known to be broken.
  std::vector<Question> ask(std::span<const std::uint32_t> lossy,
                            std::span<const diag::Verdict> standing, Seconds now);
  // Whose packets take this way.
  NodeId server_of(std::uint32_t way) const;
  // Somebody reports for this server now: its ways are asked about that nobody could confirm yet.
  void heard(NodeId server);
  // Nobody was there to hear it.
  void put_off(const Question& question);

  // What an answer of `server` says about known ways. kInvalidInput for what it cannot know.
  Result<std::vector<diag::PassedCount>> take(NodeId server, const Trace& trace, Seconds now);
  Result<std::vector<diag::PassedCount>> take(NodeId server, const FlowCounts& counts, Seconds now);
  Result<diag::CarrierEvent> take(NodeId server, const NicCarrier& nic) const;

  // By answers since `since`.
  Gathered about(const diag::Culprit& culprit, Seconds since) const;
  // Of ways that were not known to be so at the last call.
  std::vector<Elsewhere> take_elsewhere();
  // By way: whether it leads elsewhere, nobody knows where as a whole.
  std::vector<bool> unknown_ways() const;
  // All ways as they are known now, where routers have told whole ways that lead elsewhere than
  // the matrix has them, twice with some seconds between; none where there is no such way, or while
  // more are looked at. Once: whoever takes them puts them into the matrix, and with them the way
  // counts as confirmed.
  std::optional<fabric::Paths> take_measured();
  // Every way was asked about, and answered or given up.
  bool has_surveyed() const;
  std::size_t ways() const { return ways_.size(); }
  // Those of which at least one router has said that the way leads there; and those on which
  // another one answered than was planned.
  std::size_t confirmed() const;
  std::size_t elsewhere() const { return elsewhere_; }

 private:
  struct Way {
    Seconds next{-1e9};  // that it is traced on suspicion
    Seconds pause;
    int surveys = 0;  // questions of this survey about it
    bool is_confirmed = false;
    bool is_elsewhere = false;
    Seconds elsewhere_at;                 // when that was found
    std::vector<std::uint32_t> measured;  // links; empty: as in the matrix, or not known as a whole
  };
  struct RecentTrace {
    Seconds at;
    std::uint32_t way = 0;
    std::vector<TraceHop> hops;
  };
  struct RecentFlow {
    Seconds at;
    std::vector<std::uint32_t> links;
    std::uint32_t segments = 0;
    std::uint32_t again = 0;
  };
  struct Answers {
    std::uint64_t asked = 0;
    std::uint64_t answered = 0;
  };

  int routers_on(std::uint32_t way) const;
  std::size_t hops_back_alike(std::uint32_t way) const;
  struct Asked {
    Seconds at;
    std::uint32_t way = 0;
  };
  void begin_survey(Seconds now);
  void survey(Seconds now, std::vector<Question>& questions);
  void ask_again(Seconds now);
  void suspect(std::span<const std::uint32_t> lossy, Seconds now, std::vector<Question>& questions);
  void ask_for_flows(std::span<const std::uint32_t> lossy, Seconds now,
                     std::vector<Question>& questions);
  bool check_way(const Trace& trace, Seconds now);
  std::optional<Elsewhere> leads_elsewhere(const Trace& trace) const;
  std::optional<std::uint32_t> link_to(std::uint32_t router) const;
  std::vector<std::uint32_t> measure(const Trace& trace) const;
  void forget(Seconds now);
  std::optional<std::vector<std::uint32_t>> round_trip(NodeId server,
                                                       const fabric::FiveTuple& flow) const;
  void find_usual();
  bool crosses_broken(std::span<const std::uint32_t> links) const;

  const topo::Graph& graph_;
  const fabric::Routes& routes_;
  std::span<const std::uint32_t> seeds_;
  const Matrix& matrix_;  // its ways may be replaced by take_measured()
  std::vector<Way> ways_;
  std::vector<bool> is_lossy_;  // per way, at the last call of ask()
  bool has_broken_ = false;
  std::vector<bool> is_broken_;                       // per directed link
  std::vector<std::deque<std::uint32_t>> to_survey_;  // by server: ways
  std::deque<Asked> surveyed_;                        // not answered yet, oldest first
  std::deque<Asked> to_check_;                        // that lead elsewhere: when to ask again
  std::size_t phase_ = 0;                             // which servers are asked next
  Seconds surveyed_at_{-1e9};                         // when a survey began
  Seconds next_survey_{-1e9};                         // the next ways of it
  Seconds next_suspicion_{-1e9};
  Seconds next_flows_{-1e9};
  Seconds flows_pause_;
  std::vector<Answers> answers_;  // by node: of routers on ways that lost nothing
  std::deque<RecentTrace> traces_;
  std::deque<RecentFlow> flows_;
  double usually_again_;              // the share that half of all connections stay below
  std::vector<bool> is_flows_asked_;  // by node: an answer is awaited
  std::vector<Elsewhere> fresh_elsewhere_;
  bool is_hash_known_ = true;  // no way was found elsewhere: also connections go as is computed
  std::size_t elsewhere_ = 0;
};

}  // namespace regatta::probe
