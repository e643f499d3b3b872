#include "regatta/heal/command_switches.h"

#include <algorithm>
#include <array>
#include <string_view>
#include <utility>

#include <fmt/core.h>

#include "regatta/core/units.h"
#include "regatta/os/process.h"

namespace regatta::heal {
namespace {

constexpr Seconds kLimit{10.0};
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

}  // namespace

Status check(const SwitchCommands& commands) {
  REGATTA_TRY_DO(check_one(commands.withdraw));
  return check_one(commands.give_back);
}

std::string CommandSwitches::fill(std::string command, const RouteChange& change,
                                  std::uint32_t hop) const {
  const std::array<std::string_view, 4> values = {
      graph_.nodes[change.node.index()].name, graph_.links[hop / 2].name,
      graph_.nodes[ways_.end_of[hop].index()].name, graph_.nodes[change.leaf.index()].name};
  for (std::size_t i = 0; i < kPlaces.size(); ++i)
    for (auto at = command.find(kPlaces[i]); at != std::string::npos;
         at = command.find(kPlaces[i], at + values[i].size()))
      command.replace(at, kPlaces[i].size(), values[i]);
  return command;
}

Status CommandSwitches::apply(std::span<const RouteChange> changes) {
  std::vector<std::pair<pid_t, std::string>> running;
  Status first;
  const auto start = [&](const std::string& command) {
    const auto pid = os::spawn({"/bin/sh", "-c", command}, {});
    if (pid) running.emplace_back(*pid, command);
    if (!pid && first) first = pid.error();
  };
  for (const RouteChange& change : changes) {
    for (const std::uint32_t hop : change.withdrawn)
      start(fill(commands_.withdraw, change, hop));
    for (const std::uint32_t hop : change.returned)
      start(fill(commands_.give_back, change, hop));
  }
  for (const auto& [pid, command] : running) {
    const auto state = os::wait_for(pid, kLimit);
    if (!state) static_cast<void>(os::terminate(pid).has_value());
    if (!first || (state && state->is_success())) continue;
    first =
        Error{Code::kUnavailable, fmt::format("command '{}': {}", command,
                                              state ? to_string(*state) : state.error().message)};
  }
  return first;
}

}  // namespace regatta::heal
