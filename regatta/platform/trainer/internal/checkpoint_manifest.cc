#include "regatta/platform/trainer/internal/checkpoint_manifest.h"

#include <filesystem>
#include <system_error>
#include <utility>

#include "regatta/base/core/text.h"
#include "regatta/base/os/file.h"

namespace regatta::trainer {

std::optional<CheckpointManifest> newest_manifest(const std::string& folder) {
  constexpr std::string_view kPrefix = "step-";
  std::optional<CheckpointManifest> newest;
  if (folder.empty()) return newest;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    const std::string name = entry.path().filename().string();
    if (!name.starts_with(kPrefix)) continue;
    // Leading zeros: "step-00000015".
    const std::size_t digits = name.find_first_not_of('0', kPrefix.size());
    const auto step = parse_number<int>(digits == std::string::npos ? "0" : name.substr(digits));
    if (!step || (newest && newest->step >= *step)) continue;
    auto text = os::read_file(entry.path().string() + "/manifest.json");
    if (text) newest = CheckpointManifest{.step = *step, .text = *std::move(text)};
  }
  return newest;
}

}  // namespace regatta::trainer
