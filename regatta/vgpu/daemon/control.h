// vgpu/daemon/control.h: what operators ask of the daemon, as JSON: docs/formats/gpu_daemon.md.
#pragma once

#include <string>

#include "regatta/core/result.h"
#include "regatta/os/unique_fd.h"
#include "regatta/vgpu/daemon/books.h"
#include "regatta/vgpu/daemon/timekeeper.h"

namespace regatta::vgpu {

inline constexpr std::size_t kLongestRequest = 8192;
inline constexpr const char* kPolicyNames[] = {"fixed", "equal", "weight", "burst-weight"};

Result<regatta_share_policy> parse_policy(const std::string& name);

struct ControlAnswer {
  std::string text;  // JSON, or Prometheus text
  int tenant = -1;   // that a process joins: its page goes along
};

// Answers `request` of the process `asker`, which may ask (who_may_ask()).
Result<ControlAnswer> answer_control(Books& books, const Timekeeper& times,
                                     std::string_view request, ProcessId asker);

// Operators are processes of root or of the daemon's user, in its PID namespace, that neither
// belong to a tenant nor descend from one. kUnsupported names which of these fails.
Status check_operator(const Books& books, pid_t asker, unsigned user);

// The program's side: asks the daemon at `socket` and returns its text; `page` gets the descriptor
// of a tenant's page when one came.
Result<std::string> ask_daemon(const std::string& socket, const std::string& request,
                               os::UniqueFd* page = nullptr);

}  // namespace regatta::vgpu
