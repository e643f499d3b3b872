// diag/internal/probe_windows.h: the reports of all servers on the last 64 windows: the counts of
// each probe, the state of each server, and whether a loss counts. Pure.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "regatta/model/topo/graph.h"
#include "regatta/network/diag/internal/locator_options.h"
#include "regatta/network/diag/observation.h"
#include "regatta/network/fabric/traffic.h"

namespace regatta::diag {

class ProbeWindows {
 public:
  static constexpr std::size_t kSlots = 64;
  static constexpr std::uint16_t kUnknown = 0xffff;

  // The counts of a probe in a window, as far as its ends have reported them.
  struct Cell {
    std::uint16_t sent = kUnknown;
    std::uint16_t answered = 0;
    std::uint16_t arrived = kUnknown;

    bool is_lossy() const { return sent != kUnknown && answered < sent; }
  };

  // `paths`: as in Locator; they are read in the constructor only.
  ProbeWindows(const topo::Graph& graph, const fabric::Paths& paths, const LocatorOptions& options);

  // Ignores windows that are older than the memory, or equally far in the future.
  void add(const ProbeReport& report);
  // Makes room for all windows up to `window`.
  void advance(Window window);

  bool is_empty() const { return newest_ < 0; }
  bool has_losses() const;
  bool is_in_memory(Window window) const { return window > newest_ - Window{kSlots}; }
  bool is_too_new(Window window) const { return window > newest_ + Window{kSlots}; }
  Window first() const { return first_; }  // of any server
  Window newest() const { return newest_; }
  // The last window that the server has reported; -1 for none.
  Window newest_of(NodeId server) const { return hosts_[server.index()].newest; }
  // The first window that counts when `last` is the last.
  Window first_counted(Window last) const { return std::max(first_, last - options_.memory + 1); }

  std::uint32_t probes() const { return static_cast<std::uint32_t>(from_.size()); }
  NodeId sender(std::uint32_t probe) const { return from_[probe]; }
  NodeId receiver(std::uint32_t probe) const { return to_[probe]; }
  const Cell& cell(std::uint32_t probe, Window window) const {
    return cells_[slot(window) * from_.size() + probe];
  }
  // Whether the losses of this probe in this window show the state of the network by now. Adds the
  // ends that were too busy to `noisy`.
  bool is_usable(std::uint32_t probe, Window window, Seconds now, std::vector<NodeId>& noisy) const;
  // Whether both ends were awake in this window, as far as they have reported: what is missing then
  // was hardly late.
  bool is_awake(std::uint32_t probe, Window window) const;

 private:
  struct Host {
    Window newest = -1;
    std::array<Window, kSlots> window;  // per slot: the window of its state
    std::array<HostState, kSlots> state;
  };

  static std::size_t slot(Window window) { return static_cast<std::size_t>(window) % kSlots; }
  const HostState* state_of(NodeId server, Window window) const;

  LocatorOptions options_;
  std::vector<NodeId> from_;  // per probe: server
  std::vector<NodeId> to_;
  std::vector<Cell> cells_;          // slot * probes + probe
  std::array<int, kSlots> lossy_{};  // cells with losses
  std::vector<Host> hosts_;          // per node
  Window first_ = 0;
  Window newest_ = -1;
};

}  // namespace regatta::diag
