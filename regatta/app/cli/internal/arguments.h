// cli/internal/arguments.h: what the library that parses the command line leaves out: values with
// one-sentence complaints, words that do not exist, and its errors in the words of this program.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include <CLI/CLI.hpp>

#include "regatta/base/core/result.h"

namespace regatta::cli {

// Accepts a whole number from `low` to `high`.
CLI::Validator whole_number(long long low, long long high);

// Accepts a number above 0, at most `most`.
CLI::Validator number_up_to(double most);

// Accepts one of `words`, and offers the nearest.
CLI::Validator one_of(std::vector<std::string> words);

// The words that an option with one_of() accepts; empty of others.
std::vector<std::string> words_of(CLI::Option& option);

// Accepts any text but the empty one, for which `remedy` is said.
CLI::Validator not_empty(const std::string& remedy = "write it or leave it out");

// The command `name` of `parent`, with its help and an example below it, that calls `run`.
CLI::App* add_command(CLI::App& parent, const std::string& name, const std::string& help,
                      const std::string& example, const std::function<void()>& run);

// The first of `words` (the command line after the program's name) that names a command or an
// option which does not exist; words after "--" belong to another program. kInvalidInput names what
// exists.
Status check_words(CLI::App& app, const std::vector<std::string>& words);

// One sentence for what `error` says of the command line that `app` was given.
std::string explain(const CLI::App& app, const CLI::ParseError& error);

}  // namespace regatta::cli
