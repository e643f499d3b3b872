#include "regatta/app/cli/internal/arguments.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <system_error>
#include <utility>

#include <fmt/core.h>

#include "regatta/base/core/text.h"

namespace regatta::cli {
namespace {

std::string in_quotes(const std::string& word) {
  return "'" + printable(word, 60) + "'";
}

// "did you mean 'plan'?", or all of `known` when none is near.
std::string remedy_for(const std::string& word, const std::vector<std::string>& known) {
  const std::string nearest = nearest_word(word, known);
  return nearest.empty() ? "choose one of " + join(known, ", ")
                         : fmt::format("did you mean {}?", in_quotes(nearest));
}

std::vector<std::string> command_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({}))
    names.push_back(command->get_name());
  return names;
}

bool contains(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames())
      names.push_back("--" + name);
    for (const std::string& name : option->get_snames())
      names.push_back("-" + name);
  }
  if (app.get_fallthrough() && app.get_parent() != nullptr) {
    for (const std::string& name : option_names(*app.get_parent())) {
      if (!contains(names, name)) names.push_back(name);
    }
  }
  return names;
}

// The option of this name of `app`, or of the commands above it where it takes theirs, too.
const CLI::Option* find_option(const CLI::App& app, const std::string& name) {
  const CLI::Option* option = app.get_option_no_throw(name);
  const bool goes_on = option == nullptr && app.get_fallthrough() && app.get_parent() != nullptr;
  return goes_on ? find_option(*app.get_parent(), name) : option;
}

// "-3" is a value, "--steps=3" is an option with its value.
bool is_option(const std::string& word) {
  return word.size() > 1 && word[0] == '-' &&
         (word[1] == '-' || std::isalpha(static_cast<unsigned char>(word[1])) != 0);
}

// "lab fault": `app` with the commands above it, without the program.
std::string full_name(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  if (parent == nullptr) return "";
  const std::string above = full_name(*parent);
  return above.empty() ? app.get_name() : above + " " + app.get_name();
}

// "lab fault: ", "" for the program itself: what messages start with.
std::string prefix_of(const CLI::App& app) {
  const std::string name = full_name(app);
  return name.empty() ? name : name + ": ";
}

// The command that was given last: where the error is.
const CLI::App& innermost(const CLI::App& app) {
  const auto given = app.get_subcommands();
  return given.empty() ? app : innermost(*given.front());
}

// "regatta plan JOB --cluster CLUSTER": with everything that must be given, a program and its
// arguments last. An argument that has a text of its own shows that: a word to be written as it
// stands.
std::string required_form(const CLI::App& app) {
  const CLI::App* parent = app.get_parent();
  std::string form = (parent == nullptr ? "" : required_form(*parent) + " ") + app.get_name();
  std::string program;
  for (const CLI::Option* option : app.get_options()) {
    if (!option->get_required()) continue;
    if (option->get_positional() && option->get_expected_max() > 1) {
      program = " -- " + option->get_name();
      continue;
    }
    const std::string& example = option->get_option_text();
    form += " " + (example.empty() ? option->get_name() : example);
    if (!option->get_positional()) form += " " + option->get_type_name();
  }
  return form + program;
}

Status check_option(const CLI::App& app, const std::string& word) {
  const std::size_t equals = word.find('=');
  const std::string name = word.substr(0, equals);
  const CLI::Option* option = find_option(app, name);
  std::string complaint;
  if (option == nullptr) {
    // The words after the node's name are another program's command line.
    const std::string remedy = app.get_name() == "exec"
                                   ? "put -- before the command that it belongs to"
                                   : remedy_for(name, option_names(app));
    complaint = fmt::format("there is no option {}; {}", in_quotes(name), remedy);
  } else if (equals != std::string::npos && option->get_expected_min() == 0) {
    complaint = fmt::format("{0} takes no value; write {0} alone", name);
  }
  if (complaint.empty()) return {};
  return Error{Code::kInvalidInput, prefix_of(app) + complaint};
}

}  // namespace

CLI::Validator whole_number(long long low, long long high) {
  const auto check = [low, high](std::string& text) -> std::string {
    long long value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, failed] = std::from_chars(text.data(), end, value);
    const bool fits = failed == std::errc() && stop == end && value >= low && value <= high;
    if (fits) return {};
    return fmt::format("{} is not a whole number from {} to {}", in_quotes(text), low, high);
  };
  return {check, ""};
}

CLI::Validator number_up_to(double most) {
  const auto check = [most](std::string& text) -> std::string {
    double value = 0;
    const char* end = text.data() + text.size();
    const auto [stop, failed] = std::from_chars(text.data(), end, value);
    // Also what is no number fails the comparisons.
    if (failed == std::errc() && stop == end && value > 0 && value <= most) return {};
    return fmt::format("{} is not a number above 0, at most {:.0f}", in_quotes(text), most);
  };
  return {check, ""};
}

CLI::Validator one_of(std::vector<std::string> words) {
  const std::string name = join(words, "|");  // words_of() reads it
  const auto check = [words = std::move(words)](std::string& text) -> std::string {
    if (contains(words, text)) return {};
    return fmt::format("{} is not known; {}", in_quotes(text),
                       words.size() == 1 ? "write " + words.front() : remedy_for(text, words));
  };
  return {check, "", name};
}

std::vector<std::string> words_of(CLI::Option& option) {
  try {
    const std::string& name = option.get_validator(0)->get_name();
    return name.empty() ? std::vector<std::string>() : split(name, '|');
  } catch (const CLI::OptionNotFound&) {
    return {};
  }
}

CLI::Validator not_empty(const std::string& remedy) {
  const auto check = [remedy](std::string& text) -> std::string {
    return text.empty() ? "the text is empty; " + remedy : "";
  };
  return {check, ""};
}

CLI::App* add_command(CLI::App& parent, const std::string& name, const std::string& help,
                      const std::string& example, const std::function<void()>& run) {
  CLI::App* command = parent.add_subcommand(name, help);
  command->footer("Example:\n  " + example);
  command->callback(run);
  return command;
}

Status check_words(CLI::App& app, const std::vector<std::string>& words) {
  const CLI::App* place = &app;
  bool is_value = false;  // of the option before
  for (const std::string& word : words) {
    if (word == "--") break;
    if (std::exchange(is_value, false)) continue;
    if (is_option(word)) {
      REGATTA_TRY_DO(check_option(*place, word));
      is_value = word.find('=') == std::string::npos && !command_names(*place).empty() &&
                 place->get_option(word)->get_expected_min() > 0;
      continue;
    }
    const std::vector<std::string> commands = command_names(*place);
    if (commands.empty()) continue;
    if (!contains(commands, word)) {
      // A command with commands of its own may take an argument instead, as `plan JOB` does.
      if (place->get_require_subcommand_min() == 0) continue;
      return Error{Code::kInvalidInput,
                   fmt::format("{}there is no command {}; {}", prefix_of(*place), in_quotes(word),
                               remedy_for(word, commands))};
    }
    place = place->get_subcommand(word);
  }
  return {};
}

std::string explain(const CLI::App& app, const CLI::ParseError& error) {
  const CLI::App& place = innermost(app);
  const std::string prefix = prefix_of(place);
  const std::string message = error.what();
  // The library's messages start with the option: "--cluster: 1 required FILE missing".
  const std::string subject = message.substr(0, message.find_first_of(": "));
  const std::string name = full_name(place);
  const std::string help =
      fmt::format("see {}{}{} --help", app.get_name(), name.empty() ? "" : " ", name);
  const std::vector<std::string> commands = command_names(place);
  if (!commands.empty() && place.get_require_subcommand_min() > 0)
    return prefix + "a command is missing; choose one of " + join(commands, ", ");
  switch (static_cast<CLI::ExitCodes>(error.get_exit_code())) {
    case CLI::ExitCodes::RequiredError:
      return fmt::format("{}{} is missing; write it like: {}", prefix, subject,
                         required_form(place));
    case CLI::ExitCodes::ArgumentMismatch:
      if (message.find("At Most") != std::string::npos)
        return prefix + subject + " is given twice; keep one";
      return fmt::format("{}{} needs a value; {}", prefix, subject, help);
    case CLI::ExitCodes::ExcludesError:
      return prefix + message + "; give one of them";
    case CLI::ExitCodes::ExtrasError:
      return fmt::format("{}{} is one argument too many; {}", prefix,
                         in_quotes(app.remaining(true).front()), help);
    default:
      return prefix + message;
  }
}

}  // namespace regatta::cli
