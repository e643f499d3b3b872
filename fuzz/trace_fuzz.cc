// fuzz/trace_fuzz.cc: any bytes as a trace of messages.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/network/simulate/scenario_yaml.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace regatta;  // NOLINT(google-build-using-namespace): one function
  const auto trace = simulate::parse_trace({reinterpret_cast<const char*>(data), size}, "fuzz.csv");
  if (!trace) {
    REGATTA_CHECK(trace.error().message.rfind("fuzz.csv:", 0) == 0);
    return 0;
  }
  for (const simulate::TraceMessage& message : *trace)
    REGATTA_CHECK(message.start.value >= 0 && message.bytes.value >= 0 && message.line > 1);
  return 0;
}
