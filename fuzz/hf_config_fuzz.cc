// fuzz/hf_config_fuzz.cc: any bytes as the config.json of a model.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/model/workload/hf_config.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace regatta;  // NOLINT(google-build-using-namespace): one function
  const auto model =
      workload::parse_hf_config({reinterpret_cast<const char*>(data), size}, "config.json");
  if (!model) {
    REGATTA_CHECK(model.error().message.rfind("config.json", 0) == 0);
    return 0;
  }
  const long long active = workload::active_parameters(*model);
  REGATTA_CHECK(active > 0 && active <= workload::total_parameters(*model));
  REGATTA_CHECK(workload::model_flops(*model, 1).value > 0);
  return 0;
}
