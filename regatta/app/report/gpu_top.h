// report/gpu_top.h: one picture of `regatta gpu top`: who has which part of the GPUs now, and had
// it in the last minute. Pure.
#pragma once

#include <deque>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"

namespace regatta::report {

struct ProcessUse {
  int pid = 0;
  std::string name;
  Bytes memory{0};
};

// The use of one GPU by one tenant.
struct TenantUse {
  std::string name;
  int gpu = 0;
  Bytes used{0};
  Bytes swapped_out{0};  // of these with the host
  Bytes limit{0};
  double used_percent = 0;   // of the device's time, in the last second
  double share_percent = 0;  // what the policy gives it
  bool is_high_priority = false;
  double copied_in = 0;  // bytes to the device in the last second; so are those below
  double copied_out = 0;
  double encoded = 0;  // pixels
  double decoded = 0;
  std::vector<ProcessUse> processes;  // those with memory there
};

struct GpuUse {
  std::optional<Bytes> memory;  // none: not known
  bool is_drained = false;
};

struct GpuTop {
  std::string policy;
  std::vector<GpuUse> gpus;
  std::vector<TenantUse> tenants;
};

// Parses the daemon's answer to {"ask":"ps"}. kInvalidInput for another version.
Result<GpuTop> parse_gpu_top(const std::string& text);

// The past shares of each tenant on each GPU.
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
  bool is_utf8 = true;  // else bars of '#' and '.'
  std::string title;    // of the first line, behind the policy
};

// Lines that end with a newline, none wider than the screen and no more than it has rows. Tenants
// with the largest use come first; the last line counts those without room.
std::string gpu_top_picture(const GpuTop& now, const GpuTopHistory& history, const Screen& screen);

}  // namespace regatta::report
