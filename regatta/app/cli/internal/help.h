// cli/internal/help.h: the layout of `regatta COMMAND --help`, and of the programs beside it.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

namespace regatta::cli {

// Usage with all required arguments, then arguments, options with their defaults, commands and the
// example.
std::shared_ptr<CLI::FormatterBase> help_formatter();

// `help COMMAND...` is `COMMAND... --help`, `version` is `--version`; other words stay as they are.
std::vector<std::string> with_help_words(std::vector<std::string> words);

}  // namespace regatta::cli
