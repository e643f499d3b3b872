#include "regatta/app/cli/internal/completion.h"

#include <algorithm>
#include <cstdio>
#include <iterator>
#include <memory>
#include <utility>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/platform_client.h"
#include "regatta/base/core/text.h"

namespace regatta::cli {
namespace {

constexpr Seconds kAnswerLimit{0.5};
constexpr const char* kFiles = ":files";

constexpr const char* kBash = R"(# regatta completion bash > /etc/bash_completion.d/regatta
_regatta() {
  local IFS=$'\n'
  local reply=($("${COMP_WORDS[0]}" __complete "${COMP_WORDS[@]:1:COMP_CWORD}" 2>/dev/null))
  if [[ "${reply[0]}" == ":files" ]]; then
    compopt -o default
    COMPREPLY=()
  else
    COMPREPLY=("${reply[@]}")
  fi
}
complete -F _regatta regatta
)";

constexpr const char* kZsh = R"(#compdef regatta
# regatta completion zsh > ~/.zfunc/_regatta
_regatta() {
  local -a reply
  reply=("${(@f)$("${words[1]}" __complete "${(@)words[2,CURRENT]}" 2>/dev/null)}")
  if [[ "${reply[1]}" == ":files" ]]; then
    _files
  else
    compadd -- "${reply[@]}"
  fi
}
compdef _regatta regatta
)";

constexpr const char* kFish = R"(# regatta completion fish > ~/.config/fish/completions/regatta.fish
function __regatta_words
  set -l words (commandline -opc) (commandline -ct)
  set -l reply ($words[1] __complete $words[2..-1] 2>/dev/null)
  if test "$reply[1]" = ":files"
    __fish_complete_path (commandline -ct)
  else
    printf '%s\n' $reply
  end
end
complete -c regatta -f -a '(__regatta_words)'
)";

// Where a command line has come to before its last word.
struct Place {
  CLI::App* command = nullptr;
  CLI::Option* value_of = nullptr;  // the option whose value the last word is
  std::size_t positionals = 0;      // words that were none of an option
  ConnectionOptions connection;
};

bool takes_value(const CLI::Option& option) {
  return option.get_items_expected_min() > 0;
}

void set_connection(const std::string& option, const std::string& value, ConnectionOptions& to) {
  if (option == "--server") to.server = value;
  if (option == "--ca") to.ca_file = value;
  if (option == "--token-file") to.token_file = value;
  if (option == "--context") to.context_file = value;
}

CLI::App* subcommand(CLI::App& command, const std::string& name) {
  for (CLI::App* each : command.get_subcommands({}))
    if (each->get_name() == name) return each;
  return nullptr;
}

Place place_after(CLI::App& app, const std::vector<std::string>& words) {
  Place place{.command = &app};
  for (const std::string& word : words) {
    if (const CLI::Option* option = std::exchange(place.value_of, nullptr)) {
      set_connection(option->get_name(), word, place.connection);
      continue;
    }
    if (word.size() > 1 && word.front() == '-') {
      CLI::Option* option = place.command->get_option_no_throw(word);
      if (option != nullptr && takes_value(*option)) place.value_of = option;
      continue;
    }
    CLI::App* next = place.positionals == 0 ? subcommand(*place.command, word) : nullptr;
    if (next != nullptr)
      place.command = next;
    else
      ++place.positionals;
  }
  return place;
}

// A text of each item of a list of the controller; empty where it does not answer in time.
std::vector<std::string> listed(const ConnectionOptions& connection, const std::string& target,
                                const char* key) {
  std::vector<std::string> names;
  auto client = PlatformClient::open_for(connection, kAnswerLimit);
  if (!client) return names;
  const auto page = client->call({.target = target});
  if (!page) return names;
  for (const nlohmann::json& item : page->value("items", nlohmann::json::array()))
    names.push_back(text_in(item, key));
  return names;
}

// Handles of jobs: those that can still change where the command changes them.
std::vector<std::string> job_names(const Place& place) {
  const std::string& command = place.command->get_name();
  std::vector<std::string> phases = {""};
  if (command == "cancel") phases = {"pending", "starting", "running"};
  if (command == "why" || command == "hold" || command == "release") phases = {"pending"};
  std::vector<std::string> names;
  for (const std::string& phase : phases)
    for (std::string& name :
         listed(place.connection, "/v1/jobs?limit=500" + (phase.empty() ? "" : "&phase=" + phase),
                "handle"))
      names.push_back(std::move(name));
  return names;
}

std::vector<std::string> values_of(CLI::Option& option, const Place& place) {
  const std::string type = option.get_positional() ? option.get_name() : option.get_type_name();
  if (type == "JOB") return job_names(place);
  if (type == "NODE") return listed(place.connection, "/v1/nodes", "name");
  if (type == "QUEUE") return listed(place.connection, "/v1/queues", "name");
  if (std::vector<std::string> words = words_of(option); !words.empty()) return words;
  return {kFiles};
}

std::vector<std::string> long_option_names(const CLI::App& command) {
  std::vector<std::string> names;
  for (const CLI::Option* option : command.get_options())
    for (const std::string& name : option->get_lnames())
      names.push_back("--" + name);
  return names;
}

std::vector<std::string> candidates(const Place& place, const std::string& last) {
  if (place.value_of != nullptr) return values_of(*place.value_of, place);
  if (last.starts_with('-')) return long_option_names(*place.command);
  std::vector<std::string> names;
  if (place.positionals == 0)
    for (const CLI::App* command : place.command->get_subcommands({}))
      names.push_back(command->get_name());
  if (!names.empty()) return names;
  std::vector<CLI::Option*> positionals;
  for (CLI::Option* option : place.command->get_options())
    if (option->get_positional()) positionals.push_back(option);
  if (positionals.empty()) return long_option_names(*place.command);
  return values_of(*positionals[std::min(place.positionals, positionals.size() - 1)], place);
}

}  // namespace

std::vector<std::string> complete_words(CLI::App& app, const std::vector<std::string>& words) {
  const std::string last = words.empty() ? "" : words.back();
  std::vector<std::string> before(words.begin(), words.empty() ? words.end() : words.end() - 1);
  std::erase(before, "=");  // bash takes it for a word of its own
  const Place place = place_after(app, before);
  std::vector<std::string> found = candidates(place, last == "=" ? "" : last);
  if (found == std::vector<std::string>{kFiles}) return found;
  std::erase_if(found, [&](const std::string& word) { return !word.starts_with(last); });
  std::sort(found.begin(), found.end());
  found.erase(std::unique(found.begin(), found.end()), found.end());
  return found;
}

void add_completion_command(CLI::App& app, int& exit_status) {
  const auto shell = std::make_shared<std::string>();
  CLI::App* command =
      add_command(app, "completion", "Print what makes a shell complete commands, jobs and nodes",
                  "source <(regatta completion bash)", [shell, &exit_status] {
                    const char* text = *shell == "bash" ? kBash : *shell == "zsh" ? kZsh : kFish;
                    std::fputs(text, stdout);
                    exit_status = 0;
                  });
  command->add_option("SHELL", *shell, "bash, zsh or fish")
      ->required()
      ->check(one_of({"bash", "zsh", "fish"}));
}

}  // namespace regatta::cli
