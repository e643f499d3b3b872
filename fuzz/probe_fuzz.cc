// fuzz/probe_fuzz.cc: any bytes as labelled faults, and as what a prober tells.

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "regatta/core/check.h"
#include "regatta/core/text.h"
#include "regatta/diag/locator.h"
#include "regatta/probe/matrix.h"
#include "regatta/probe/report_text.h"
#include "regatta/probe/scenario.h"
#include "regatta/probe/test_clusters.h"

namespace {

using regatta::probe::Fabric;
using regatta::probe::Matrix;

void as_faults(const Fabric& fabric, std::string_view text) {
  const auto all = regatta::probe::parse_scenarios(text, "fuzz.txt");
  if (!all) {
    REGATTA_CHECK(all.error().message.starts_with("fuzz.txt:"));
    return;
  }
  for (const auto& scenario : *all)
    for (const std::string& fault : scenario.faults) {
      const auto parsed = regatta::probe::parse_fault(fabric.graph, fault);
      if (!parsed) continue;
      const std::string again = regatta::probe::fault_text(fabric.graph, *parsed);
      const auto twice = regatta::probe::parse_fault(fabric.graph, again);
      REGATTA_CHECK(twice.has_value() && twice->culprit == parsed->culprit);
    }
}

void as_reports(const Fabric& fabric, const Matrix& matrix, std::string_view text) {
  const auto part = part_of(fabric.graph, matrix, regatta::NodeId{1});
  regatta::diag::Locator locator(fabric.graph, matrix.ways);
  for (const std::string& line : regatta::split(text, '\n')) {
    const auto parsed = regatta::probe::parse_line(line, part, 3);
    if (!parsed) continue;
    const auto* const report = std::get_if<regatta::diag::Report>(&*parsed);
    if (report == nullptr) continue;
    locator.add(*report);
    const auto after = static_cast<double>(report->window + 3);
    static_cast<void>(locator.look(regatta::Seconds{0.03 * after}));
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const Fabric fabric({.servers = 4, .servers_per_leaf = 2, .spines = 2});
  static const Matrix matrix =
      regatta::probe::plan_matrix(fabric.graph, fabric.routes, fabric.seeds);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  as_faults(fabric, text);
  as_reports(fabric, matrix, text);
  return 0;
}
