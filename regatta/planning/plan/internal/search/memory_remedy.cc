#include "regatta/planning/plan/internal/search/memory_remedy.h"

#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/text.h"

namespace regatta::plan {
namespace {

using workload::StrategyRequest;

constexpr int kDevicesMax = 262'144;

// The least tried number of devices that fits; 0: none.
int enough_devices(PlanningProblem problem, const FindPlan& find) {
  if (problem.cluster != nullptr) return 0;  // more of which of them is open
  const int devices = problem.devices;
  for (int doubled = 2; doubled <= kDevicesMax / devices; doubled *= 2) {
    for (const int times : {doubled, doubled + doubled / 2}) {
      if (times > kDevicesMax / devices) break;
      problem.devices = devices * times;
      if (find(problem)) return problem.devices;
    }
  }
  return 0;
}

// A request with some keys left open, and their names.
struct Freed {
  const char* keys;
  StrategyRequest request;
};

// Those that differ from `request`, the smallest change first.
std::vector<Freed> freed_requests(const StrategyRequest& request) {
  std::vector<Freed> all;
  const auto add = [&](const char* keys, auto... members) {
    Freed one{keys, request};
    if (!(... && (request.*members).has_value())) return;
    ((one.request.*members).reset(), ...);
    all.push_back(one);
  };
  using R = StrategyRequest;
  if (!request.constraints.empty()) {
    Freed one{"the constraints", request};
    one.request.constraints.clear();
    all.push_back(one);
  }
  add("recompute", &R::recompute);
  add("zero", &R::zero);
  add("sequence_parallel", &R::sequence_parallel);
  add("shard_ranks", &R::shard_ranks);
  add("micro_batch", &R::micro_batch);
  add("virtual_stages", &R::virtual_stages);
  add("schedule and virtual_stages", &R::schedule, &R::virtual_stages);
  add("schedule", &R::schedule);
  add("stage_layers and pp", &R::stage_layers, &R::pp);
  add("dp", &R::dp);
  add("pp", &R::pp);
  add("tp", &R::tp);
  add("cp", &R::cp);
  add("ep", &R::ep);
  add("etp", &R::etp);
  // Where all devices are given away, one degree changes with another.
  add("pp and dp", &R::pp, &R::dp);
  add("tp and dp", &R::tp, &R::dp);
  add("tp and pp", &R::tp, &R::pp);
  add("tp, pp and dp", &R::tp, &R::pp, &R::dp);
  return all;
}

std::string fits_text(const Plan& plan) {
  return fmt::format("{} fits and takes {} a step", to_string(plan.strategy),
                     format_seconds(plan.estimate.step.total()));
}

// A search on servers of several types takes seconds: one change is tried.
std::string remedy_of_unlike_servers(const PlanningProblem& problem, const FindPlan& find) {
  const StrategyRequest nothing;
  PlanningProblem wider = with_request(problem, nothing);
  wider.every_form = true;
  if (!(problem.request == nothing)) {
    if (const auto plan = find(wider))
      return fmt::format("leave the strategy open, with --extended-search: {}", fits_text(*plan));
  }
  return "use more servers, devices with more memory, or a smaller model";
}

}  // namespace

std::string suggest_memory_remedy(const PlanningProblem& problem, const FindPlan& find) {
  const StrategyRequest& request = problem.request;
  if (is_heterogeneous(problem)) return remedy_of_unlike_servers(problem, find);
  for (const Freed& one : freed_requests(request))
    if (const auto plan = find(with_request(problem, one.request)))
      return fmt::format("leave {} open: {}", one.keys, fits_text(*plan));
  PlanningProblem wider = problem;
  wider.every_form = true;
  if (!problem.every_form) {
    if (const auto plan = find(wider))
      return fmt::format("with --extended-search {}", fits_text(*plan));
  }
  StrategyRequest freed = request;
  freed.zero.reset();
  freed.recompute.reset();
  freed.offload.reset();
  if (!(freed == request)) {
    if (const auto plan = find(with_request(wider, freed)))
      return fmt::format("leave zero, recompute and offload open, with --extended-search: {}",
                         fits_text(*plan));
  }
  const StrategyRequest nothing;
  if (!(freed == nothing)) {
    if (const auto plan = find(with_request(wider, nothing)))
      return fmt::format("leave the strategy open, with --extended-search: {}", fits_text(*plan));
  }
  const int devices = enough_devices(problem, find);
  if (devices > 0) return fmt::format("{} of these devices fit it", devices);
  return "more of these devices do not help; use devices with more memory, or a smaller model";
}

}  // namespace regatta::plan
