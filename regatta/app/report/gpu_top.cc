#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>

#include <fmt/core.h>

#include "regatta/app/report/gpu_report.h"
#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/units.h"

namespace regatta::report {
namespace {

constexpr int kNameColumns = 16;
constexpr int kBytesColumns = 10;
constexpr int kLeastBar = 6;
constexpr int kMostBar = 40;

TenantUse read_use(const JsonReader& tenant, const JsonReader& memory) {
  TenantUse use;
  tenant.read("name", use.name);
  tenant.read("share_percent", use.share_percent);
  use.is_high_priority = tenant.at("priority").as<std::string>() == "high";
  memory.read("gpu", use.gpu);
  memory.read("used_bytes", use.used);
  memory.read_if("swapped_bytes", use.swapped_out);
  memory.read("limit_bytes", use.limit);
  const auto is_there = [&](const JsonReader& one) { return one.at("gpu").as<int>() == use.gpu; };
  for (const JsonReader& time : tenant.at("time").items())
    if (is_there(time)) time.read("last_second_percent", use.used_percent);
  const std::map<std::string, double*> engines = {{"copy_to_device", &use.copied_in},
                                                  {"copy_from_device", &use.copied_out},
                                                  {"encode", &use.encoded},
                                                  {"decode", &use.decoded}};
  for (const JsonReader& one : tenant.at("engines").items()) {
    const auto engine = engines.find(one.at("engine").as<std::string>());
    if (engine != engines.end() && is_there(one)) one.read("last_second", *engine->second);
  }
  for (const JsonReader& process : tenant.at("processes").items()) {
    for (const JsonReader& held : process.at("memory").items()) {
      if (!is_there(held)) continue;
      use.processes.push_back({process.at("pid").as<int>(), process.at("name").as<std::string>(),
                               held.at("used_bytes").as<Bytes>()});
    }
  }
  return use;
}

// `part` of `columns`, from 0 to 1.
std::string bar(double part, int columns, bool is_utf8) {
  part = std::isfinite(part) ? std::clamp(part, 0.0, 1.0) : 0.0;
  // A small part is visible, and only a full bar looks full.
  auto full = static_cast<int>(std::lround(part * columns));
  if (part > 0) full = std::max(full, 1);
  if (part < 1) full = std::min(full, columns - 1);
  std::string text;
  for (int i = 0; i < columns; ++i)
    text += is_utf8 ? (i < full ? "█" : "░") : (i < full ? "#" : ".");
  return text;
}

// The newest samples, one column each, to the right.
std::string curve(const std::deque<double>& percents, int columns, bool is_utf8) {
  static constexpr std::array kUtf8 = {" ", "▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"};
  static constexpr std::array kPlain = {" ", ".", ".", ":", ":", "-", "=", "+", "#"};
  const std::size_t shown = std::min(percents.size(), as_index(columns));
  std::string text(as_index(columns) - shown, ' ');
  for (std::size_t i = percents.size() - shown; i < percents.size(); ++i) {
    const double part = std::clamp(percents[i] / 100, 0.0, 1.0);
    const auto level = static_cast<std::size_t>(std::ceil(part * (kUtf8.size() - 1)));
    text += is_utf8 ? kUtf8[level] : kPlain[level];
  }
  return text;
}

std::string cut(const std::string& text, std::size_t columns) {
  if (text.size() <= columns) return text + std::string(columns - text.size(), ' ');
  return text.substr(0, columns - 2) + "..";
}

// How wide the pictures of a row may be.
struct Columns {
  int bar = 0;    // of memory, and of time
  int curve = 0;  // 0: none
};

Columns divide(int columns) {
  // Name, mark, used, "of", limit, percent, "of", percent, and what stands between them.
  constexpr int kText = 2 + kNameColumns + 2 + kBytesColumns + 4 + kBytesColumns + 2 + 5 + 4 + 7;
  const int rest = columns - kText - 2;
  Columns shares{.bar = std::clamp(rest / 4, kLeastBar, kMostBar)};
  const int left = rest - 2 * shares.bar - 2;
  if (left >= 10) shares.curve = std::min(left, static_cast<int>(GpuTopHistory::kSamples));
  return shares;
}

double part_of(Bytes used, Bytes whole) {
  if (whole.value <= 0) return 0;
  return static_cast<double>(used.value) / static_cast<double>(whole.value);
}

std::string gpu_line(const GpuTop& now, int gpu, const Screen& screen) {
  Bytes used{0};
  double percent = 0;
  for (const TenantUse& use : now.tenants) {
    if (use.gpu != gpu) continue;
    used = {used.value + use.used.value - use.swapped_out.value};
    percent += use.used_percent;
  }
  const GpuUse& device = at(now.gpus, gpu);
  std::string text = fmt::format("GPU {}", gpu);
  const int width = std::clamp((screen.columns - 60) / 2, kLeastBar, kMostBar);
  if (device.memory) {
    text += fmt::format("  memory {} {} of {}",
                        bar(part_of(used, *device.memory), width, screen.is_utf8),
                        format_bytes(used), format_bytes(*device.memory));
  } else {
    text += fmt::format("  memory {}", format_bytes(used));
  }
  text += fmt::format("  time {} {:.0f} %", bar(percent / 100, width, screen.is_utf8), percent);
  return text + (device.is_drained ? "  drained" : "");
}

std::string tenant_line(const TenantUse& use, const GpuTopHistory& history, const Columns& columns,
                        bool is_utf8) {
  std::string text = fmt::format(
      "  {} {} {} {:>{}} of {:>{}} {} {:5.1f} of {:5.1f} %", cut(use.name, kNameColumns),
      use.is_high_priority ? "!" : " ", bar(part_of(use.used, use.limit), columns.bar, is_utf8),
      format_bytes(use.used), kBytesColumns, format_bytes(use.limit), kBytesColumns,
      bar(use.used_percent / 100, columns.bar, is_utf8), use.used_percent, use.share_percent);
  if (columns.curve > 0)
    text += "  " + curve(history.used_percent(use.name, use.gpu), columns.curve, is_utf8);
  return text;
}

std::string process_line(const ProcessUse& process, const Columns& columns) {
  const std::string name = fmt::format("{} {}", process.pid, process.name);
  return fmt::format("    {} {:>{}}", cut(name, as_index(kNameColumns + 1 + columns.bar)),
                     format_bytes(process.memory), kBytesColumns);
}

// Its swapped memory and its work on copy and codec engines; "" for none.
std::string further_line(const TenantUse& use) {
  std::vector<std::string> parts;
  const auto rate = [](double bytes) { return format_bytes_per_second({bytes}); };
  if (use.swapped_out.value > 0) parts.push_back(format_bytes(use.swapped_out) + " away");
  if (use.copied_in > 0) parts.push_back(rate(use.copied_in) + " to the GPU");
  if (use.copied_out > 0) parts.push_back(rate(use.copied_out) + " from it");
  if (use.encoded > 0) parts.push_back(fmt::format("encodes {:.4g} Mpixel/s", use.encoded * 1e-6));
  if (use.decoded > 0) parts.push_back(fmt::format("decodes {:.4g} Mpixel/s", use.decoded * 1e-6));
  return parts.empty() ? "" : "    " + join(parts, ", ");
}

// Characters, not bytes.
std::string cut_line(const std::string& line, int columns) {
  int shown = 0;
  std::size_t end = 0;
  while (end < line.size()) {
    std::size_t next = end + 1;
    while (next < line.size() && (static_cast<unsigned char>(line[next]) & 0xc0U) == 0x80U)
      ++next;
    if (++shown > columns) break;
    end = next;
  }
  return line.substr(0, end);
}

// Largest use first; tenants without any are sorted by name, so that rows do not jump.
std::vector<TenantUse> sorted_uses(const GpuTop& now, int gpu) {
  std::vector<TenantUse> uses;
  for (const TenantUse& use : now.tenants) {
    if (use.gpu == gpu) uses.push_back(use);
  }
  std::ranges::sort(uses, [](const TenantUse& a, const TenantUse& b) {
    const auto left = std::lround(a.used_percent);
    const auto right = std::lround(b.used_percent);
    return left != right ? left > right : a.name < b.name;
  });
  return uses;
}

}  // namespace

Result<GpuTop> read_gpu_top(const JsonReader& answer) {
  GpuTop top;
  answer.read("policy", top.policy);
  for (const JsonReader& gpu : answer.at("gpus").items()) {
    GpuUse& use = top.gpus.emplace_back();
    gpu.read("drained", use.is_drained);
    gpu.read_if("memory_bytes", use.memory);
  }
  for (const JsonReader& tenant : answer.at("tenants").items()) {
    for (const JsonReader& memory : tenant.at("memory").items())
      top.tenants.push_back(read_use(tenant, memory));
  }
  return answer.finish(top);
}

void GpuTopHistory::add(const GpuTop& now) {
  std::map<std::pair<std::string, int>, std::deque<double>> samples;  // of those that are there
  for (const TenantUse& use : now.tenants) {
    auto& of_one = samples[{use.name, use.gpu}];
    if (const auto known = samples_.find({use.name, use.gpu}); known != samples_.end())
      of_one = std::move(known->second);
    of_one.push_back(use.used_percent);
    if (of_one.size() > kSamples) of_one.pop_front();
  }
  samples_ = std::move(samples);
}

const std::deque<double>& GpuTopHistory::used_percent(const std::string& tenant, int gpu) const {
  static const std::deque<double> none;
  const auto found = samples_.find({tenant, gpu});
  return found == samples_.end() ? none : found->second;
}

std::string gpu_top_screen(const GpuTop& now, const GpuTopHistory& history, const Screen& screen) {
  const Columns columns = divide(screen.columns);
  std::vector<std::string> lines = {
      "policy " + now.policy + (screen.title.empty() ? "" : "  " + screen.title),
      fmt::format("  {:<{}}   {:<{}} {:>{}}    {:>{}} {:<{}} {:>5}    {:>7}{}", "tenant",
                  kNameColumns, "memory", columns.bar, "used", kBytesColumns, "limit",
                  kBytesColumns, "time", columns.bar, "had", "part",
                  columns.curve > 0 ? "  before" : "")};
  for (int gpu = 0; gpu < static_cast<int>(now.gpus.size()); ++gpu) {
    lines.push_back(gpu_line(now, gpu, screen));
    for (const TenantUse& use : sorted_uses(now, gpu)) {
      lines.push_back(tenant_line(use, history, columns, screen.is_utf8));
      if (const std::string line = further_line(use); !line.empty()) lines.push_back(line);
      for (const ProcessUse& process : use.processes)
        lines.push_back(process_line(process, columns));
    }
  }
  if (now.tenants.empty()) lines.emplace_back("no tenant; start one with regatta gpu run");
  const std::size_t rows = as_index(std::max(screen.rows, 0));
  if (rows > 0 && lines.size() > rows) {
    const std::size_t more = lines.size() - rows + 1;
    lines.resize(rows - 1);
    lines.push_back(fmt::format("and {} lines more; make the window higher", more));
  }
  std::string text;
  for (const std::string& line : lines)
    text += cut_line(line, screen.columns) + "\n";
  return text;
}

}  // namespace regatta::report
