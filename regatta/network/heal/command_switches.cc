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
  constexpr Seconds kGrace{0.3};
  static_cast<void>(os::send_signal(-leader, SIGTERM).has_value());
  static_cast<void>(os::terminate(leader, kGrace).has_value());
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

// kTimeout when it runs at the time `end`.
Result<os::ExitState> CommandSwitches::wait_for(pid_t command, Seconds end) const {
  constexpr Seconds kAtOnce{0.5};
  for (;;) {
    waits();
    const Seconds left = end - os::monotonic_now();
    auto state = os::wait_for(command, std::min(left, kAtOnce));
    if (state || state.error().code != Code::kTimeout || left <= kAtOnce) return state;
  }
}

// All of them at the same time.
std::vector<Status> CommandSwitches::run(std::span<const std::string> commands) const {
  std::vector<Result<pid_t>> running;
  running.reserve(commands.size());
  for (const std::string& command : commands)
    running.push_back(os::spawn({"/bin/sh", "-c", command}, {.own_group = true}));
  std::vector<Status> ended;
  const Seconds end = os::monotonic_now() + limit_;
  for (std::size_t i = 0; i < running.size(); ++i) {
    const Result<pid_t>& pid = running[i];
    if (!pid) {
      ended.emplace_back(pid.error());
      continue;
    }
    const auto state = wait_for(*pid, end);
    if (!state) {
      waits();
      end_group(*pid);
    }
    if (state && state->is_success()) {
      ended.emplace_back();
    } else {
      ended.emplace_back(Error{Code::kUnavailable,
                               fmt::format("command '{}': {}", commands[i],
                                           state ? to_string(*state) : state.error().message)});
    }
  }
  return ended;
}

std::vector<Status> CommandSwitches::apply(std::span<const RouteChange> changes) {
  std::vector<std::string> commands;
  std::vector<std::size_t> change_of;
  const auto add = [&](std::string command, std::size_t change) {
    commands.push_back(std::move(command));
    change_of.push_back(change);
  };
  for (std::size_t i = 0; i < changes.size(); ++i) {
    for (const std::uint32_t hop : changes[i].withdrawn)
      add(fill(commands_.withdraw, changes[i], hop), i);
    for (const std::uint32_t hop : changes[i].returned)
      add(fill(commands_.give_back, changes[i], hop), i);
  }
  std::vector<Status> made(changes.size());
  for (std::size_t begin = 0; begin < commands.size(); begin += kMostAtOnce) {
    const auto left = std::span<const std::string>(commands).subspan(begin);
    const std::vector<Status> ended = run(left.first(std::min(left.size(), kMostAtOnce)));
    for (std::size_t i = 0; i < ended.size(); ++i) {
      Status& change = made[change_of[begin + i]];
      if (change && !ended[i]) change = ended[i];
    }
  }
  return made;
}

}  // namespace regatta::heal
