// fuzz/duty_tables_fuzz.cc: any bytes as a trace of GPU use, of requests, and of jobs in pairs.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/platform/mixing/duty_tables.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace regatta;  // NOLINT(google-build-using-namespace): one function
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto trace = mixing::read_duty_trace(text, "fuzz.csv");
  if (!trace) REGATTA_CHECK(trace.error().message.starts_with("fuzz.csv"));
  if (trace) {
    for (const mixing::MixedWorkload& workload : trace->workloads) {
      REGATTA_CHECK(workload.demand.size() == trace->workloads.front().demand.size());
      for (const float demand : workload.demand)
        REGATTA_CHECK(demand == mixing::kAbsent || (demand >= 0 && demand <= 1.0001F));
    }
  }
  const auto requests = mixing::read_requests(text, "fuzz.csv");
  if (!requests) REGATTA_CHECK(requests.error().message.starts_with("fuzz.csv"));
  const auto pairs = mixing::read_job_pairs(text, "fuzz.csv");
  if (!pairs) REGATTA_CHECK(pairs.error().message.starts_with("fuzz.csv"));
  return 0;
}
