#include "regatta/app/cli/internal/query_daemon.h"

#include "regatta/app/report/gpu_report.h"
#include "regatta/gpu/sharing/control.h"

namespace regatta::cli {

Result<JsonReader> query_daemon(const std::string& socket, const nlohmann::json& request) {
  REGATTA_TRY(text, sharing::send_control_request(socket, request.dump()));
  return report::parse_daemon_answer(text);
}

}  // namespace regatta::cli
