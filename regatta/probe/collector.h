// probe/collector.h: gathers what the probers of all servers tell, and has the locator look at it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/core/result.h"
#include "regatta/core/units.h"
#include "regatta/diag/locator.h"
#include "regatta/os/unique_fd.h"
#include "regatta/probe/matrix.h"
#include "regatta/probe/report_text.h"
#include "regatta/topo/graph.h"

namespace regatta::probe {

// All probes from one server to another, since the beginning.
struct PairSum {
  std::uint64_t sent = 0;
  std::uint64_t lost = 0;
  std::uint64_t answers = 0;  // that the latencies are of
  double total_us = 0;
  double least_us = 0;
  double most_us = 0;
};

// Nothing counts until every server has told something, and a moment longer: whoever starts first
// finds nobody who answers.
class Collector {
 public:
  // Graph and matrix must outlive this.
  Collector(const topo::Graph& graph, const Matrix& matrix, Seconds period);

  // Of the next server, in the order of the graph: where its prober writes.
  void add(os::UniqueFd from_prober);
  std::size_t servers() const { return servers_.size(); }

  // Reads for up to `limit`, then looks. kInvalidInput for what no prober writes.
  Result<diag::News> gather(Seconds limit);
  void add(const diag::CarrierEvent& event) { locator_.add(event); }

  // Servers that have told nothing yet; those whose prober has ended.
  std::vector<NodeId> not_begun() const;
  std::vector<NodeId> ended() const;

  const PairSum& pair(std::size_t from, std::size_t to) const { return pairs_[from * count_ + to]; }

 private:
  struct Server {
    ServerPart part;
    os::UniqueFd fd;
    std::string rest;  // of a line that is not complete
    bool has_begun = false;
    bool has_ended = false;
  };
  struct Counted {  // of a window that may be told again
    diag::Window window = -1;
    std::uint16_t sent = 0;
    std::uint16_t answered = 0;
  };

  Status read(Server& server);
  Status take(Server& server, std::string_view line);
  void count(const diag::Report& report);

  const topo::Graph& graph_;
  const Matrix& matrix_;
  int periods_ = 3;
  std::size_t count_ = 0;  // servers of the graph
  std::vector<Server> servers_;
  diag::Locator locator_;
  diag::Window counts_from_ = -1;
  std::vector<PairSum> pairs_;
  std::vector<std::vector<Counted>> counted_;  // per probe, by window
};

}  // namespace regatta::probe
