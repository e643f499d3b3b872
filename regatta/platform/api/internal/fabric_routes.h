// api/internal/fabric_routes.h: the routes of the fabric: what a prober has found, and which
// servers that concerns.
#pragma once

#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/platform/api/internal/api_request.h"
#include "regatta/platform/controller/controller_runtime.h"

namespace regatta::api {

// A fault that a prober has found and that lasts: docs/formats/probe.md.
struct FabricFault {
  std::string culprit;  // "link leaf0-spine1, both ways"
  std::string kind;     // "link"
  std::string symptom;
  std::string server;  // that it blames; "": none
  double confidence = 0;
  double loss_share = 0;
  std::int64_t since_ms = 0;
  std::vector<std::string> alternatives;  // culprits that explain it nearly as well
};

// {"source": "probe", "verdicts": [...]} of at most kFabricFaultsMost. kInvalidInput names the key.
struct FabricVerdicts {
  std::string source;
  std::vector<FabricFault> faults;
};
inline constexpr std::size_t kFabricFaultsMost = 1000;
Result<FabricVerdicts> read_fabric_verdicts(const YamlMap& body, const YamlDocument& document);

// Kept in memory: a prober tells all that it knows every few seconds.
class FabricRoutes {
 public:
  void get(controller::ControllerRuntime& runtime, const ApiRequest& request) const;
  // Replaces what this source has said before.
  void set(controller::ControllerRuntime& runtime, const ApiRequest& request);

 private:
  struct Source {
    std::vector<FabricFault> faults;
    Seconds heard;  // on the controller's monotonic clock
    std::int64_t heard_ms = 0;
  };
  struct PastFault {
    FabricFault fault;
    std::string source;
    std::int64_t over_ms = 0;
  };
  std::map<std::string, Source> sources_;
  std::deque<PastFault> past_;  // the latest first
};

}  // namespace regatta::api
