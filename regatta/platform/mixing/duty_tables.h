// mixing/duty_tables.h: reads traces of GPU use, of requests, and of jobs that ran in pairs.
// Sources of such tables: github.com/alibaba/clusterdata, cluster-trace-v2026-GenAI;
// github.com/stanford-futuredata/gavel, simulation_throughputs.json.
#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/platform/mixing/interference.h"
#include "regatta/platform/mixing/mixed_workload.h"

namespace regatta::mixing {

// Series on one clock; all have the same number of intervals.
struct DutyTrace {
  Seconds interval{};
  std::vector<MixedWorkload> workloads;  // in the order of first appearance; memory is 0
};

// Columns: t_s, pod, duty_pct (0 to 100); others are ignored. The interval is the least distance of
// two times; samples of one interval are averaged. Fails with kInvalidInput that names `file`,
// line, column and remedy, also for more than 100,000 intervals or 10,000 pods.
Result<DutyTrace> read_duty_trace(std::string_view text, const std::string& file);

// Columns: t_s, qps and optionally type, whose values are added up. The series starts at the first
// minute; a minute without a line has 0. Fails like read_duty_trace().
Result<std::vector<double>> read_requests(std::string_view text, const std::string& file);
// The same by type, "" where there is no such column; all series have one begin and one end.
Result<std::map<std::string, std::vector<double>>> read_request_types(std::string_view text,
                                                                      const std::string& file);

// Columns: gpu, job, scale, other_job, other_scale, steps_per_s, other_steps_per_s. Lines of scale
// 1 count; other_job is empty where the job ran alone. Pairs of a job whose line alone is missing,
// or 0, are left out. Fails like read_duty_trace().
Result<std::vector<JobPair>> read_job_pairs(std::string_view text, const std::string& file);

}  // namespace regatta::mixing
