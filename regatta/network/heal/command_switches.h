// heal/command_switches.h: switches that are reached by a command of their owner, for FRR:
//   vtysh -c 'configure' -c 'route-map to-{towards} deny {number}' ...
// run once for each next hop that a switch loses or gets back.
#pragma once

#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/base/os/process.h"
#include "regatta/model/topo/graph.h"
#include "regatta/network/heal/internal/decide.h"
#include "regatta/network/heal/internal/switches.h"

namespace regatta::heal {

// Run by /bin/sh. {switch}, {link}, {neighbor} (the switch at the other end of the link) and
// {towards} (the destination leaf) are replaced. Names of switches and of the links between them
// are those of topo::Graph: letters, digits and '-', no shell metacharacters.
struct SwitchCommands {
  std::string withdraw;
  std::string give_back;
};

// kInvalidInput when a command lacks {switch} or {link}, or has something else in braces.
Status check(const SwitchCommands& commands);

// Does not know the installed routes: at the start it assumes that they are as designed. Hash
// ranges, and thus moving flows, are left to the switches, and so are carriers: their routing
// protocol sees them.
class CommandSwitches final : public Switches {
 public:
  // `limit`: how long a command may take; then it is killed with all processes that it started.
  CommandSwitches(const topo::Graph& graph, const FabricPaths& paths, SwitchCommands commands,
                  Seconds limit = Seconds{10.0})
      : graph_(graph), paths_(paths), commands_(std::move(commands)), limit_(limit) {}

  Result<std::vector<Installed>> installed() override { return std::vector<Installed>(); }
  // Runs up to 64 commands at the same time; tries all. A change fails when one of its commands
  // does, with its name; the healer then runs all commands of that change again.
  std::vector<Status> apply(std::span<const RouteChange> changes) override;
  Result<std::vector<CarrierChange>> carriers() override { return std::vector<CarrierChange>(); }
  int fd() const override { return -1; }

 private:
  std::vector<Status> run(std::span<const std::string> commands) const;
  Result<os::ExitState> wait_for(pid_t command, Seconds end) const;
  std::string fill(std::string command, const RouteChange& change, std::uint32_t hop) const;

  const topo::Graph& graph_;
  const FabricPaths& paths_;
  SwitchCommands commands_;
  Seconds limit_;
};

}  // namespace regatta::heal
