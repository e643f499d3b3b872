#include "regatta/platform/api/internal/monitor_routes.h"

#include <string>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/base/http/compression.h"
#include "regatta/platform/api/internal/device_json.h"
#include "regatta/platform/api/internal/job_routes.h"
#include "regatta/platform/api/internal/json_object.h"
#include "regatta/platform/api/problem.h"

namespace regatta::api {
namespace {

using controller::ClusterMonitor;
using controller::ControllerRuntime;

// At once: what is measured is no change that has to be durable.
void respond_measured(const ApiRequest& request, std::string json) {
  http::Response response;
  response.body = std::move(json);
  http::compress_for(request.http(), response);
  request.exchange->respond(std::move(response));
}

void get_device_history(ControllerRuntime& runtime, ClusterMonitor& monitor,
                        const ApiRequest& request) {
  const std::string& name = request.parameters.front();
  const int node = runtime.tables().find_node(name);
  if (node < 0)
    return refuse(request, {Code::kNotFound,
                            fmt::format("node {}: there is none; list them with regatta nodes",
                                        printable(name, 60))});
  respond_measured(request, device_history_json(monitor, runtime.tables(), node));
}

void get_job_devices(ControllerRuntime& runtime, ClusterMonitor& monitor,
                     const ApiRequest& request) {
  const auto job = find_job(runtime, request);
  if (!job) return refuse(request, job.error());
  respond_measured(request, job_devices_json(monitor, runtime.tables(), **job));
}

void get_alert_rules(ControllerRuntime& runtime, ClusterMonitor& monitor,
                     const ApiRequest& request) {
  JsonObject object;
  object.add_revision("rev", monitor.alert_rules_revision());
  object.add_raw("rules", monitoring::alert_rules_json(monitor.alerts().rules()));
  respond_json(runtime, request, object.take(), 200, monitor.alert_rules_revision());
}

void set_alert_rules(ControllerRuntime& runtime, ClusterMonitor& monitor,
                     const ApiRequest& request) {
  if (auto refusal = check_revision(request, monitor.alert_rules_revision()))
    return respond(runtime, request, std::move(*refusal));
  if (const Status status = monitor.set_alert_rules(request.http().body); !status)
    return refuse(request, status.error());
  get_alert_rules(runtime, monitor, request);
}

}  // namespace

bool run_monitor_route(RouteId route, ControllerRuntime& runtime, ClusterMonitor& monitor,
                       const ApiRequest& request) {
  switch (route) {
    case RouteId::kListDevices:
      respond_measured(request, devices_json(monitor, runtime.tables()));
      return true;
    case RouteId::kGetDeviceHistory:
      get_device_history(runtime, monitor, request);
      return true;
    case RouteId::kGetJobDevices:
      get_job_devices(runtime, monitor, request);
      return true;
    case RouteId::kListTenants:
      respond_measured(request, tenants_json(monitor, runtime.tables()));
      return true;
    case RouteId::kListAlerts:
      respond_json(runtime, request, alerts_json(monitor, runtime.tables()));
      return true;
    case RouteId::kGetAlertRules:
      get_alert_rules(runtime, monitor, request);
      return true;
    case RouteId::kSetAlertRules:
      set_alert_rules(runtime, monitor, request);
      return true;
    default:
      return false;
  }
}

}  // namespace regatta::api
