// platform_proofs/platform_programs.h: a controller and its agents as processes of this machine,
// which a proof kills and starts again.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include <sys/types.h>

#include "regatta/base/core/result.h"
#include "regatta/base/http/http_client.h"

namespace regatta::platform_proofs {

// The programs lie beside the proof's own. Files go below `folder`, which must be new.
class PlatformPrograms {
 public:
  explicit PlatformPrograms(std::string folder) : folder_(std::move(folder)) {}
  ~PlatformPrograms();  // SIGKILL to what runs
  PlatformPrograms(const PlatformPrograms&) = delete;
  PlatformPrograms& operator=(const PlatformPrograms&) = delete;

  // Returns when the controller serves; a later start has the port of the first. kTimeout after
  // 30 s.
  Status start_controller();
  // SIGKILL; returns a time of steady_ns() at which the process is gone.
  Result<std::int64_t> kill_controller();
  // Agents node-0, node-1, ... with `devices` emulated devices each; waits until all have joined.
  Status start_agents(int count, int devices);

  http::ClientOptions client_options() const;
  http::Headers admin_headers() const;

 private:
  Status start(const std::vector<std::string>& command, const std::string& log,
               const std::string& join_token, pid_t& pid);

  std::string folder_;
  std::string url_;
  std::string port_ = "0";
  pid_t controller_ = -1;
  std::vector<pid_t> agents_;
};

// CLOCK_MONOTONIC in nanoseconds.
std::int64_t steady_ns();

}  // namespace regatta::platform_proofs
