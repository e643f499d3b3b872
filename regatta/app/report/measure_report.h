// report/measure_report.h: measurements: rates of devices and paths, times of collectives, the
// choice of their settings, and the state of running ranks. Text for people, JSON for programs;
// texts end with a newline.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "regatta/base/core/units.h"
#include "regatta/model/cost/rates.h"
#include "regatta/runtime/bench/timing.h"
#include "regatta/runtime/comm/tuner.h"
#include "regatta/runtime/comm/watch_file.h"

namespace regatta::report {

// `regatta measure`: the cluster and the source of its rates, matrix products by shape, operators,
// copies, and each path beside its description in the cluster file.
std::string rates_text(const std::string& cluster, const cost::Rates& rates);

// `regatta bench coll`.
struct BenchResult {
  bench::BenchTask task;
  std::vector<bench::Contender> race;  // the first `own` are Regatta's, the others its peers
  std::size_t own = 2;
  std::vector<Seconds> bounds;     // by size: lower bound of an all_reduce; empty: not known
  std::vector<std::string> notes;  // bench/caveats.h
};
// The table in the columns of nccl-tests, in parts, so that rows can be printed as they come. A row
// shows one size of the result.
std::string bench_heading(const BenchResult& result);
std::string bench_row(const BenchResult& result, std::size_t size);
// The units, where there are peers a table of all contenders beside the best peer, and the notes.
std::string bench_summary(const BenchResult& result);
nlohmann::json bench_json(const BenchResult& result);

// `regatta coll explain`: the settings of a collective.
struct TuningReport {
  std::string op;
  int ranks = 0;
  std::vector<comm::TuningChoice> choices;  // of its sizes
  std::vector<std::string> notes;           // bench/caveats.h
};
// For each choice the setting that is used, the reason, and the others with their times.
std::string tuning_text(const TuningReport& report);
// A tuning file, with the notes.
nlohmann::json tuning_json(const TuningReport& report);

// `regatta coll inspect`: views of ranks at one time.
struct Inspection {
  std::vector<comm::RankView> ranks;
  std::vector<comm::RankView> others;  // ranks of the same worlds that were not asked for
  bool are_files = false;              // the views come from flight files
  Seconds now;                         // on the clock of running ranks
};
// Per job the verdict, then the ranks; ranks without an operation are counted where they are many.
std::string inspection_text(const Inspection& inspection);
nlohmann::json inspection_json(const Inspection& inspection);
// With --watch: a process, or a job, of which nothing is left.
std::string ended_process_text(const std::string& pid);
std::string ended_job_text(const std::string& job);

}  // namespace regatta::report
