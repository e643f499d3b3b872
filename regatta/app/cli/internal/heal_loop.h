// cli/internal/heal_loop.h: the loop of a process that heals: it reads reports, has the healer act,
// and tells what it did.
#pragma once

#include <optional>
#include <string>

#include "regatta/app/cli/internal/heal_supervisor.h"
#include "regatta/base/core/result.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/heal/event_socket.h"
#include "regatta/network/heal/healer.h"

namespace regatta::cli {

// A fabric that is healed, and what is known of the process.
struct HealedFabric {
  const topo::Graph& graph;
  heal::Switches& switches;
  heal::Healer& healer;
  heal::EventSocket& event_socket;
  const std::string& socket;
  std::optional<Supervision>& supervision;
  bool is_dry_run = false;
  bool as_json = false;
  std::string lab{};  // name of the lab that it is; "": it is none
  int end_fd = -1;    // readable when that lab is gone
};

// The socket of reports: that of the watching process, if there is one. Fails when another healer
// has it. `graph` and `healer` must outlive what is returned.
Result<heal::EventSocket> open_event_socket(const std::string& socket, const topo::Graph& graph,
                                            const heal::Healer& healer,
                                            const std::optional<Supervision>& supervision);

// Prints and broadcasts events until a stop signal arrives. Fails when the lab is gone.
Status heal_until_stopped(const HealedFabric& fabric);

}  // namespace regatta::cli
