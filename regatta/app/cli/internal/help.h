// cli/internal/help.h: the look of `regatta COMMAND --help`, and of the programs beside it.
#pragma once

#include <memory>

#include <CLI/CLI.hpp>

namespace regatta::cli {

// Usage with everything that must be given, then arguments, options with their default, commands
// and the example.
std::shared_ptr<CLI::FormatterBase> help_formatter();

}  // namespace regatta::cli
