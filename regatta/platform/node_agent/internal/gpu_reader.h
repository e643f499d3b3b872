// node_agent/internal/gpu_reader.h: what NVIDIA GPUs do and whether they work, by the library of
// their driver (NVML), which is found when the program runs.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>

#include "regatta/base/core/result.h"

namespace regatta::node_agent {

struct GpuReading {
  std::optional<int> use_percent;     // of the driver's latest sampling period (1/6 s to 1 s)
  std::optional<int> memory_percent;  // of its memory in use
  bool has_failed = false;  // lost, waits for a reset, or a row of its memory could not be replaced
};

// The driver may hang in any call when a GPU has fallen off its bus: read in a process or thread
// that nobody waits for.
class GpuReader {
 public:
  // Loads and starts the library; it stays loaded. kUnsupported: it is not there, too old, or finds
  // no GPU.
  static Result<GpuReader> open(const std::string& library = "libnvidia-ml.so.1");
  int count() const { return count_; }
  // `index`: from 0 to count(), in the order of PCI addresses.
  GpuReading read(int index) const;

 private:
  struct Functions;
  GpuReader(std::shared_ptr<const Functions> functions, int count)
      : functions_(std::move(functions)), count_(count) {}
  std::shared_ptr<const Functions> functions_;
  int count_ = 0;
};

}  // namespace regatta::node_agent
