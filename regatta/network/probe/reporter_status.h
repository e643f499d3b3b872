// probe/reporter_status.h: which servers report, and which have fallen silent. Pure.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/units.h"

namespace regatta::probe {

struct ReporterChange {
  NodeId server;
  bool is_silent = false;  // else it is heard
  Seconds silence;         // how long it was not; 0: it is heard for the first time
};

class ReporterStatus {
 public:
  // Who is not heard for `patience` is silent; who never was is missing.
  ReporterStatus(std::size_t servers, Seconds patience) : patience_(patience), states_(servers) {}

  void heard(NodeId server, Seconds now);
  // What has changed since the last look. A look that comes later than the patience after the one
  // before counts the time between as its own, not as anybody's silence.
  std::vector<ReporterChange> look(Seconds now);

  std::size_t servers() const { return states_.size(); }
  std::size_t reporting() const { return reporting_; }
  // Not heard yet, or silent.
  std::vector<NodeId> missing() const;

 private:
  struct State {
    bool is_known = false;
    bool is_silent = false;
    Seconds heard_at;
    Seconds silence;        // before it was heard
    bool has_news = false;  // of being heard
  };

  Seconds patience_;
  std::vector<State> states_;
  std::size_t reporting_ = 0;
  std::optional<Seconds> looked_;
};

}  // namespace regatta::probe
