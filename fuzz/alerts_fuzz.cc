// fuzz/alerts_fuzz.cc: any bytes as rules of alerts, and as the file that says who gets them: rules
// that are accepted are the same after they were written and read again.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/platform/monitoring/alert_rules.h"
#include "regatta/platform/notification/notifier.h"

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto rules = regatta::monitoring::parse_alert_rules(text, "fuzz")) {
    const std::string written = "{\"rules\":" + regatta::monitoring::alert_rules_json(*rules) + "}";
    const auto again = regatta::monitoring::parse_alert_rules(written, "fuzz");
    REGATTA_CHECK(again && *again == *rules);
  }
  // Files are read only from secret_file and password_file: none of them is opened here.
  if (text.find("_file") == std::string_view::npos)
    static_cast<void>(regatta::notification::read_notifier_options(text, "fuzz"));
  return 0;
}
