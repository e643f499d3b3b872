#include "regatta/network/heal/command_switches.h"

#include <algorithm>
#include <array>
#include <csignal>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "regatta/base/core/units.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/process.h"

namespace regatta::heal {
namespace {

constexpr std::size_t kMostAtOnce = 64;
constexpr std::array<std::string_view, 4> kPlaces = {"{switch}", "{link}", "{neighbor}",
                                                     "{towards}"};

Status check_one(const std::string& command) {
  for (std::size_t i = 0; i < 2; ++i) {
    if (command.find(kPlaces[i]) != std::string::npos) continue;
    return Error{Code::kInvalidInput, fmt::format("command '{}': {} is missing, so it cannot tell "
                                                  "where to act; put it in",
                                                  command, kPlaces[i])};
  }
  for (auto open = command.find('{'); open != std::string::npos;
       open = command.find('{', open + 1)) {
    const std::string_view rest = std::string_view(command).substr(open);
    const bool is_known =
        std::ranges::any_of(kPlaces, [&](std::string_view one) { return rest.starts_with(one); });
    if (is_known) continue;
    return Error{Code::kInvalidInput,
                 fmt::format("command '{}': {} is not known; choose {{switch}}, {{link}}, "
                             "{{neighbor}} or {{towards}}",
                             command, rest.substr(0, rest.find('}') + 1))};
  }
  return {};
}

// A shell and what it started; some of that may stay when the shell ends at once.
void end_group(pid_t leader) {
  static_cast<void>(os::send_signal(-leader, SIGTERM).has_value());
  static_cast<void>(os::terminate(leader).has_value());
  static_cast<void>(os::send_signal(-leader, SIGKILL).has_value());
}

}  // namespace

Status check(const SwitchCommands& commands) {
  REGATTA_TRY_DO(check_one(commands.withdraw));
  return check_one(commands.give_back);
}

std::string CommandSwitches::fill(std::string command, const RouteChange& change,
                                  std::uint32_t hop) const {
  const std::array<std::string_view, 4> values = {
      graph_.nodes[change.node.index()].name, graph_.links[hop / 2].name,
      graph_.nodes[paths_.end_of[hop].index()].name, graph_.nodes[change.leaf.index()].name};
  for (std::size_t i = 0; i < kPlaces.size(); ++i)
    for (auto at = command.find(kPlaces[i]); at != std::string::npos;
         at = command.find(kPlaces[i], at + values[i].size()))
      command.replace(at, kPlaces[i].size(), values[i]);
  return command;
}

// All of them at the same time.
Status CommandSwitches::run(std::span<const std::string> commands) const {
  std::vector<std::pair<pid_t, std::string>> running;
  Status first;
  for (const std::string& command : commands) {
    const auto pid = os::spawn({"/bin/sh", "-c", command}, {.own_group = true});
    if (pid) running.emplace_back(*pid, command);
    if (!pid && first) first = pid.error();
  }
  const Seconds end = os::monotonic_now() + limit_;
  for (const auto& [pid, command] : running) {
    const auto state = os::wait_for(pid, end - os::monotonic_now());
    if (!state) end_group(pid);
    if (!first || (state && state->is_success())) continue;
    first =
        Error{Code::kUnavailable, fmt::format("command '{}': {}", command,
                                              state ? to_string(*state) : state.error().message)};
  }
  return first;
}

Status CommandSwitches::apply(std::span<const RouteChange> changes) {
  std::vector<std::string> commands;
  for (const RouteChange& change : changes) {
    for (const std::uint32_t hop : change.withdrawn)
      commands.push_back(fill(commands_.withdraw, change, hop));
    for (const std::uint32_t hop : change.returned)
      commands.push_back(fill(commands_.give_back, change, hop));
  }
  Status first;
  for (std::span<const std::string> left = commands; !left.empty();) {
    const auto now = left.first(std::min(left.size(), kMostAtOnce));
    const Status done = run(now);
    if (first && !done) first = done;
    left = left.subspan(now.size());
  }
  return first;
}

}  // namespace regatta::heal
