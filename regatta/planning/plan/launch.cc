#include "regatta/planning/plan/launch.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/planning/plan/internal/launch/launch_rules.h"
#include "regatta/planning/plan/internal/launch/launch_script.h"

namespace regatta::plan {
namespace {

constexpr EnumNames<4> kLauncherNames = {"megatron", "megatron-bridge", "deepspeed", "torchtitan"};
static_assert(kLauncherNames.size() == kLaunchers.size());

struct OtherName {
  std::string_view name;
  Launcher launcher;
};
constexpr std::array kOtherNames = {OtherName{"megatron-lm", Launcher::kMegatron},
                                    OtherName{"torchrun", Launcher::kTorchtitan}};

// "The search was bound to what megatron runs: zero 0 or 1; pp 1", over several lines.
std::vector<std::string> bound_notes(const LaunchInput& input) {
  if (input.bounds.empty()) return {};
  std::vector<std::string> lines = {"The search was bound to what the framework runs:"};
  std::string line;
  for (const std::string& bound : input.bounds) {
    if (!line.empty() && line.size() + bound.size() > 90) lines.push_back("  " + line);
    if (!line.empty() && line.size() + bound.size() > 90) line.clear();
    line += (line.empty() ? "" : " ") + bound + ";";
  }
  lines.push_back("  " + line);
  return lines;
}

}  // namespace

std::string one_line(std::string text) {
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < 0x20 || c == 0x7f; }, '?');
  return text;
}

std::string to_string(Launcher launcher) {
  return enum_name(kLauncherNames, launcher);
}

std::optional<Launcher> launcher_named(std::string_view name) {
  for (const OtherName& other : kOtherNames)
    if (other.name == name) return other.launcher;
  return parse_enum<Launcher>(kLauncherNames, name);
}

std::vector<std::string> launcher_names() {
  std::vector<std::string> names(kLauncherNames.begin(), kLauncherNames.end());
  for (const OtherName& other : kOtherNames)
    names.emplace_back(other.name);
  return names;
}

int warmup_steps(const LaunchInput& input) {
  return std::min(100, input.steps / 10);
}

void FlagArray::add_expanded(std::string_view flag, std::string_view value) {
  lines_.push_back(fmt::format("{} {}", flag, value));
}

std::string FlagArray::text() const {
  std::string text = name_ + "=(\n";
  for (const std::string& line : lines_)
    text += "  " + line + "\n";
  return text + ")\n";
}

std::string FlagArray::use() const {
  return "\"${" + name_ + "[@]}\"";
}

std::string shell_word(std::string_view text) {
  const auto is_plain = [](unsigned char c) {
    return std::isalnum(c) != 0 ||
           std::string_view("._/=:,+-").find(static_cast<char>(c)) != std::string_view::npos;
  };
  if (!text.empty() && std::all_of(text.begin(), text.end(), is_plain)) return std::string(text);
  std::string word = "'";
  for (const char c : text)
    word += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return word + "'";
}

std::string script_head(const LaunchInput& input, const std::vector<std::string>& notes) {
  const std::string& preset = input.model.preset;
  std::string head = fmt::format(
      "# {}: {} on {} x {} devices, {}\n# global batch {}, {}\n", one_line(input.job_name),
      preset.empty() ? "a model" : one_line(preset), input.servers, input.devices_per_server,
      to_string(input.strategy), input.global_batch, to_string(input.precision));
  if (input.step > Seconds{})
    head += fmt::format("# Predicted: {} a step.\n", format_seconds(input.step));
  for (const std::string& note : notes)
    head += "# " + one_line(note) + "\n";
  for (const std::string& note : bound_notes(input))
    head += "# " + one_line(note) + "\n";
  return head;
}

std::vector<int> layers_of_parts(const workload::ModelShape& model,
                                 const workload::Strategy& strategy) {
  std::vector<int> layers;
  for (int part = 0; part < strategy.pp * parts_per_stage(strategy); ++part)
    layers.push_back(part_layers(model, strategy, part).count);
  return layers;
}

bool are_equal(std::span<const int> layers) {
  return std::all_of(layers.begin(), layers.end(),
                     [&](int count) { return count == layers.front(); });
}

int sharing_ranks(const workload::Strategy& strategy) {
  if (strategy.zero == 0) return strategy.cp;
  return strategy.shard_ranks > 0 ? strategy.shard_ranks : strategy.dp * strategy.cp;
}

Error unsupported_by(Launcher launcher, std::string_view what, std::string_view remedy) {
  return {Code::kUnsupported, fmt::format("{}: {}; {}", to_string(launcher), what, remedy)};
}

Result<std::string> launch_arguments(Launcher launcher, const LaunchInput& input) {
  REGATTA_TRY(count, workload::micro_batches(input.model, input.strategy, input.global_batch));
  const long long devices = static_cast<long long>(input.servers) * input.devices_per_server;
  if (input.servers < 1 || input.devices_per_server < 1 || devices != input.strategy.world_size()) {
    return Error{Code::kInvalidInput,
                 fmt::format("{} servers of {} devices: the strategy has {} ranks; name servers "
                             "and devices whose product that is",
                             input.servers, input.devices_per_server, input.strategy.world_size())};
  }
  REGATTA_TRY_DO(check_launch_rules(launcher, {.model = input.model,
                                               .strategy = input.strategy,
                                               .precision = input.precision,
                                               .micro_batches = count}));
  switch (launcher) {
    case Launcher::kMegatron:
      return megatron_script(input);
    case Launcher::kMegatronBridge:
      return megatron_bridge_script(input);
    case Launcher::kDeepspeed:
      return deepspeed_script(input, count);
    case Launcher::kTorchtitan:
      break;
  }
  return torchtitan_script(input, count);
}

}  // namespace regatta::plan
