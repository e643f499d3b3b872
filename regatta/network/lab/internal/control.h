// lab/internal/control.h: requests to the holder of a lab: one JSON object in each direction over
// the socket FOLDER/control.sock, whose folder only its user can enter.
//
//   {"op": "links"}                                 -> {"links": [...]}
//   {"op": "down" | "slow" | "drop" | "clear", "link": NAME, "rate_Bps": x, "share": y} -> {}
//   {"op": "converge", "on": b}                     -> {}
//   an error                                        -> {"error": TEXT, "code": n}
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "regatta/base/core/result.h"
#include "regatta/base/os/unique_fd.h"
#include "regatta/network/lab/lab.h"

namespace regatta::lab {

// Client side. kUnavailable when the holder is gone, kTimeout when it does not answer within 10 s.
Result<nlohmann::json> request(const LabInfo& lab, const nlohmann::json& message);

// Holder side.
Result<os::UniqueFd> listen_for_requests(const std::string& folder);
using RequestHandler = std::function<Result<nlohmann::json>(const nlohmann::json&)>;
// Takes one connection, answers it and closes it. A client that breaks the protocol only hurts
// itself.
void serve_one(const os::UniqueFd& listener, const RequestHandler& handler);

nlohmann::json links_to_json(const std::vector<LinkState>& states);
std::vector<LinkState> links_from_json(const nlohmann::json& json);  // throws json::exception

}  // namespace regatta::lab
