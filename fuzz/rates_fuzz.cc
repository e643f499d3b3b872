// fuzz/rates_fuzz.cc: any bytes as counters of switches, as lines between agents and the command
// that measures rates, and as packets of a train.

#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <variant>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/text.h"
#include "regatta/network/diag/locator.h"
#include "regatta/network/link_rates/counter_verdict.h"
#include "regatta/network/link_rates/internal/train.h"
#include "regatta/network/link_rates/internal/train_messages.h"
#include "regatta/network/link_rates/rate_session.h"
#include "regatta/network/link_rates/switch_counters.h"
#include "regatta/network/link_rates/switch_stream.h"
#include "regatta/network/probe/test_clusters.h"

namespace {

using namespace regatta;  // NOLINT(google-build-using-namespace): a target of its own

void as_counters(const probe::Fabric& fabric, std::string_view text) {
  link_rates::SwitchCounterTotals totals(fabric.graph);
  int number = 1;
  for (const std::string& line : split(text, '\n')) {
    const auto read = link_rates::parse_switch_line(line, "fuzz.csv", ++number);
    if (!read)
      REGATTA_CHECK(read.error().message.starts_with("fuzz.csv:"));
    else if (const auto* const reading = std::get_if<link_rates::SwitchPortCounters>(&*read))
      static_cast<void>(totals.add(*reading).has_value());
  }
  for (const auto& fault : find_counter_faults(fabric.graph, totals))
    REGATTA_CHECK(fault.share >= 0 && fault.share <= 1 && fault.measured.value >= 0);
}

// As `regatta probe --counters` reads them: a second between two lines.
void as_stream(const probe::Fabric& fabric, std::string_view text) {
  link_rates::SwitchStream stream(fabric.graph, "fuzz.csv");
  diag::CounterEvidence evidence(fabric.graph);
  const auto ports = static_cast<std::uint32_t>(2 * fabric.graph.links.size());
  Seconds now{1};
  for (const std::string& line : split(text, '\n')) {
    stream.add(line, now += Seconds{1});
    const link_rates::SwitchStreamNews news = stream.consume_news();
    for (const diag::PortReading& reading : news.readings)
      evidence.add(reading);
    for (const diag::HeardPort& port : news.heard)
      REGATTA_CHECK(port.port < ports && port.heard < ports);
    if (const auto suspicion = evidence.consume_suspicion({}, now))
      REGATTA_CHECK(suspicion->growth.in_errors.value_or(0) >= 10);
  }
  REGATTA_CHECK(stream.left_out() <= stream.lines() && stream.consume_problems().size() <= 33);
  for (std::uint32_t link = 0; link < ports; ++link)
    static_cast<void>(
        evidence.about(diag::link_culprit(fabric::directed_link(link)), 0.5, {}, now));
}

void as_lines(const probe::Fabric& fabric, const link_rates::RatePlan& plan,
              std::string_view text) {
  link_rates::RateSession session(fabric.graph, fabric.routes, plan, 0);
  for (int server = 0; server < 4; ++server)
    session.add_agent(NodeId{server}, {0});
  Seconds now{0};
  for (const std::string& line : split(text, '\n')) {
    now += Seconds{0.02};
    static_cast<void>(session.due_orders(now));
    for (int server = 0; server < 2; ++server)
      static_cast<void>(session.accept(NodeId{server}, line, now).has_value());
    const auto order = link_rates::parse_agent_order(line);
    if (!order) continue;
    const std::string again = link_rates::order_line(*order);
    REGATTA_CHECK(link_rates::parse_agent_order(again.substr(0, again.size() - 1)).has_value());
  }
  static_cast<void>(session.verdicts());
}

void as_train(std::span<const std::byte> bytes) {
  static_cast<void>(link_rates::decode_train_header(bytes));
  std::vector<link_rates::TrainArrival> arrivals;
  for (; bytes.size() >= 2; bytes = bytes.subspan(2))
    arrivals.push_back({std::to_integer<int>(bytes[0]), std::to_integer<std::int64_t>(bytes[1])});
  for (const int time_to_live : {0, 2}) {
    const auto rate =
        link_rates::arrival_rate(link_rates::shape_for({1.25e7}, time_to_live), arrivals);
    REGATTA_CHECK(!rate || rate->value > 0);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const probe::Fabric fabric({.servers = 4, .servers_per_leaf = 2, .spines = 2});
  static const link_rates::RatePlan plan =
      link_rates::plan_rates(fabric.graph, fabric.routes, fabric.seeds);
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  as_counters(fabric, text);
  as_stream(fabric, text);
  as_lines(fabric, plan, text);
  as_train(std::as_bytes(std::span(data, size)));
  return 0;
}
