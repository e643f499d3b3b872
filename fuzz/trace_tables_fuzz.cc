// fuzz/trace_tables_fuzz.cc: any bytes as each table of jobs and nodes that replays read.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/platform/cluster_replay/demand_tables.h"
#include "regatta/platform/cluster_replay/trace_tables.h"

namespace {

template <typename Jobs>
void check_jobs(const Jobs& jobs) {
  if (!jobs) {
    REGATTA_CHECK(jobs.error().message.starts_with("fuzz.csv:"));
    return;
  }
  regatta::Seconds last;
  for (const regatta::cluster_replay::TracedJob& job : *jobs) {
    REGATTA_CHECK(job.run_time.value > 0 && job.request.submitted >= last);
    last = job.request.submitted;
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace regatta::cluster_replay;  // NOLINT(google-build-using-namespace): one function
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  check_jobs(read_philly_jobs(text, "fuzz.csv"));
  check_jobs(read_dlrm_instances(text, "fuzz.csv"));
  check_jobs(read_openb_jobs(text, "fuzz.csv"));
  check_jobs(read_duty_jobs(text, "fuzz.csv", {.past = {60}}));
  check_jobs(read_service_jobs(text, "fuzz.csv", {.past = {60}}));
  const auto nodes = read_spot_nodes(text, "fuzz.csv");
  if (!nodes) REGATTA_CHECK(nodes.error().message.starts_with("fuzz.csv:"));
  return 0;
}
