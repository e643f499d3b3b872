// cli/internal/traffic_recorder.h: looks at the connections of servers at a steady pace, and at the
// ranks that own them. Acts.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "regatta/app/cli/internal/connection_pairs.h"
#include "regatta/base/core/mutex.h"
#include "regatta/base/core/result.h"
#include "regatta/network/diag/traffic_analysis.h"
#include "regatta/network/lab/lab.h"
#include "regatta/network/probe/flow_counters.h"

namespace regatta::cli {

class TrafficRecorder {
 public:
  // Records all servers of the lab, or this machine alone. Connections of a machine with itself are
  // left out.
  static Result<std::unique_ptr<TrafficRecorder>> open(const std::optional<lab::LabInfo>& lab,
                                                       Seconds interval);
  TrafficRecorder(const TrafficRecorder&) = delete;
  TrafficRecorder& operator=(const TrafficRecorder&) = delete;
  ~TrafficRecorder();

  // Looks for ranks and what they did since the last time: at least once a second, because a rank
  // remembers a thousand operations.
  void sample_ranks();
  // The record so far.
  diag::TrafficRecord record() const;
  // Ends it; fails when the kernel did not answer any more.
  Status stop();

 private:
  struct ObservedConnection;
  struct ObservedServer {
    std::string server;
    unsigned long long namespace_inode = 0;
    probe::FlowCounters counters;
    std::vector<ObservedConnection*> told = {};  // in the order of the last sample
  };
  struct ObservedConnection {
    Seconds first;
    probe::ConnectionCounters last;
    std::uint64_t retransmits_before = 0;
    std::size_t place = 0;
    std::vector<double> sent;
    std::vector<double> received;
  };
  explicit TrafficRecorder(Seconds interval);
  void run();
  Status sample(std::size_t place);
  void add_counters(std::size_t place, const probe::ConnectionCounters& one,
                    ObservedConnection*& told) REGATTA_REQUIRES(mutex_);
  void add(std::vector<double>& series, double bytes, Seconds from, Seconds to) const;
  const ObservedConnection* paired_end(const ObservedConnection& seen) const
      REGATTA_REQUIRES(mutex_);
  int rank_of(const ObservedConnection* seen) const REGATTA_REQUIRES(mutex_);
  std::map<probe::Connection, std::uint32_t> listeners() const REGATTA_REQUIRES(mutex_);
  const std::vector<double>& sent_by(const ObservedConnection& seen) const REGATTA_REQUIRES(mutex_);
  std::string server_of(const probe::Connection& connection) const;

  const Seconds start_;
  const Seconds interval_;
  std::vector<ObservedServer> places_;            // of the sampling thread, once it runs
  std::map<std::string, std::string> addresses_;  // "10.0.0.1": server
  mutable Mutex mutex_;
  std::map<std::pair<std::size_t, std::uint64_t>, ObservedConnection> seen_
      REGATTA_GUARDED_BY(mutex_);                                        // by place and cookie
  ConnectionPairs<ObservedConnection> ends_ REGATTA_GUARDED_BY(mutex_);  // of seen_
  std::vector<diag::WatchedRank> ranks_ REGATTA_GUARDED_BY(mutex_);
  std::map<std::uint64_t, int> owners_ REGATTA_GUARDED_BY(mutex_);  // of sockets, by inode
  bool has_to_stop_ REGATTA_GUARDED_BY(mutex_) = false;
  Seconds used_ REGATTA_GUARDED_BY(mutex_);  // processor time
  Status status_ REGATTA_GUARDED_BY(mutex_);
  std::thread thread_;
};

}  // namespace regatta::cli
