#include "regatta/platform/mixing/duty_tables.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/platform/packing/table_rows.h"

namespace regatta::mixing {
namespace {

constexpr NumberRange kTimes{0, 1e9};
constexpr NumberRange kPercent{0, 100};
constexpr NumberRange kRates{0, 1e9};
constexpr double kIntervalsMax = 100'000;
constexpr std::size_t kPodsMax = 10'000;
constexpr std::size_t kTypesMax = 100;  // of requests

struct DutySample {
  double time = 0;
  int pod = 0;
  float duty = 0;
};

Error bad_table(const std::string& file, const std::string& what) {
  return {Code::kInvalidInput, file + ": " + what};
}

// The least distance between two different times; 0 where there is one time only.
double least_distance(std::vector<double> times) {
  std::sort(times.begin(), times.end());
  double least = 0;
  for (std::size_t i = 1; i < times.size(); ++i) {
    const double distance = times[i] - times[i - 1];
    if (distance > 0 && (least == 0 || distance < least)) least = distance;
  }
  return least;
}

Result<DutyTrace> as_series(const std::vector<DutySample>& samples, std::vector<std::string> names,
                            const std::string& file) {
  std::vector<double> times;
  times.reserve(samples.size());
  for (const DutySample& sample : samples)
    times.push_back(sample.time);
  const double interval = least_distance(times);
  if (interval <= 0)
    return bad_table(file, "all samples have one time; give a trace of several intervals");
  const auto [first, last] = std::minmax_element(times.begin(), times.end());
  const double count = std::round((*last - *first) / interval) + 1;
  if (count > kIntervalsMax || count * static_cast<double>(names.size()) > 5e7)
    return bad_table(file, fmt::format("{:.0f} intervals of {:g} s; give at most {:.0f}, and fewer "
                                       "for many pods",
                                       count, interval, kIntervalsMax));
  DutyTrace trace{Seconds{interval}, {}};
  for (std::string& name : names)
    trace.workloads.push_back({std::move(name), WorkloadClass::kOnline, Bytes{},
                               std::vector<float>(static_cast<std::size_t>(count), kAbsent)});
  std::map<std::pair<int, std::size_t>, int> repeated;
  for (const DutySample& sample : samples) {
    const auto index = static_cast<std::size_t>(std::round((sample.time - *first) / interval));
    float& demand = at(at(trace.workloads, sample.pod).demand, index);
    if (demand == kAbsent) {
      demand = sample.duty;
      continue;
    }
    const int seen = ++repeated[{sample.pod, index}];
    demand += (sample.duty - demand) / static_cast<float>(seen + 1);
  }
  return trace;
}

}  // namespace

Result<DutyTrace> read_duty_trace(std::string_view text, const std::string& file) {
  REGATTA_TRY(rows, packing::TableRows::open(text, file, {"t_s", "pod", "duty_pct"}));
  std::map<std::string, int, std::less<>> pods;
  std::vector<std::string> names;
  std::vector<DutySample> samples;
  for (;;) {
    REGATTA_TRY(is_row, rows.next());
    if (!is_row) break;
    REGATTA_TRY(time, rows.real("t_s", kTimes));
    REGATTA_TRY(duty, rows.real("duty_pct", kPercent));
    const std::string_view name = rows.text("pod");
    auto pod = pods.find(name);
    if (pod == pods.end()) {
      pod = pods.emplace(name, static_cast<int>(names.size())).first;
      names.emplace_back(name);
    }
    if (names.size() > kPodsMax)
      return bad_table(file, fmt::format("more than {} pods; give fewer", kPodsMax));
    samples.push_back({time, pod->second, static_cast<float>(duty / 100)});
  }
  if (samples.empty()) return bad_table(file, "no sample; write a line for each pod and time");
  return as_series(samples, std::move(names), file);
}

Result<std::map<std::string, std::vector<double>>> read_request_types(std::string_view text,
                                                                      const std::string& file) {
  REGATTA_TRY(rows, packing::TableRows::open(text, file, {"t_s", "qps"}));
  std::map<std::string, std::map<long long, double>> types;
  long long first = std::numeric_limits<long long>::max();
  long long last = 0;
  for (;;) {
    REGATTA_TRY(is_row, rows.next());
    if (!is_row) break;
    REGATTA_TRY(time, rows.real("t_s", kTimes));
    REGATTA_TRY(rate, rows.real("qps", kRates));
    const auto minute = static_cast<long long>(time / 60);
    first = std::min(first, minute);
    last = std::max(last, minute);
    types[std::string(rows.text("type"))][minute] += rate;
    if (types.size() > kTypesMax)
      return bad_table(file, fmt::format("more than {} types; give fewer", kTypesMax));
  }
  if (types.empty()) return bad_table(file, "no line of requests; write one for each minute");
  const long long count = last - first + 1;
  if (static_cast<double>(count) > kIntervalsMax)
    return bad_table(file, fmt::format("{} minutes; give at most {:.0f}", count, kIntervalsMax));
  std::map<std::string, std::vector<double>> series;
  for (const auto& [type, minutes] : types) {
    std::vector<double>& values = series[type];
    values.resize(as_index(count));
    for (const auto& [minute, rate] : minutes)
      at(values, minute - first) = rate;
  }
  return series;
}

Result<std::vector<double>> read_requests(std::string_view text, const std::string& file) {
  REGATTA_TRY(types, read_request_types(text, file));
  std::vector<double> sum(types.begin()->second.size());
  for (const auto& [type, series] : types)
    for (std::size_t i = 0; i < sum.size(); ++i)
      sum[i] += series[i];
  return sum;
}

Result<std::vector<JobPair>> read_job_pairs(std::string_view text, const std::string& file) {
  REGATTA_TRY(rows, packing::TableRows::open(text, file,
                                             {"gpu", "job", "scale", "other_job", "other_scale",
                                              "steps_per_s", "other_steps_per_s"}));
  std::map<std::pair<std::string, std::string>, double> alone;
  std::vector<JobPair> pairs;
  for (;;) {
    REGATTA_TRY(is_row, rows.next());
    if (!is_row) break;
    if (rows.text("scale") != "1") continue;
    REGATTA_TRY(speed, rows.real("steps_per_s", kRates));
    const std::string device(rows.text("gpu"));
    const std::string job(rows.text("job"));
    if (rows.text("other_job").empty()) {
      alone[{device, job}] = speed;
      continue;
    }
    if (rows.text("other_scale") != "1") continue;
    REGATTA_TRY(other_speed, rows.real("other_steps_per_s", kRates));
    pairs.push_back({device, job, std::string(rows.text("other_job")), speed, other_speed});
  }
  std::vector<JobPair> kept;
  for (JobPair& pair : pairs) {
    const auto first = alone.find({pair.device, pair.job});
    const auto second = alone.find({pair.device, pair.other});
    if (first == alone.end() || second == alone.end()) continue;
    if (first->second <= 0 || second->second <= 0) continue;
    pair.speed /= first->second;
    pair.other_speed /= second->second;
    kept.push_back(std::move(pair));
  }
  return kept;
}

}  // namespace regatta::mixing
