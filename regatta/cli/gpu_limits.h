// cli/gpu_limits.h: a tenant's limits, and the daemon's socket, as options of commands.
#pragma once

#include <string>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "regatta/core/result.h"
#include "regatta/vgpu/oci/slice.h"

namespace regatta::cli {

struct LimitOptions {
  std::string memory;
  std::string compute;
  std::string priority;
  std::string on_fault;  // of the operator's orders alone
  int weight = 0;
  int gpu = 0;
};

void add_socket_option(CLI::App& command, std::string& socket);
void add_limit_options(CLI::App& command, LimitOptions& options);
void add_fault_option(CLI::App& command, LimitOptions& options);

// kInvalidInput names the option.
Result<vgpu::Slice> limits_of(const LimitOptions& options);
// The same, added to what the daemon is asked.
Status add_limits(nlohmann::json& request, const LimitOptions& options);

}  // namespace regatta::cli
