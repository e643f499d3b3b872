#include "regatta/platform/control/job_spec.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/platform/sched/state_file.h"

namespace regatta::control {
namespace {

constexpr std::size_t kArgumentsMax = 4096;
constexpr std::size_t kArgumentBytesMax = 128 << 10;  // one argument of execve(2)
constexpr int kFailuresMax = 1000;
constexpr NumberRange kPauses{.low = 0, .high = 86400};

void read_command(const YamlMap& map, JobSpec& spec) {
  spec.command = map.texts("command");
  if (spec.command.empty() || spec.command.front().empty())
    map.fail("command", "it is empty; write a list like [python3, train.py]");
  if (spec.command.size() > kArgumentsMax)
    map.fail("command", fmt::format("more than {} arguments; put them into a file", kArgumentsMax));
  for (const std::string& argument : spec.command) {
    if (argument.size() > kArgumentBytesMax || argument.find('\0') != std::string::npos)
      map.fail("command", fmt::format("an argument is longer than {} bytes or holds a byte 0; put "
                                      "it into a file",
                                      kArgumentBytesMax));
  }
}

bool is_variable_name(std::string_view name) {
  const auto is_letter = [](char letter) {
    return (letter >= 'a' && letter <= 'z') || (letter >= 'A' && letter <= 'Z') || letter == '_';
  };
  return !name.empty() && is_letter(name.front()) &&
         std::all_of(name.begin(), name.end(), [&](char letter) {
           return is_letter(letter) || (letter >= '0' && letter <= '9');
         });
}

void read_environment(const YamlMap& map, JobSpec& spec) {
  if (!map.has("environment")) return;
  const YamlMap environment = map.map("environment");
  for (const std::string& name : environment.keys()) {
    if (!is_variable_name(name))
      environment.fail(name, "no name of a variable; use letters, digits and _");
    std::string value = environment.text(name, "");
    if (value.size() > kArgumentBytesMax || value.find('\0') != std::string::npos)
      environment.fail(name,
                       fmt::format("longer than {} bytes or with a byte 0; put it into a file",
                                   kArgumentBytesMax));
    spec.environment.emplace_back(name, std::move(value));
  }
}

void read_restart(const YamlMap& map, JobSpec& spec) {
  if (!map.has("restart")) return;
  const YamlMap restart = map.map("restart");
  restart.allow({"rule", "failures", "pause", "pause_max"});
  RestartPolicy& policy = spec.restart;
  policy.rule = restart.choice("rule", sched::choices_of<RestartRule>(kRestartRuleNames),
                               std::optional(policy.rule));
  policy.failures_max = restart.integer_or("failures", policy.failures_max, {0, kFailuresMax});
  policy.first_pause = restart.seconds_or("pause", policy.first_pause, kPauses);
  policy.pause_max = restart.seconds_or("pause_max", policy.pause_max, kPauses);
}

void read_after(const YamlMap& map, JobSpec& spec) {
  if (!map.has("after")) return;
  std::set<JobId> seen;
  for (const std::string& text : map.texts("after")) {
    const auto id = parse_number<JobId>(text);
    if (!id || *id < 1)
      map.fail("after", fmt::format("'{}' is no number of a job; write a list like [17, 18]",
                                    printable(text, 40)));
    else if (seen.insert(*id).second)
      spec.after.push_back(*id);
  }
}

}  // namespace

Seconds pause_before_restart(const RestartPolicy& policy, int failures) {
  const double doublings = std::min(failures - 1, 40);
  return std::min(policy.pause_max, policy.first_pause * std::exp2(doublings));
}

JobSpec read_job_spec(const YamlMap& map) {
  static const std::vector<std::string> kKeys = {
      "command", "environment", "working_folder", "ranks", "restart", "after", "hold"};
  JobSpec spec;
  spec.request = sched::read_job_request(map, kKeys);
  read_command(map, spec);
  read_environment(map, spec);
  read_restart(map, spec);
  read_after(map, spec);
  spec.working_folder = map.text("working_folder", "");
  if (!spec.working_folder.empty() && spec.working_folder.front() != '/')
    map.fail("working_folder", "no absolute path; begin it with /");
  const Choices<bool> ranks = {{"replica", false}, {"device", true}};
  spec.is_rank_per_device = map.choice("ranks", ranks, std::optional(false));
  spec.is_held = map.boolean_or("hold", false);
  if (const Status status = check_job(spec.request); !status)
    map.fail(map.has("roles") ? "roles" : "name", status.error().message);
  return spec;
}

Result<JobSpec> parse_job_spec(std::string_view json, std::string_view name) {
  REGATTA_TRY(tree, parse_json(json, name));
  REGATTA_TRY(document, YamlDocument::read(std::move(tree), name));
  JobSpec spec = read_job_spec(document.root());
  REGATTA_TRY_DO(document.status());
  return spec;
}

int ranks_of_replica(const JobSpec& spec, int role) {
  return spec.is_rank_per_device ? std::max(1, at(spec.request.roles, role).devices) : 1;
}

}  // namespace regatta::control
