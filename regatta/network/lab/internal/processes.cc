#include "regatta/network/lab/internal/processes.h"

#include <csignal>
#include <map>
#include <set>

#include <fmt/core.h>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/process.h"

namespace regatta::lab {
namespace {

constexpr Seconds kPoll{0.01};
constexpr Seconds kKillLimit{5};

}  // namespace

std::vector<LabProcess> find_processes(const LabState& state, const std::string& node) {
  std::map<unsigned long long, const NodeState*> by_inode;
  for (const NodeState& entry : state.nodes) {
    if (node.empty() || entry.name == node) by_inode[entry.inode] = &entry;
  }
  std::vector<LabProcess> found;
  if (by_inode.empty()) return found;
  const bool is_sure = holder_is_alive(state);
  for (const os::ProcessEntry& process : os::list_processes()) {
    if (process.state == 'Z' || process.pid == state.info.holder) continue;
    const auto inode = os::network_namespace_of(process.pid);
    const auto entry = inode ? by_inode.find(*inode) : by_inode.end();
    if (entry == by_inode.end()) continue;
    if (!is_sure) {
      const auto cookie = os::network_namespace_cookie_of(process.pid);
      if (!cookie || *cookie != entry->second->cookie) continue;
    }
    found.push_back({process.pid, entry->second->name, process.command, process.state == 'T'});
  }
  return found;
}

int signal_processes(const LabState& state, const std::string& node, int signal) {
  constexpr int kRounds = 20;
  std::set<pid_t> done;
  for (int round = 0; round < kRounds; ++round) {
    bool is_new = false;
    for (const LabProcess& process : find_processes(state, node)) {
      if (!done.insert(process.pid).second) continue;
      is_new = true;
      ::kill(process.pid, signal);
    }
    if (!is_new) break;
  }
  return static_cast<int>(done.size());
}

Status end_processes(const LabState& state, Seconds patience) {
  if (signal_processes(state, "", SIGTERM) == 0) return {};
  signal_processes(state, "", SIGCONT);  // a stopped process would keep the SIGTERM waiting
  const Seconds kill_time = os::monotonic_now() + patience;
  const Seconds end = kill_time + kKillLimit;
  for (;;) {
    const auto left = find_processes(state);
    if (left.empty()) return {};
    const Seconds now = os::monotonic_now();
    if (now > end) {
      return Error{Code::kTimeout,
                   fmt::format("lab {}: process {} ({}) does not end", state.info.name,
                               left.front().pid, left.front().command)};
    }
    if (now > kill_time) signal_processes(state, "", SIGKILL);
    os::sleep_for(kPoll);
  }
}

}  // namespace regatta::lab
