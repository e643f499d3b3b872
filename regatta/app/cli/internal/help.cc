#include "regatta/app/cli/internal/help.h"

#include <string>

#include <fmt/core.h>

namespace regatta::cli {
namespace {

constexpr std::size_t kTextColumn = 26;

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
    return option->get_description() +
           (standard.empty() ? "" : fmt::format(" (default: {})", standard));
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

}  // namespace regatta::cli
