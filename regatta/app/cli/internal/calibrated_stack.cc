#include "regatta/app/cli/internal/calibrated_stack.h"

#include <cstdio>
#include <filesystem>
#include <optional>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/json.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/file.h"
#include "regatta/planning/plan/plan_search.h"

namespace regatta::cli {
namespace {

// Nothing where the user never calibrated the cluster.
Result<std::optional<cost::StackCalibration>> load_calibration(const std::string& path) {
  std::error_code ignored;
  if (!std::filesystem::exists(path, ignored)) return std::optional<cost::StackCalibration>{};
  const Result<std::string> text = os::read_text_file(path, JsonLimits{}.size_max);
  if (!text) {
    return Error{Code::kInvalidInput,
                 text.error().message + "; remove it and run `regatta plan calibrate` again"};
  }
  REGATTA_TRY(calibration, cost::parse_stack_calibration(*text, path));
  return std::optional(std::move(calibration));
}

// Why the calibration does not count; "" where it does.
std::string why_unused(const cost::StackCalibration& calibration, const std::string& path,
                       const std::string& stack, const std::string& device) {
  if (!stack.empty() && stack != calibration.stack) {
    return fmt::format("{} is of stack {} and is not used for {}", path, calibration.stack, stack);
  }
  if (device != calibration.device) {
    return fmt::format(
        "{} is of runs on {}, and the cluster has {}: it is not used; run `regatta plan "
        "calibrate` with runs of this cluster",
        path, printable(calibration.device, 40), device);
  }
  return "";
}

std::string why_used(const cost::StackCalibration& calibration, const std::string& path) {
  const std::string runs = pluralized(calibration.runs(), "run");
  if (calibration.fitted.empty()) {
    return fmt::format("stack {}, and the range of its errors on {} in {}, which moved no scalar",
                       calibration.stack, runs, path);
  }
  return fmt::format(
      "stack {} as {} calibrated it on {}: their mean error fell from {} to {}, {} for runs that "
      "were left out",
      calibration.stack, path, runs, format_percent(calibration.error_before),
      format_percent(calibration.error_after), format_percent(calibration.error_left_out));
}

void print_note(const std::string& note) {
  std::fprintf(stderr, "regatta: note: %s\n", note.c_str());
}

}  // namespace

std::string calibrated_path(const std::string& cluster_path) {
  std::filesystem::path path(cluster_path);
  return path.replace_extension(".calibrated.json").string();
}

Result<std::shared_ptr<const cost::SoftwareStack>> stack_of(const std::string& name,
                                                            const workload::Job& job,
                                                            const topo::Cluster& cluster,
                                                            const std::string& cluster_path) {
  const auto chosen = plan::choose_software_stack(name, job, cluster);
  if (!chosen) return Error{chosen.error().code, "--stack: " + chosen.error().message};
  const auto as_shipped = [&] { return std::make_shared<const cost::SoftwareStack>(**chosen); };
  const std::string path = calibrated_path(cluster_path);
  REGATTA_TRY(calibration, load_calibration(path));
  if (!calibration) return as_shipped();
  const std::string why =
      why_unused(*calibration, path, name, cluster.type_of(ServerId{0}).device.name);
  if (!why.empty()) {
    print_note(why);
    return as_shipped();
  }
  print_note(why_used(*calibration, path));
  return std::make_shared<const cost::SoftwareStack>(
      cost::calibrated(*cost::find_software_stack(calibration->stack), *calibration));
}

}  // namespace regatta::cli
