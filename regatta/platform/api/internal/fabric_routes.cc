#include "regatta/platform/api/internal/fabric_routes.h"

#include <algorithm>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/platform/api/internal/json_object.h"

namespace regatta::api {
namespace {

constexpr std::size_t kPastMost = 200;
constexpr std::size_t kSourcesMost = 16;
constexpr std::size_t kTextMost = 300;
constexpr long long kUnixMsMost = 253'402'300'799'999;  // the year 9999

std::string short_text(const YamlMap& map, std::string_view key,
                       std::optional<std::string_view> fallback = {}) {
  std::string text = map.text(key, fallback);
  if (text.size() > kTextMost) map.fail(key, fmt::format("is longer than {} bytes", kTextMost));
  return text;
}

FabricFault read_fault(const YamlMap& map) {
  map.allow({"culprit", "kind", "symptom", "server", "confidence", "loss_share", "since_ms", "or"});
  FabricFault fault;
  fault.culprit = short_text(map, "culprit");
  fault.kind = short_text(map, "kind");
  fault.symptom = short_text(map, "symptom", "");
  fault.server = short_text(map, "server", "");
  fault.confidence = map.number_or("confidence", 0, {.low = 0, .high = 1});
  fault.loss_share = map.number_or("loss_share", 0, {.low = 0, .high = 1});
  fault.since_ms = map.long_integer_or("since_ms", 0, {.low = 0, .high = kUnixMsMost});
  if (map.has("or")) fault.alternatives = map.texts("or");
  return fault;
}

std::string fault_json(const FabricFault& fault, const std::string& source, std::int64_t over_ms) {
  JsonObject object;
  object.add("source", source);
  object.add("culprit", fault.culprit);
  object.add("kind", fault.kind);
  object.add("symptom", fault.symptom);
  if (!fault.server.empty()) object.add("server", fault.server);
  object.add("confidence", fault.confidence);
  object.add("loss_share", fault.loss_share);
  object.add("since_ms", fault.since_ms);
  if (over_ms > 0) object.add("over_ms", over_ms);
  std::string others;
  for (const std::string& other : fault.alternatives) {
    std::string quoted;
    append_json_quoted(other, quoted);
    append_item(others, quoted);
  }
  object.add_raw("or", finished_list(std::move(others)));
  return object.take();
}

bool is_same(const FabricFault& a, const FabricFault& b) {
  return a.culprit == b.culprit && a.since_ms == b.since_ms;
}

}  // namespace

Result<FabricVerdicts> read_fabric_verdicts(const YamlMap& body, const YamlDocument& document) {
  body.allow({"source", "verdicts"});
  FabricVerdicts verdicts;
  verdicts.source = short_text(body, "source");
  const std::vector<YamlMap> items = body.maps("verdicts");
  if (items.size() > kFabricFaultsMost)
    body.fail("verdicts",
              fmt::format("has {} items; at most {} are taken", items.size(), kFabricFaultsMost));
  else
    for (const YamlMap& item : items)
      verdicts.faults.push_back(read_fault(item));
  REGATTA_TRY_DO(document.status());
  return verdicts;
}

void FabricRoutes::get(controller::ControllerRuntime& runtime, const ApiRequest& request) const {
  const Seconds now = runtime.moment().now;
  std::string sources;
  std::string verdicts;
  for (const auto& [name, source] : sources_) {
    const bool is_stale = now - source.heard > control::kFabricFaultLasts;
    JsonObject object;
    object.add("name", name);
    object.add("heard_ms", source.heard_ms);
    object.add("stale", is_stale);
    append_item(sources, object.take());
    if (is_stale) continue;
    for (const FabricFault& fault : source.faults)
      append_item(verdicts, fault_json(fault, name, 0));
  }
  std::string past;
  for (const PastFault& one : past_)
    append_item(past, fault_json(one.fault, one.source, one.over_ms));
  JsonObject page;
  page.add_raw("sources", finished_list(std::move(sources)));
  page.add_raw("verdicts", finished_list(std::move(verdicts)));
  page.add_raw("past", finished_list(std::move(past)));
  respond_json(runtime, request, page.take());
}

void FabricRoutes::set(controller::ControllerRuntime& runtime, const ApiRequest& request) {
  const auto document = request.body();
  if (!document) return refuse(request, document.error());
  auto verdicts = read_fabric_verdicts(document->root(), *document);
  if (!verdicts) return refuse(request, verdicts.error());
  std::erase_if(sources_, [&](const auto& entry) {
    return runtime.moment().now - entry.second.heard > control::kFabricFaultLasts &&
           entry.first != verdicts->source;
  });
  if (!sources_.contains(verdicts->source) && sources_.size() >= kSourcesMost)
    return refuse(request, {Code::kExhausted,
                            fmt::format("source '{}': there are {} already; use one of their names",
                                        printable(verdicts->source, 60), kSourcesMost)});
  const control::Moment moment = runtime.moment();
  Source& source = sources_[verdicts->source];
  for (const FabricFault& before : source.faults) {
    const bool lasts = std::any_of(verdicts->faults.begin(), verdicts->faults.end(),
                                   [&](const FabricFault& now) { return is_same(now, before); });
    if (!lasts)
      past_.push_front({.fault = before, .source = verdicts->source, .over_ms = moment.unix_ms});
  }
  if (past_.size() > kPastMost) past_.resize(kPastMost);
  source = {.faults = std::move(verdicts->faults), .heard = moment.now, .heard_ms = moment.unix_ms};
  std::map<std::string, std::string> blamed;
  for (const auto& [name, each] : sources_) {
    if (moment.now - each.heard > control::kFabricFaultLasts) continue;
    for (const FabricFault& fault : each.faults)
      if (!fault.server.empty())
        blamed.try_emplace(fault.server, fmt::format("{}: {}", fault.culprit, fault.symptom));
  }
  runtime.change([&](auto& core, const control::Moment& now) {
    core.set_fabric_faults(blamed, now);
    return 0;
  });
  get(runtime, request);
}

}  // namespace regatta::api
