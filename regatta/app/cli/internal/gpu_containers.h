// cli/internal/gpu_containers.h: `regatta gpu enroll`, `leave` and `oci-hook`: tenants that are
// known by their cgroup; and `cdi`, which puts what they need into containers.
#pragma once

#include <CLI/CLI.hpp>

namespace regatta::cli {

void add_gpu_containers(CLI::App& gpu, int& exit_status);

void add_gpu_cdi(CLI::App& gpu, int& exit_status);

}  // namespace regatta::cli
