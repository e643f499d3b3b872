// api/object_json.h: jobs, nodes and queues as the API shows them: docs/formats/api.md.
#pragma once

#include <string>

#include "regatta/platform/api/access.h"
#include "regatta/platform/control/cluster_tables.h"
#include "regatta/platform/controller/wait_explainer.h"

namespace regatta::api {

// With the ranks of its attempt, and the spec, when `is_full`. `start`: where it is predicted.
std::string job_json(const control::ClusterTables& tables, const control::ManagedJob& job,
                     bool is_full, const controller::StartTimes* start = nullptr);
std::string node_json(const control::ClusterTables& tables, const control::ManagedNode& node);
// The quotas as they were set, and how many jobs of each queue wait and run.
std::string queues_json(const control::ClusterTables& tables);

// The user who is logged in: name, role, and when that ends.
std::string session_json(const Caller& caller);

}  // namespace regatta::api
