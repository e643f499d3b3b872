// cli/internal/coll_command.h: `regatta coll`: looks into the collectives.
#pragma once

#include <CLI/CLI.hpp>

namespace regatta::cli {

// Adds the command and its own; when one of them runs, `exit_status` is set.
void add_coll_command(CLI::App& app, int& exit_status);

// `regatta coll explain`: what is chosen for a collective, and why.
void add_coll_explain(CLI::App& coll, int& exit_status);

// `regatta coll inspect`: what the ranks of a job do, and who is waited for.
void add_coll_inspect(CLI::App& coll, int& exit_status);

}  // namespace regatta::cli
