// cli/internal/query_daemon.h: one request to the GPU daemon and its answer.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

#include "regatta/base/core/json.h"
#include "regatta/base/core/result.h"

namespace regatta::cli {

// Sends `request` to the daemon at `socket`. Errors: those of sharing::send_control_request();
// kInvalidInput where the daemon is of another version.
Result<JsonReader> query_daemon(const std::string& socket, const nlohmann::json& request);

}  // namespace regatta::cli
