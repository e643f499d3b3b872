// trainer/internal/checkpoint_manifest.h: the newest checkpoint of a training, as its manifest says
// (runtime/train/README.md).
#pragma once

#include <optional>
#include <string>

namespace regatta::trainer {

struct CheckpointManifest {
  int step = 0;
  std::string text;  // JSON
};

// FOLDER/step-N/manifest.json with the highest N. Nothing: there is none.
std::optional<CheckpointManifest> newest_manifest(const std::string& folder);

}  // namespace regatta::trainer
