// cli/heal_reports.h: tells a healer what a locator finds, again and again while it lasts.
#pragma once

#include <string>
#include <vector>

#include "regatta/core/result.h"
#include "regatta/core/units.h"
#include "regatta/diag/locator.h"
#include "regatta/os/unique_fd.h"
#include "regatta/topo/graph.h"

namespace regatta::cli {

class HealReports {
 public:
  // `path`: the socket of `regatta heal`. kInvalidInput where none listens there. `graph` outlives
  // it.
  static Result<HealReports> open(const std::string& path, const topo::Graph& graph);

  // What has begun is told at once, what goes on every second (a healer takes it that nobody sees a
  // fault any more who does not say so). Fails with kUnavailable once the healer is gone.
  Status tell(const diag::News& news, Seconds now);

 private:
  HealReports(os::UniqueFd fd, const topo::Graph& graph) : fd_(std::move(fd)), graph_(&graph) {}
  Status send(const std::string& lines);
  void read_and_forget();

  os::UniqueFd fd_;
  const topo::Graph* graph_;
  std::vector<diag::Verdict> lasting_;
  Seconds told_;
};

}  // namespace regatta::cli
