// report/gpu_report.h: the answers of GPU daemons as text: tenants, their limits and their use of
// GPUs; the GPUs of a pool of servers. Pure.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "experimental/remote/pool_client.h"
#include "regatta/base/core/json.h"
#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"

namespace regatta::report {

// An answer of the daemon, for the functions below. Their errors have kInvalidInput: the answer is
// of another version.
Result<JsonReader> parse_daemon_answer(const std::string& text);

// `regatta gpu ps`: a row for each tenant and GPU, from the answer to `ps`.
Result<std::string> gpu_tenants_table(const JsonReader& answer);
// One tenant's limits in a line.
Result<std::string> gpu_tenant_text(const JsonReader& tenant);

// A GPU of the answer to `drain`.
struct DrainedGpu {
  int gpu = 0;
  bool is_drained = false;
  std::vector<std::string> tenants;  // still there
};
Result<std::vector<DrainedGpu>> read_drained_gpus(const JsonReader& answer);
// `regatta gpu drain`: a line.
std::string gpu_drain_text(const DrainedGpu& gpu);

// `regatta gpu pool ls`: the GPUs of servers; the JSON has the servers that did not answer, too.
std::string gpu_pool_table(const std::vector<remote::ServerView>& servers);
nlohmann::json gpu_pool_json(const std::vector<remote::ServerView>& servers);

// `regatta gpu top`: the use of GPUs now and in the last minute.

struct ProcessUse {
  int pid = 0;
  std::string name;
  Bytes memory{0};
};

// One tenant on one GPU.
struct TenantUse {
  std::string name;
  int gpu = 0;
  Bytes used{0};
  Bytes swapped_out{0};  // part of `used` in the host's memory
  Bytes limit{0};
  double used_percent = 0;   // of the device's time, in the last second
  double share_percent = 0;  // what the policy gives it
  bool is_high_priority = false;
  // In the last second.
  double copied_in = 0;  // bytes to the device
  double copied_out = 0;
  double encoded = 0;  // pixels
  double decoded = 0;
  std::vector<ProcessUse> processes;  // those with memory there
};

struct GpuUse {
  std::optional<Bytes> memory;  // nullopt: not known
  bool is_drained = false;
};

struct GpuTop {
  std::string policy;
  std::vector<GpuUse> gpus;
  std::vector<TenantUse> tenants;
};

// The answer to {"request":"ps"}.
Result<GpuTop> read_gpu_top(const JsonReader& answer);

// The use of each GPU by each tenant in earlier samples.
class GpuTopHistory {
 public:
  static constexpr std::size_t kSamples = 60;
  void add(const GpuTop& now);
  // Oldest first, at most kSamples; empty for a new tenant.
  const std::deque<double>& used_percent(const std::string& tenant, int gpu) const;

 private:
  std::map<std::pair<std::string, int>, std::deque<double>> samples_;
};

struct Screen {
  int columns = 80;
  int rows = 0;         // 0: as many as are needed
  bool is_utf8 = true;  // false: bars of '#' and '.'
  std::string title;    // in the first line, after the policy
};

// Lines that end with a newline and fit the screen. Tenants with the largest use come first; the
// last line counts what has no room.
std::string gpu_top_screen(const GpuTop& now, const GpuTopHistory& history, const Screen& screen);

}  // namespace regatta::report
