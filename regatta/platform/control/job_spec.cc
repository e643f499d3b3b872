#include "regatta/platform/control/job_spec.h"

#include <algorithm>
#include <cmath>
#include <csignal>
#include <cstddef>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/platform/sched/state_file.h"
#include "regatta/platform/trainer/training_request.h"

namespace regatta::control {
namespace {

constexpr std::size_t kArgumentsMax = 4096;
constexpr std::size_t kArgumentBytesMax = 128 << 10;  // one argument of execve(2)
constexpr int kFailuresMax = 1000;
constexpr NumberRange kPauses{.low = 0, .high = 86400};
constexpr std::size_t kMountsMax = 64;
constexpr std::string_view kSlicePrefix = "regatta.gpu/slice=";  // of sharing/cdi.h
constexpr NumberRange kGraces{.low = 0, .high = 3600};

// A rank of a training is a device of its replica, and the trainer computes on CPUs.
void read_training(const YamlMap& map, const YamlNode& tree, JobSpec& spec) {
  for (const char* key : {"command", "ranks"})
    if (map.has(key)) map.fail(key, "a training job has its own; leave it out");
  const YamlNode* training = tree.find("train");
  if (training == nullptr) return;
  spec.training = json_text(*training);
  if (spec.training.size() > kArgumentBytesMax / 2)
    map.fail("train", fmt::format("longer than {} bytes; shorten it", kArgumentBytesMax / 2));
  else if (const auto job = trainer::parse_training(spec.training); !job)
    map.fail("train", job.error().message, job.error().code);
  spec.is_rank_per_device = true;
  if (spec.request.device_types.empty()) spec.request.device_types = {"cpu", "emulated"};
}

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

// "": the map does not have the key.
std::string absolute_path(const YamlMap& map, const char* key) {
  std::string path = map.text(key, "");
  if (!path.empty() && path.front() != '/') map.fail(key, "no absolute path; begin it with /");
  return path;
}

void read_container(const YamlMap& map, JobSpec& spec) {
  spec.container.path = absolute_path(map, "image");
  spec.container.is_read_only = map.boolean_or("image_read_only", false);
  if (map.has("mounts")) spec.container.mounts = map.texts("mounts");
  if (map.has("cdi")) spec.container.cdi_devices = map.texts("cdi");
  if (spec.container.path.empty()) {
    for (const char* key : {"image_read_only", "mounts", "cdi"})
      if (map.has(key)) map.fail(key, "it is for jobs with an image; name one, or leave it out");
    return;
  }
  if (map.has("train")) map.fail("image", "a training job runs without one; leave it out");
  if (spec.container.mounts.size() > kMountsMax)
    map.fail("mounts", fmt::format("more than {}; mount a folder above them", kMountsMax));
  for (const std::string& path : spec.container.mounts)
    if (!path.starts_with('/') || path == "/" || path.find('\0') != std::string::npos)
      map.fail("mounts", "no absolute path below /; begin it with /");
  for (const std::string& device : spec.container.cdi_devices)
    if (!device.starts_with(kSlicePrefix))
      map.fail("cdi", fmt::format("'{}' is no {}NAME; the platform adds the devices of the gang",
                                  printable(device, 60), kSlicePrefix));
}

void read_array(const YamlMap& map, JobSpec& spec) {
  if (!map.has("array")) return;
  auto array = parse_job_array(map.text("array"));
  if (array)
    spec.array = *std::move(array);
  else
    map.fail("array", array.error().message);
}

void read_stop(const YamlMap& map, JobSpec& spec) {
  static const Choices<int> kSignals = {
      {"TERM", SIGTERM}, {"INT", SIGINT}, {"HUP", SIGHUP}, {"USR1", SIGUSR1}, {"USR2", SIGUSR2}};
  if (!map.has("stop")) return;
  const YamlMap stop = map.map("stop");
  stop.allow({"signal", "grace"});
  spec.stop_signal = stop.choice("signal", kSignals, std::optional(spec.stop_signal));
  if (stop.has("grace")) spec.stop_grace = stop.seconds_or("grace", Seconds{10}, kGraces);
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

JobSpec read_job_spec(const YamlMap& map, const YamlNode& tree) {
  static const std::vector<std::string> kKeys = {
      "command",         "train",          "image",
      "image_read_only", "mounts",         "cdi",
      "environment",     "working_folder", "checkpoint_folder",
      "ranks",           "restart",        "stop",
      "array",           "after",          "hold"};
  JobSpec spec;
  spec.request = sched::read_job_request(map, kKeys);
  if (!map.has("train")) read_command(map, spec);
  read_environment(map, spec);
  read_restart(map, spec);
  read_after(map, spec);
  read_stop(map, spec);
  read_array(map, spec);
  read_container(map, spec);
  spec.working_folder = absolute_path(map, "working_folder");
  spec.checkpoint_folder = absolute_path(map, "checkpoint_folder");
  const Choices<bool> ranks = {{"replica", false}, {"device", true}};
  spec.is_rank_per_device = map.choice("ranks", ranks, std::optional(false));
  if (map.has("train")) read_training(map, tree, spec);
  spec.is_held = map.boolean_or("hold", false);
  if (const Status status = check_job(spec.request); !status)
    map.fail(map.has("roles") ? "roles" : "name", status.error().message);
  return spec;
}

Result<JobSpec> parse_job_spec(std::string_view json, std::string_view name) {
  REGATTA_TRY(tree, parse_json(json, name));
  REGATTA_TRY(document, YamlDocument::read(tree, name));
  JobSpec spec = read_job_spec(document.root(), tree);
  REGATTA_TRY_DO(document.status());
  return spec;
}

int ranks_of_replica(const JobSpec& spec, int role) {
  return spec.is_rank_per_device ? std::max(1, at(spec.request.roles, role).devices) : 1;
}

}  // namespace regatta::control
