#include <algorithm>
#include <cmath>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/planning/plan/plan_metrics.h"

namespace regatta::plan {
namespace {

// "dp_comm 1.20 s, bubble 310 ms": the three largest savings of A over B, or of B over A.
std::string savings(const std::vector<PartDifference>& parts, bool of_a) {
  std::vector<std::string> words;
  for (const PartDifference& part : parts) {
    const Seconds saved = of_a ? part.b - part.a : part.a - part.b;
    if (saved.value > 0 && words.size() < 3)
      words.push_back(fmt::format("{} {}", part.part, format_seconds(saved)));
  }
  return join(words, ", ");
}

}  // namespace

Seconds ComparedPlan::step() const {
  Seconds sum;
  for (const NamedStepPart& part : parts)
    sum += part.time;
  return sum;
}

ComparedPlan compared_plan(const std::string& name, const Plan& plan) {
  return {.name = name,
          .parts = plan_parts(plan),
          .memory = plan.estimate.memory.total(),
          .strategy = plan.strategy};
}

PlanDifference compare_plans(const ComparedPlan& a, const ComparedPlan& b) {
  PlanDifference all;
  const double least = 1e-3 * std::max(a.step(), b.step()).value;
  const auto time_in = [](const ComparedPlan& plan, const std::string& name) {
    for (const NamedStepPart& part : plan.parts)
      if (part.name == name) return part.time;
    return Seconds{};
  };
  const auto consider = [&](const std::string& name) {
    const Seconds in_a = time_in(a, name);
    const Seconds in_b = time_in(b, name);
    const bool is_known =
        std::any_of(all.parts.begin(), all.parts.end(),
                    [&](const PartDifference& part) { return part.part == name; });
    if (!is_known && std::abs((in_a - in_b).value) > least) all.parts.push_back({name, in_a, in_b});
  };
  for (const ComparedPlan* plan : {&a, &b})
    for (const NamedStepPart& part : plan->parts)
      consider(part.name);
  std::stable_sort(all.parts.begin(), all.parts.end(),
                   [](const PartDifference& x, const PartDifference& y) {
                     return std::abs((x.a - x.b).value) > std::abs((y.a - y.b).value);
                   });
  const double ratio = a.step() / b.step();
  if (std::abs(ratio - 1) < 5e-4) {
    all.sentence = fmt::format("{} and {} are as fast", a.name, b.name);
    return all;
  }
  const bool a_wins = ratio < 1;
  const std::string saves = savings(all.parts, a_wins);
  const std::string pays = savings(all.parts, !a_wins);
  all.sentence =
      fmt::format("{} takes {:.1f} % less time than {}: it saves {}{}{}", a_wins ? a.name : b.name,
                  100 * (1 - (a_wins ? ratio : 1 / ratio)), a_wins ? b.name : a.name, saves,
                  pays.empty() ? "" : ", and pays ", pays);
  return all;
}

}  // namespace regatta::plan
