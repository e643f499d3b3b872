// report/gpu_report.h: the answers of the GPU daemon as text: tenants, their limits and their use
// of GPUs. Pure.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"

namespace regatta::report {

// `regatta gpu ps`: a row for each tenant and GPU, from the answer to `ps`.
std::string gpu_tenants_table(const nlohmann::json& answer);
// One tenant's limits in a line.
std::string gpu_tenant_text(const nlohmann::json& tenant);
// `regatta gpu drain`: a line about one GPU of the answer.
std::string gpu_drain_text(const nlohmann::json& gpu);

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

// Parses the daemon's answer to {"request":"ps"}. kInvalidInput: the answer is of another version.
Result<GpuTop> parse_gpu_top(const std::string& text);

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
