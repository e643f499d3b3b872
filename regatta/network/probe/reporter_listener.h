// probe/reporter_listener.h: the socket to which the probers of all servers report: it accepts
// probers of the same plan, and bounds the memory that senders can use.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/network/probe/handshake.h"

namespace regatta::probe {

// A sender that was refused or disconnected.
struct RefusedReporter {
  std::string from;  // "10.0.0.3:41234"
  std::string why;
};

class ReporterListener {
 public:
  // `at`: "unix:PATH", "ADDRESS:PORT" or "PORT". `longest[i]`: the longest line of server i in
  // bytes.
  static Result<ReporterListener> open(const std::string& at, ExpectedReporters expected,
                                       std::vector<std::size_t> longest);
  ~ReporterListener();
  ReporterListener(ReporterListener&&) noexcept;
  ReporterListener& operator=(ReporterListener&&) noexcept;

  // Passes each line that arrives within `limit` to `handle`, whose error disconnects its prober.
  // Returns at once after a signal.
  using LineHandler = std::function<Status(NodeId, std::string_view)>;
  Status wait(Seconds limit, const LineHandler& handle);

  // Sends a line, with its end, to the prober of this server. Never waits: false if no prober
  // reports for the server, or if it does not read.
  bool send(NodeId server, std::string_view line);

  // Servers whose probers were accepted since the last call.
  std::vector<NodeId> consume_arrivals();
  // Refusals since the last call, the first 16.
  std::vector<RefusedReporter> consume_refusals();
  // Address of the socket: "10.0.0.1:27899", "unix:/run/...".
  const std::string& address() const;

 private:
  struct Impl;
  explicit ReporterListener(std::unique_ptr<Impl> impl);
  std::unique_ptr<Impl> impl_;
};

// Which servers report, and which have fallen silent. Pure.

struct ReporterChange {
  NodeId server;
  bool is_silent = false;  // else it is heard
  Seconds silence;         // time without a report; 0: it is heard for the first time
};

class ReporterStatus {
 public:
  // A server not heard for `patience` is silent; one never heard is missing.
  ReporterStatus(std::size_t servers, Seconds patience) : patience_(patience), states_(servers) {}

  void add_report(NodeId server, Seconds now);
  // Changes since the last update. When an update comes later than the patience after the one
  // before, the time between does not count as silence of the servers.
  std::vector<ReporterChange> update(Seconds now);

  std::size_t servers() const { return states_.size(); }
  std::size_t reporting() const { return reporting_; }
  // Servers not heard yet, or silent.
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
  std::optional<Seconds> updated_;
};

}  // namespace regatta::probe
