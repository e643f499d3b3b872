// The settings of collectives and the reasons for them.
#include <string>
#include <vector>

#include <fmt/core.h>
#include <nlohmann/json.hpp>

#include "regatta/app/report/measure_report.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"
#include "regatta/runtime/comm/shared_segment.h"

namespace regatta::report {
namespace {

using comm::ChoiceReason;
using comm::MeasuredSetting;
using comm::TuningChoice;

std::string class_size(std::size_t bytes) {
  return format_bytes(Bytes{static_cast<long long>(bytes)});
}

// "-" for a time that is not known.
std::string known_time(Seconds time) {
  return time.value > 0 ? format_seconds(time) : "-";
}

// A time that comes from a file is no measurement of this run.
std::string observed_text(const TuningChoice& choice, const MeasuredSetting& one) {
  const bool is_loaded = choice.reason == ChoiceReason::kLoaded && one.observed.value > 0;
  return known_time(one.observed) + (is_loaded ? " (loaded)" : "");
}

// The first setting that was tried is the first of the cost model, or without a model the default.
std::string why_measured(const TuningChoice& choice) {
  const MeasuredSetting& first = choice.tried.front();
  const MeasuredSetting& chosen = choice.tried[choice.chosen];
  const bool is_predicted = first.predicted.value > 0;
  if (choice.chosen == 0)
    return is_predicted ? "the cost model ranks it first, and no other one measured clearly faster"
                        : "no other one measured clearly faster";
  if (chosen.observed.value > 0 && chosen.observed < first.observed)
    return fmt::format("it takes {:.1f} % less time than {}",
                       100 * (1 - chosen.observed.value / first.observed.value),
                       is_predicted ? "the first of the cost model" : "the default");
  return "it measured fastest";
}

std::string choice_reason(const TuningChoice& choice) {
  const MeasuredSetting& chosen = choice.tried[choice.chosen];
  switch (choice.reason) {
    case ChoiceReason::kForced:
      return "it was requested";
    case ChoiceReason::kOnlyOne:
      if (chosen.setting.algorithm == comm::Algorithm::kOneShot)
        return "the vector fits into the slots of the shared segment";
      if (chosen.setting.algorithm == comm::Algorithm::kInPlace)
        return "every rank can access the buffers of all ranks";
      return "only option";
    case ChoiceReason::kModel:
      return chosen.predicted.value > 0 ? "the cost model ranks it first"
                                        : "it is the default, and nothing was measured";
    case ChoiceReason::kLoaded:
      return "an earlier run found it fastest";
    case ChoiceReason::kMeasured:
      return why_measured(choice);
  }
  return "";
}

std::string tuning_choice_text(const TuningChoice& choice) {
  const std::string sizes = choice.bytes_from == 0 ? "up to " + class_size(comm::kSlotBytes)
                                                   : "from " + class_size(choice.bytes_from);
  const std::string buffers = buffers_of(choice);
  std::string text = fmt::format("\n{} {}{}: {}\n  reason: {}; {} calls\n", to_string(choice.kind),
                                 sizes, buffers.empty() ? "" : " in " + buffers + " buffers",
                                 describe(choice.tried[choice.chosen].setting),
                                 choice_reason(choice), choice.calls);
  std::vector<std::vector<std::string>> rows = {{"", "setting", "predicted", "measured", "calls"}};
  for (std::size_t i = 0; i < choice.tried.size(); ++i) {
    const MeasuredSetting& one = choice.tried[i];
    rows.push_back({i == choice.chosen ? "*" : "", describe(one.setting), known_time(one.predicted),
                    observed_text(choice, one), std::to_string(one.calls)});
  }
  return text + format_table(rows);
}

}  // namespace

std::string tuning_text(const TuningReport& report) {
  std::string text = fmt::format(
      "{} between {} ranks; predicted and measured: times per call; * marks the setting in use\n",
      report.op, report.ranks);
  for (const TuningChoice& choice : report.choices)
    text += tuning_choice_text(choice);
  for (const std::string& note : report.notes)
    text += fmt::format("\nnote: {}\n", note);
  return text;
}

nlohmann::json tuning_json(const TuningReport& report) {
  nlohmann::json json = comm::tuning_json(report.choices);
  json["notes"] = report.notes;
  return json;
}

}  // namespace regatta::report
