#include "regatta/platform/api/internal/cluster_routes.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/platform/api/internal/json_object.h"
#include "regatta/platform/api/object_json.h"
#include "regatta/platform/api/problem.h"
#include "regatta/platform/sched/state_file.h"

namespace regatta::api {

using controller::ControllerRuntime;

void list_nodes(ControllerRuntime& runtime, const ApiRequest& request) {
  std::string items;
  for (const control::ManagedNode& node : runtime.tables().nodes)
    append_item(items, node_json(runtime.tables(), node));
  JsonObject page;
  page.add_revision("rev", runtime.tables().last_revision);
  page.add_raw("items", finished_list(std::move(items)));
  respond_json(runtime, request, page.take());
}

void get_node(ControllerRuntime& runtime, const ApiRequest& request) {
  const std::string& name = request.parameters.front();
  const int index = runtime.tables().find_node(name);
  if (index < 0)
    return refuse(request, {Code::kNotFound,
                            fmt::format("node {}: there is none; list them with regatta nodes",
                                        printable(name, 60))});
  const control::ManagedNode& node = at(runtime.tables().nodes, index);
  respond_json(runtime, request, node_json(runtime.tables(), node), 200, node.revision);
}

void set_node_intent(ControllerRuntime& runtime, const ApiRequest& request) {
  const auto document = request.body();
  if (!document) return refuse(request, document.error());
  document->root().allow({"intent"});
  const control::NodeIntent intent = document->root().choice(
      "intent", sched::choices_of<control::NodeIntent>(control::kNodeIntentNames));
  if (const Status status = document->status(); !status) return refuse(request, status.error());
  const Status status = runtime.change([&](auto& core, const control::Moment&) {
    return core.set_intent(request.parameters.front(), intent);
  });
  if (!status) return respond(runtime, request, problem(status.error()));
  get_node(runtime, request);
}

void get_queues(ControllerRuntime& runtime, const ApiRequest& request) {
  respond_json(runtime, request, queues_json(runtime.tables()), 200,
               runtime.tables().quotas_revision);
}

void set_queues(ControllerRuntime& runtime, const ApiRequest& request) {
  if (auto refusal = check_revision(request, runtime.tables().quotas_revision))
    return respond(runtime, request, std::move(*refusal));
  const Status status = runtime.change(
      [&](auto& core, const control::Moment&) { return core.set_quotas(request.http().body); });
  if (!status) return respond(runtime, request, problem(status.error()));
  get_queues(runtime, request);
}

void get_scheduler(ControllerRuntime& runtime, const ApiRequest& request) {
  const controller::DecisionStats& stats = runtime.decision_stats();
  JsonObject object;
  object.add("policy", runtime.options().policy.name);
  object.add("decisions", stats.decisions);
  object.add("actions", stats.actions);
  object.add("outdated_actions", stats.outdated);
  object.add("last_decision_s", stats.last_time.value);
  object.add("last_error", stats.last_error);
  object.add("waiting_changes", runtime.waiting_changes());
  respond_json(runtime, request, object.take());
}

}  // namespace regatta::api
