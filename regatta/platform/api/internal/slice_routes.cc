#include "regatta/platform/api/internal/slice_routes.h"

#include <string>
#include <utility>

#include "regatta/base/core/ids.h"
#include "regatta/platform/api/internal/json_object.h"

namespace regatta::api {
namespace {

std::string slice_json(const control::ManagedJob& job, const control::ManagedNode& node,
                       int index) {
  const control::Replica& replica = at(job.attempt->replicas, index);
  JsonObject object;
  object.add_revision("job", job.id);
  object.add("handle", control::handle_of(job));
  object.add("queue", job.queue);
  object.add("user", job.user);
  object.add("replica", index);
  object.add("node", node.facts.name);
  object.add("devices", replica.devices);
  object.add("device_share", replica.slice.device_milli / 1000.0);
  object.add("device_memory_mib", replica.slice.device_memory_mib);
  object.add("phase", at(control::kReplicaPhaseNames, static_cast<int>(replica.phase)));
  object.add("enforced", node.enforces_slices);
  return object.take();
}

}  // namespace

void list_slices(controller::ControllerRuntime& runtime, const ApiRequest& request) {
  const control::ClusterTables& tables = runtime.tables();
  const std::string_view wanted = request.query("node");
  std::string items;
  for (const control::ManagedNode& node : tables.nodes) {
    if (!wanted.empty() && node.facts.name != wanted) continue;
    for (const control::PlacedReplica& placed : node.replicas) {
      const control::ManagedJob& job = tables.jobs.at(placed.job);
      if (!at(job.attempt->replicas, placed.replica).slice.is_whole())
        append_item(items, slice_json(job, node, placed.replica));
    }
  }
  JsonObject page;
  page.add_revision("rev", tables.last_revision);
  page.add_raw("items", finished_list(std::move(items)));
  respond_json(runtime, request, page.take());
}

}  // namespace regatta::api
