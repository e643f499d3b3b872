// cli/internal/platform_past.h: what has happened, as the controller's history has it: past events,
// and the attempts of a job.
#pragma once

#include <string>

#include "regatta/app/cli/internal/platform_client.h"

namespace regatta::cli {

struct PastEventOptions {
  std::string since;  // like 1h; "": the latest
  std::string kinds;  // a list with commas; "": all
  std::string object;
  int limit = 1000;
  bool json = false;
};

// Prints events of the past, the oldest first.
Status print_past_events(PlatformClient& client, const PastEventOptions& options);

// Prints the attempts of a job with the end of each replica.
Status print_attempts(PlatformClient& client, const std::string& job);

}  // namespace regatta::cli
