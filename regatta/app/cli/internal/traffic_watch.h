// cli/internal/traffic_watch.h: looks at the connections of servers at a steady pace, and at the
// ranks that own them. Acts.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "regatta/app/cli/internal/connection_ends.h"
#include "regatta/app/cli/internal/traffic_record.h"
#include "regatta/base/core/result.h"
#include "regatta/network/lab/lab.h"
#include "regatta/network/probe/flow_counters.h"

namespace regatta::cli {

class TrafficWatch {
 public:
  // Of all servers of the lab, or of this machine alone. Connections of a machine with itself are
  // left out.
  static Result<std::unique_ptr<TrafficWatch>> open(const std::optional<lab::LabInfo>& lab,
                                                    Seconds interval);
  TrafficWatch(const TrafficWatch&) = delete;
  TrafficWatch& operator=(const TrafficWatch&) = delete;
  ~TrafficWatch();

  // Looks for ranks and what they did since the last time: at least once a second, because a rank
  // remembers a thousand operations.
  void look_at_ranks();
  // What was seen so far.
  TrafficRecord record() const;
  // Ends it; fails when the kernel did not answer any more.
  Status stop();

 private:
  struct Seen;
  struct Place {
    std::string server;
    unsigned long long namespace_inode = 0;
    probe::FlowCounters counters;
    std::vector<Seen*> told = {};  // as the counters told them last
  };
  struct Seen {
    Seconds first;
    probe::ConnectionCounters last;
    std::uint64_t retransmits_before = 0;
    std::size_t place = 0;
    std::vector<double> sent;
    std::vector<double> received;
  };
  explicit TrafficWatch(Seconds interval);
  void run();
  Status sample(std::size_t place);
  void take(std::size_t place, const probe::ConnectionCounters& one, Seen*& told);
  void add(std::vector<double>& series, double bytes, Seconds from, Seconds to) const;
  const Seen* other_end(const Seen& seen) const;
  int rank_of(const Seen* seen) const;
  std::map<probe::Connection, std::uint32_t> listeners() const;
  const std::vector<double>& sent_by(const Seen& seen) const;
  std::string server_of(const probe::Connection& connection) const;

  const Seconds start_;
  const Seconds interval_;
  std::vector<Place> places_;                     // of the sampling thread, once it runs
  std::map<std::string, std::string> addresses_;  // "10.0.0.1": server
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::map<std::pair<std::size_t, std::uint64_t>, Seen> seen_;  // by place and cookie
  ConnectionEnds<Seen> ends_;                                   // of seen_
  std::vector<WatchedRank> ranks_;
  std::map<std::uint64_t, int> owners_;  // of sockets, by inode
  bool has_to_stop_ = false;
  Seconds used_;  // processor time
  Status status_;
  std::thread thread_;
};

}  // namespace regatta::cli
