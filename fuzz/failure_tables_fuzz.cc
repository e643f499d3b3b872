// fuzz/failure_tables_fuzz.cc: any bytes as a table of failure mixes, of lives of GPUs and of
// faults.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/platform/reliability/failure_log.h"
#include "regatta/platform/reliability/failure_mix.h"

namespace {

void check_log(const regatta::Result<regatta::reliability::FailureLog>& log) {
  if (!log) {
    REGATTA_CHECK(log.error().message.starts_with("fuzz.csv:"));
    return;
  }
  for (const auto& unit : log->units)
    for (const auto& stay : unit.stays)
      REGATTA_CHECK(stay.start <= stay.end && stay.end <= log->end);
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace regatta;  // NOLINT(google-build-using-namespace): one function
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto mixes = reliability::read_failure_mixes(text, "fuzz.csv");
  if (!mixes) REGATTA_CHECK(mixes.error().message.starts_with("fuzz.csv:"));
  if (mixes)
    for (const auto& mix : *mixes)
      static_cast<void>(reliability::with_rates(mix, 8, reliability::kDay));
  check_log(reliability::read_gpu_lives(text, "fuzz.csv"));
  check_log(reliability::read_server_faults(text, "fuzz.csv", 4));
  return 0;
}
