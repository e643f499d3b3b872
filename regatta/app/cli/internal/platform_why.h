// cli/internal/platform_why.h: `regatta why`: why a job of the platform waits, and until when.
#pragma once

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

namespace regatta::cli {

// Prints an answer of GET /v1/jobs/{job}/why.
void print_why(const nlohmann::json& why);

void add_platform_why_command(CLI::App& app, int& exit_status);

}  // namespace regatta::cli
