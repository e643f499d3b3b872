// fuzz/training_log_fuzz.cc: any bytes as the log of a training run.

#include <cmath>
#include <cstddef>
#include <cstdint>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/model/topo/presets.h"
#include "regatta/planning/replay/training_log.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace regatta;  // NOLINT(google-build-using-namespace): one function
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  static_cast<void>(replay::is_table_of_runs(text));
  const auto log = replay::read_training_log(text, "fuzz.log");
  if (!log) {
    REGATTA_CHECK(log.error().message.starts_with("fuzz.log:"));
    return 0;
  }
  REGATTA_CHECK(log->steps.median > 0 && std::isfinite(log->steps.median));
  REGATTA_CHECK(log->steps.left_out < log->steps.lines && log->steps.spread >= 0);
  const workload::ModelShape model = workload::find_model_preset("gpt3-6.7b")->model;
  for (const workload::ModelShape* const given :
       {&model, static_cast<const workload::ModelShape*>(nullptr)}) {
    const auto run = replay::run_of_log(
        *log, {.model = given, .server = topo::find_server_preset("dgx-a100-80g"), .devices = 64});
    if (!run)
      REGATTA_CHECK(run.error().message.starts_with("fuzz.log:"));
    else
      REGATTA_CHECK(run->measured > 0 && run->strategy.dp >= 1);
  }
  return 0;
}
