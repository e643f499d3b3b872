// fuzz/heal_report_fuzz.cc: any bytes as lines of reports to the healer: what is understood can be
// decided about, cuts nobody off, and is told in words.

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json.hpp>

#include "regatta/base/core/json.h"
#include "regatta/base/core/result.h"
#include "regatta/base/core/text.h"
#include "regatta/network/heal/event_text.h"
#include "regatta/network/heal/healer_state.h"
#include "regatta/network/heal/test_fabric.h"

namespace {

using namespace regatta::heal;  // NOLINT(google-build-using-namespace): a program of its own

const TestFabricPaths& fabric() {
  static const TestFabricPaths kFabric = TestFabricPaths::three_tiers();
  return kFabric;
}

void check(const std::vector<Fault>& faults, const std::string& why) {
  const Decision decision = decide(fabric().paths, faults);
  for (const Withdrawal& withdrawal : decision.withdrawals)
    REGATTA_CHECK(!withdrawal.left.empty());
  Event event;
  for (const Fault& fault : faults)
    event.reasons.push_back({fault, why, regatta::Seconds{1}});
  event.changes = Tables(fabric().paths).changes(decision);
  event.refusals = decision.refusals;
  REGATTA_CHECK(!to_text(fabric().graph, event).empty());
  REGATTA_CHECK(!regatta::json_line(to_json(fabric().graph, event)).empty());
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto state = parse_state(fabric().graph, text)) {
    std::vector<Fault> held;
    for (const HeldFault& one : state->damper.held)
      held.push_back(one.fault);
    check(held, "state");
    REGATTA_CHECK(parse_state(fabric().graph, state_text(*state)).has_value());
  }
  std::vector<Fault> all;
  for (const std::string& line : regatta::split(text, '\n')) {
    const auto report = parse_report(fabric().graph, line);
    if (!report) {
      REGATTA_CHECK(report.error().message.starts_with("report: "));
      REGATTA_CHECK(!regatta::json_line(report.error().message).empty());
      continue;
    }
    all.insert(all.end(), report->faults.begin(), report->faults.end());
    check(all, report->why);
  }
  return 0;
}
