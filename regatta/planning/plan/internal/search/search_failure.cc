#include "regatta/planning/plan/internal/search/search_failure.h"

#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "regatta/base/core/text.h"
#include "regatta/model/workload/job.h"
#include "regatta/model/workload/strategy.h"
#include "regatta/planning/plan/internal/search/server_count.h"

namespace regatta::plan {
namespace {

// Checks the given keys by themselves: with as many replicas, and samples for them, as the others
// need, so that no message speaks of a degree that nobody gave.
Status check_given(const PlanningProblem& problem) {
  workload::Strategy asked = exact_strategy(problem.request, problem.devices);
  int global_batch = problem.global_batch;
  if (!problem.request.dp) {
    asked.dp = asked.ep * asked.expert_tp();
    global_batch = asked.dp * asked.micro_batch;
    asked.shard_ranks = 0;
    if (asked.schedule == workload::PipelineSchedule::kDualPipe) global_batch *= 2 * asked.pp;
  }
  REGATTA_TRY_DO(workload::micro_batches(problem.model, asked, global_batch));
  if (problem.global_batch % asked.micro_batch == 0) return {};
  return Error{Code::kInvalidInput,
               fmt::format("micro_batch {} does not divide global_batch {}; choose a divisor of {}",
                           asked.micro_batch, problem.global_batch, problem.global_batch)};
}

// "1024 devices with pp 8, tp 2"
std::string devices_text(const PlanningProblem& problem) {
  std::string text = fmt::format("{} devices", problem.devices);
  const std::string given = request_text(problem.request);
  return given.empty() ? text : fmt::format("{} with {}", text, given);
}

}  // namespace

std::string constraints_text(const workload::StrategyRequest& request) {
  std::vector<std::string> words;
  for (const workload::StrategyConstraint& one : request.constraints)
    words.push_back(to_string(one));
  return join(words, " and ");
}

std::string request_text(const workload::StrategyRequest& request) {
  std::vector<std::string> words;
  const nlohmann::json given = workload::request_to_json(request);
  for (const auto& [key, value] : given.items())
    if (key != "constraints")
      words.push_back(key + " " + (value.is_string() ? value.get<std::string>() : value.dump()));
  for (const workload::StrategyConstraint& one : request.constraints)
    words.push_back(to_string(one));
  return join(words, ", ");
}

Error no_strategy_divides(const PlanningProblem& problem) {
  const workload::StrategyRequest& request = problem.request;
  // The request may be impossible by itself.
  if (request.stage_layers && !request.virtual_stages &&
      request.schedule == workload::PipelineSchedule::kInterleaved) {
    return {Code::kInvalidInput,
            "stage_layers: no number above 1 divides all of them, so stages have no equal parts to "
            "interleave; choose multiples of 2, or schedule 1f1b"};
  }
  if (const Status possible = check_given(problem); !possible) return possible.error();
  if (!request.constraints.empty()) {
    workload::StrategyRequest free = request;
    free.constraints.clear();
    if (has_strategy(with_request(problem, free))) {
      return {Code::kInvalidInput,
              fmt::format("no strategy of {} devices meets {}; leave a constraint out",
                          problem.devices, constraints_text(request))};
    }
  }
  const workload::Strategy asked = exact_strategy(request, problem.devices);
  if (problem.devices % asked.world_size() != 0 ||
      (request.dp && request.tp && request.pp && request.cp)) {
    return {
        Code::kInvalidInput,
        fmt::format("strategy: tp {} x cp {} x pp {} x dp {} cannot fill {} devices; the degrees "
                    "must multiply to it, so leave one out to have it chosen",
                    asked.tp, asked.cp, asked.pp, asked.dp, problem.devices)};
  }
  // Where little is open, the first reason says most.
  std::string reason = fmt::format("{} heads, {} layers, batches of {}", problem.model.heads,
                                   problem.model.layers, problem.global_batch);
  if (request.tp && request.pp) {
    const auto count = workload::micro_batches(problem.model, asked, problem.global_batch);
    if (!count) reason = count.error().message.substr(0, count.error().message.find(';'));
  }
  return {Code::kInvalidInput,
          fmt::format("no strategy of {} divides the job: {}; free a degree of the strategy, or "
                      "use another number of devices",
                      devices_text(problem), reason)};
}

std::string no_strategy_fits(const PlanningProblem& problem, const Plan& smallest) {
  const auto gib = [](double bytes) { return format_bytes(bytes); };
  const double has = static_cast<double>(capacity_of(problem, smallest).value);
  const double state = smallest.estimate.memory.weights + smallest.estimate.memory.gradients +
                       smallest.estimate.memory.optimizer;
  const std::string given = request_text(problem.request);
  return fmt::format(
      "no strategy{} fits {} of {}, of which {:.0f} % can be used: the nearest, {}, needs {} a "
      "device, {} of it weights, gradients and optimizer",
      given.empty() ? "" : " with " + given, gib(has), device_names(problem), 100 * kUsableMemory,
      to_string(smallest.strategy), gib(smallest.estimate.memory.total()), gib(state));
}

}  // namespace regatta::plan
