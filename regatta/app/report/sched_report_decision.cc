#include <algorithm>
#include <cstddef>
#include <map>
#include <string_view>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/app/report/sched_report.h"
#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"

namespace regatta::report {
namespace {

constexpr std::size_t kWaitingShown = 20;  // jobs of one cause that a text lists

constexpr EnumNames<6> kActionNames = {"start", "evict", "shrink", "grow", "replace", "move"};
constexpr EnumNames<6> kCauseNames = {"quota",  "no_room",  "reservation",
                                      "spares", "degraded", "never_fits"};
constexpr EnumNames<6> kCauseTexts = {
    "at a limit of the quota",
    "no room",
    "would delay a job that goes before it",
    "would fit on nodes that are kept as spares for large gangs",
    "lost nodes or devices, places are kept until these return",
    "not even the empty cluster has the devices, CPUs, memory, NICs and domains that it asks for"};

// The request of a job of the state, by its name.
const sched::JobRequest* find_request(const sched::ClusterSnapshot& snapshot,
                                      const sched::JobQueue& queue, std::string_view name) {
  for (const sched::RunningJob& job : snapshot.running)
    if (job.request.name == name) return &job.request;
  for (const sched::PendingJob& job : queue.jobs)
    if (job.request.name == name) return &job.request;
  return nullptr;
}

nlohmann::json replicas_json(const sched::ClusterSnapshot& snapshot,
                             const sched::JobRequest& request,
                             const std::vector<sched::ReplicaPlacement>& replicas) {
  nlohmann::json list = nlohmann::json::array();
  for (const sched::ReplicaPlacement& replica : replicas) {
    nlohmann::json devices = nlohmann::json::array();
    for (unsigned device = 0; device < sched::kNodeDevicesMax; ++device)
      if ((replica.devices >> device & 1U) != 0) devices.push_back(device);
    list.push_back({{"role", at(request.roles, replica.role).name},
                    {"node", at(snapshot.nodes, replica.node).name},
                    {"devices", std::move(devices)}});
  }
  return list;
}

// The device, why, and the commands of `regatta gpu` that carry the mix out.
std::string mix_text(const sched::ClusterSnapshot& snapshot, const sched::MixAction& mix) {
  std::string text = fmt::format("  mix     device {} of node {}: {}\n", mix.mix.device,
                                 at(snapshot.nodes, mix.mix.node).name, mix.reason);
  text += fmt::format("          regatta gpu daemon {}\n", join(mix.daemon_flags, " "));
  for (const sched::MixAction::Setting& setting : mix.settings) {
    text += fmt::format("          regatta gpu run {}  # {:.0f} % of its work in time",
                        join(setting.run_flags, " "), 100 * setting.expected_share);
    for (const auto& [from, until] : setting.runs)
      text += fmt::format(", from {:.2f} h to {:.2f} h", from.value / 3600, until.value / 3600);
    text += "\n";
  }
  return text;
}

nlohmann::json mix_json(const sched::ClusterSnapshot& snapshot, const sched::MixAction& mix) {
  nlohmann::json settings = nlohmann::json::array();
  for (const sched::MixAction::Setting& setting : mix.settings) {
    settings.push_back({{"job", setting.job},
                        {"run_flags", setting.run_flags},
                        {"expected_share", setting.expected_share}});
    for (const auto& [from, until] : setting.runs)
      settings.back()["runs_s"].push_back({from.value, until.value});
  }
  return {{"node", at(snapshot.nodes, mix.mix.node).name},
          {"device", mix.mix.device},
          {"mode", name_of(mix.mix.mode)},
          {"daemon_flags", mix.daemon_flags},
          {"settings", std::move(settings)},
          {"reason", mix.reason}};
}

}  // namespace

std::string wait_cause_name(sched::WaitCause cause) {
  return enum_name(kCauseNames, cause);
}

std::string wait_cause_text(sched::WaitCause cause) {
  return enum_name(kCauseTexts, cause);
}

std::string decision_text(const sched::ClusterSnapshot& snapshot,
                          const sched::SchedulingPolicy& policy,
                          const sched::SchedulingDecision& decision) {
  std::string text =
      fmt::format("policy {}: {}\n", policy.name, pluralized(decision.actions.size(), "action"));
  std::size_t widest = 0;
  for (const sched::SchedulingAction& action : decision.actions)
    widest = std::max(widest, action.job.size());
  for (const sched::SchedulingAction& action : decision.actions)
    text += fmt::format("  {:<8}{:<{}}  {}\n", enum_name(kActionNames, action.kind), action.job,
                        widest, action.reason);
  for (const sched::MixAction& mix : decision.mixes)
    text += mix_text(snapshot, mix);
  std::map<sched::WaitCause, std::vector<std::string>> waiting;
  for (const sched::WaitingJob& job : decision.waiting)
    waiting[job.cause].push_back(job.job);
  if (decision.waiting.empty()) {
    const bool is_after_evictions =
        std::any_of(decision.actions.begin(), decision.actions.end(),
                    [](const auto& action) { return action.kind == sched::ActionKind::kEvict; });
    return text +
           (is_after_evictions ? "no job waits but those that are evicted\n" : "no job waits\n");
  }
  for (const auto& [cause, names] : waiting)
    text += fmt::format("{} {}, {}: {}\n", pluralized(names.size(), "job"),
                        names.size() == 1 ? "waits" : "wait", wait_cause_text(cause),
                        shortened_list(names, kWaitingShown));
  return text;
}

nlohmann::json decision_json(const sched::ClusterSnapshot& snapshot, const sched::JobQueue& queue,
                             const sched::SchedulingPolicy& policy,
                             const sched::SchedulingDecision& decision) {
  nlohmann::json actions = nlohmann::json::array();
  for (const sched::SchedulingAction& action : decision.actions) {
    const sched::JobRequest* const request = find_request(snapshot, queue, action.job);
    actions.push_back(
        {{"action", enum_name(kActionNames, action.kind)},
         {"job", action.job},
         {"reason", action.reason},
         {"replicas", request == nullptr ? nlohmann::json::array()
                                         : replicas_json(snapshot, *request, action.replicas)}});
  }
  nlohmann::json mixes = nlohmann::json::array();
  for (const sched::MixAction& mix : decision.mixes)
    mixes.push_back(mix_json(snapshot, mix));
  nlohmann::json waiting = nlohmann::json::array();
  for (const sched::WaitingJob& job : decision.waiting)
    waiting.push_back({{"job", job.job}, {"cause", wait_cause_name(job.cause)}});
  for (std::size_t i = 0; i < decision.waiting.size(); ++i)
    if (!decision.waiting[i].detail.empty()) waiting[i]["detail"] = decision.waiting[i].detail;
  return {{"policy", policy.name},
          {"actions", std::move(actions)},
          {"mixes", std::move(mixes)},
          {"waiting", std::move(waiting)}};
}

}  // namespace regatta::report
