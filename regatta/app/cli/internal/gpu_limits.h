// cli/internal/gpu_limits.h: a tenant's limits, and the daemon's socket, as options of commands.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "regatta/base/core/result.h"
#include "regatta/gpu/sharing/slice.h"

namespace regatta::cli {

struct LimitOptions {
  std::string memory;
  std::string compute;
  std::string priority;
  std::string on_fault;  // of the operator's orders alone
  int weight = 0;
  std::optional<int> gpu;
};

void add_socket_option(CLI::App& command, std::string& socket);
// A program and its arguments, after --.
void add_program(CLI::App& command, std::vector<std::string>& program);
// kInvalidInput: the program is the empty text; its arguments may be.
Status check_program(const std::vector<std::string>& program);
// The tenant, as an argument of its own.
void add_tenant(CLI::App& command, std::string& name);
void add_limit_options(CLI::App& command, LimitOptions& options);
void add_fault_option(CLI::App& command, LimitOptions& options);

// kInvalidInput names the option.
Result<sharing::GpuSlice> limits_of(const LimitOptions& options);
// The same, added to what the daemon is asked.
Status add_limits(nlohmann::json& request, const LimitOptions& options);

}  // namespace regatta::cli
