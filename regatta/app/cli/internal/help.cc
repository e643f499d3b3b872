#include "regatta/app/cli/internal/help.h"

#include <string>
#include <utility>
#include <vector>

#include <fmt/core.h>

#include "regatta/base/core/text.h"

namespace regatta::cli {
namespace {

constexpr std::size_t kTextColumn = 26;
constexpr std::size_t kTextWidth = 84;

// Lines of at most kTextWidth, broken at spaces; the library indents them.
std::string wrapped(const std::string& text) {
  std::string lines;
  std::size_t width = 0;  // of the last line
  for (const std::string& word : split(text, ' ')) {
    const bool fits = width + 1 + word.size() <= kTextWidth;
    if (!lines.empty()) lines += fits ? " " : "\n";
    lines += word;
    width = fits && width > 0 ? width + 1 + word.size() : word.size();
  }
  return lines;
}

class HelpFormatter : public CLI::Formatter {
 public:
  HelpFormatter() {
    column_width(kTextColumn);
    label("Positionals", "Arguments");
  }

  std::string make_description(const CLI::App* app) const override {
    return app->get_description() + "\n\n";
  }

  std::string make_usage(const CLI::App* app, std::string name) const override {
    std::string usage = "Usage: " + name;
    for (const CLI::Option* option : app->get_options()) {
      if (option->get_positional())
        usage += " " + make_option_usage(option);
      else if (option->get_required())
        usage += " " + option->get_name() + " " + option->get_type_name();
    }
    if (!app->get_subcommands({}).empty()) usage += " COMMAND";
    return usage + " [OPTION...]\n";
  }

  std::string make_option_opts(const CLI::Option* option) const override {
    const bool has_value = option->get_expected_min() != 0 && !option->get_positional();
    return has_value ? " " + option->get_type_name() : "";
  }

  std::string make_option_desc(const CLI::Option* option) const override {
    const std::string standard = option->get_default_str();
    return wrapped(option->get_description() +
                   (standard.empty() ? "" : fmt::format(" (default: {})", standard)));
  }

  std::string make_subcommands(const CLI::App* app, CLI::AppFormatMode /*mode*/) const override {
    std::string text;
    for (const CLI::App* command : app->get_subcommands({}))
      text += make_subcommand(command);
    return text.empty() ? text : "\nCommands:\n" + text;
  }
};

}  // namespace

std::shared_ptr<CLI::FormatterBase> help_formatter() {
  return std::make_shared<HelpFormatter>();
}

std::vector<std::string> with_help_words(std::vector<std::string> words) {
  if (words.empty()) return words;
  if (words.front() == "version" && words.size() == 1) return {"--version"};
  if (words.front() != "help") return words;
  words.erase(words.begin());
  words.push_back("--help");
  return words;
}

}  // namespace regatta::cli
