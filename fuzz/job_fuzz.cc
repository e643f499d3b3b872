// fuzz/job_fuzz.cc: any bytes as a job file, and as the flags --strategy and --constraint.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include <nlohmann/json.hpp>

#include "regatta/base/core/result.h"
#include "regatta/model/workload/job.h"
#include "regatta/model/workload/runtime_support.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace regatta;  // NOLINT(google-build-using-namespace): one function
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(workload::parse_strategy(text, "--strategy"));
  if (const auto constraint = workload::parse_constraint(text, "--constraint")) {
    const auto again = workload::parse_constraint(workload::to_string(*constraint), "again");
    REGATTA_CHECK(again.has_value() && *again == *constraint);
    static_cast<void>(workload::admits(*constraint, workload::Strategy{}));
  } else {
    REGATTA_CHECK(constraint.error().message.rfind("--constraint: ", 0) == 0);
  }
  const auto job = workload::parse_job(text, "fuzz.yaml");
  if (!job) {
    REGATTA_CHECK(job.error().message.rfind("fuzz.yaml:", 0) == 0);
    return 0;
  }
  REGATTA_CHECK(workload::total_parameters(job->model) > 0);
  REGATTA_CHECK(workload::model_flops(job->model, job->global_batch).value > 0);
  static_cast<void>(workload::check_runnable(*job));
  const JsonReader written(workload::job_to_json(*job), "job");
  REGATTA_CHECK(workload::read_job(written) == *job);
  REGATTA_CHECK(written.status().has_value());
  return 0;
}
