// heal/internal/pending_news.h: faults of which subscribers are to hear as soon as switches have
// made the changes of routes that they cause. Pure.
#pragma once

#include <span>
#include <string>
#include <vector>

#include "regatta/base/core/units.h"
#include "regatta/network/heal/internal/decide.h"
#include "regatta/network/heal/internal/tables.h"

namespace regatta::heal {

struct EventReason {
  Fault fault;
  std::string why;
  Seconds clean;  // time for which it has to be clean before it is used again
};

// Changes that switches were told to make.
struct AppliedChanges {
  std::vector<RouteChange> done;
  std::vector<RouteChange> undone;  // to be tried again
};

class PendingNews {
 public:
  // `paths` must outlive this.
  explicit PendingNews(const FabricPaths& paths) : paths_(paths) {}

  // A fault is held from now on, or does more harm than was known; `is_known`: it was held before.
  // No news where its return was not told yet.
  void add_broken(const EventReason& reason, bool is_known);
  // It is no longer held. No news where it was not told yet that it was.
  void add_working(const EventReason& reason);

  struct Due {
    std::vector<EventReason> broken;
    std::vector<EventReason> working;
  };
  // Those to be told now: faults whose changes are made, at one switch or more, or which need none.
  // Those of which a change is still to be made are told again when it is.
  Due take(const AppliedChanges& changes);

 private:
  struct News {
    EventReason reason;
    bool is_known = false;  // subscribers have heard that it is broken, or of a part of its return
  };
  std::vector<EventReason> take(std::vector<News>& news, const AppliedChanges& changes) const;

  const FabricPaths& paths_;
  std::vector<News> broken_;
  std::vector<News> working_;
};

}  // namespace regatta::heal
