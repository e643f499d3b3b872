// cli/internal/gpu_table.h: what the GPU daemon answers, as text for people.
#pragma once

#include <string>

#include <nlohmann/json.hpp>

namespace regatta::cli {

// The answer to `ps`: a row for each tenant and GPU.
std::string gpu_table(const nlohmann::json& books);

// One tenant's limits in a line.
std::string gpu_tenant_text(const nlohmann::json& tenant);

}  // namespace regatta::cli
