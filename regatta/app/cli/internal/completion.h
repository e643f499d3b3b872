// cli/internal/completion.h: completion of the command line in a shell: `regatta completion SHELL`
// prints the shell's part, which asks the program for the words that may come next.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>

namespace regatta::cli {

// The first word of the command line by which the shell's part asks.
inline constexpr std::string_view kCompleteWord = "__complete";

void add_completion_command(CLI::App& app, int& exit_status);

// Words that may stand in place of the last one of `words`, which may be empty, in order. Names of
// jobs and nodes come from the controller, where it answers within half a second. ":files" alone: a
// name of a file stands here.
std::vector<std::string> complete_words(CLI::App& app, const std::vector<std::string>& words);

}  // namespace regatta::cli
