#include "regatta/app/cli/internal/platform_access.h"

#include <cstdio>
#include <iostream>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <termios.h>
#include <unistd.h>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/app/cli/internal/time_flag.h"
#include "regatta/base/core/text.h"
#include "regatta/base/tls/certificate.h"

namespace regatta::cli {
namespace {

constexpr std::size_t kPasswordFileMost = 4096;

struct AccessOptions {
  ConnectionOptions connection;
  std::string name;
  std::string remove;
  std::string lifetime;
  std::string role;
  std::string user;
  int uses = 1;
  std::string password_file;
  bool is_join = false;
  bool asks_password = false;
  bool wants_url = false;
  bool json = false;
};

Result<int> print_login_url(const AccessOptions& options) {
  REGATTA_TRY(context, find_context(options.connection));
  REGATTA_TRY(client, PlatformClient::open(context));
  REGATTA_TRY(url, make_login_url(client, context.server));
  fmt::print("{}\n", url);
  return 0;
}

// A line from a terminal that does not show it.
Result<std::string> ask_hidden(const char* question) {
  std::fputs(question, stderr);
  termios shown{};
  const bool is_terminal = ::tcgetattr(STDIN_FILENO, &shown) == 0;
  termios hidden = shown;
  hidden.c_lflag &= ~static_cast<tcflag_t>(ECHO);
  if (is_terminal) ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &hidden);
  std::string line;
  const bool is_read = static_cast<bool>(std::getline(std::cin, line));
  if (is_terminal) ::tcsetattr(STDIN_FILENO, TCSAFLUSH, &shown);
  std::fputs("\n", stderr);
  if (!is_read) return Error{Code::kInvalidInput, "users: no password came; type one"};
  return line;
}

// From the file, else from the terminal, twice; else the first line of the standard input. Never
// from the command line, which every user of the machine can read.
Result<std::string> read_password(const AccessOptions& options) {
  if (!options.password_file.empty()) {
    REGATTA_TRY(text, read_named_file(options.password_file, kPasswordFileMost));
    return text.substr(0, text.find('\n'));
  }
  if (::isatty(STDIN_FILENO) == 0) {
    std::string line;
    std::getline(std::cin, line);
    return line;
  }
  REGATTA_TRY(first, ask_hidden("password: "));
  REGATTA_TRY(again, ask_hidden("again: "));
  if (first != again)
    return Error{Code::kInvalidInput, "users: the two passwords differ; set it again"};
  return first;
}

Result<int> log_in(const AccessOptions& options) {
  if (options.wants_url) return print_login_url(options);
  const ConnectionOptions& given = options.connection;
  if (given.server.empty() || given.ca_file.empty() || given.token_file.empty())
    return Error{Code::kInvalidInput,
                 "login: --server, --ca and --token-file are needed; the operator of the "
                 "controller has them"};
  REGATTA_TRY(context, find_context(given));
  if (context.ca.find("BEGIN CERTIFICATE") == std::string::npos)
    return Error{Code::kInvalidInput,
                 given.ca_file + ": it has no certificate; give the controller's ca.pem"};
  if (context.token.empty())
    return Error{Code::kInvalidInput, given.token_file + ": it has no token; write yours into it"};
  REGATTA_TRY(client, PlatformClient::open(context));
  REGATTA_TRY_DO(client.call({.target = "/v1/scheduler"}));
  const std::string path = given.context_file.empty() ? default_context_file() : given.context_file;
  REGATTA_TRY_DO(save_context(path, context));
  if (options.json)
    fmt::print("{}\n", nlohmann::json{{"server", context.server}, {"context", path}}.dump());
  else
    fmt::print("{} is the controller of your commands from now on ({})\n", context.server, path);
  return 0;
}

Result<int> list_users(const AccessOptions& options) {
  REGATTA_TRY(client, PlatformClient::open(options.connection));
  if (!options.remove.empty())
    REGATTA_TRY_DO(
        client.call({.method = "DELETE", .target = "/v1/users/" + url_text(options.remove)}));
  if (!options.name.empty()) {
    nlohmann::json change = nlohmann::json::object();
    if (!options.role.empty()) change["role"] = options.role;
    if (options.asks_password || !options.password_file.empty()) {
      REGATTA_TRY(password, read_password(options));
      change["password"] = password;
    }
    REGATTA_TRY_DO(client.call(
        {.method = "PUT", .target = "/v1/users/" + url_text(options.name), .body = change.dump()}));
  }
  REGATTA_TRY(page, client.call({.target = "/v1/users"}));
  const nlohmann::json users = page.value("items", nlohmann::json::array());
  if (options.json) {
    fmt::print("{}\n", users.dump());
    return 0;
  }
  std::vector<std::vector<std::string>> rows = {{"user", "role", "state"}};
  for (const nlohmann::json& user : users)
    rows.push_back({printable(text_in(user, "name"), 60), text_in(user, "role"),
                    user.value("disabled", false) ? "disabled" : "active"});
  std::fputs(format_table(rows).c_str(), stdout);
  return 0;
}

Result<int> list_tokens(const AccessOptions& options) {
  REGATTA_TRY(client, PlatformClient::open(options.connection));
  if (!options.remove.empty())
    REGATTA_TRY_DO(
        client.call({.method = "DELETE", .target = "/v1/tokens/" + url_text(options.remove)}));
  REGATTA_TRY(page, client.call({.target = "/v1/tokens"}));
  const nlohmann::json tokens = page.value("items", nlohmann::json::array());
  if (options.json) {
    fmt::print("{}\n", tokens.dump());
    return 0;
  }
  std::vector<std::vector<std::string>> rows = {{"token", "use", "user", "name", "expires"}};
  for (const nlohmann::json& token : tokens)
    rows.push_back({text_in(token, "id"), text_in(token, "use"),
                    printable(text_in(token, "user"), 60), printable(text_in(token, "name"), 60),
                    time_text(token.value("expires_ms", 0LL))});
  std::fputs(tokens.empty() ? "no tokens\n" : format_table(rows).c_str(), stdout);
  return 0;
}

Result<nlohmann::json> create_token(PlatformClient& client, const nlohmann::json& wanted) {
  return client.call({.method = "POST", .target = "/v1/tokens", .body = wanted.dump()});
}

Result<std::string> join_token_of(const nlohmann::json& made, const std::string& ca) {
  REGATTA_TRY(hash, tls::certificate_hash(ca));
  return fmt::format("rg1.{}.{}.{}", hash,
                     text_in(made.value("token", nlohmann::json::object()), "id"),
                     text_in(made, "secret"));
}

Result<int> print_new_token(const AccessOptions& options) {
  REGATTA_TRY(context, find_context(options.connection));
  REGATTA_TRY(client, PlatformClient::open(context));
  nlohmann::json wanted = {{"use", options.is_join ? "join" : "api"}};
  if (!options.name.empty()) wanted["name"] = options.name;
  if (options.is_join) wanted["uses"] = options.uses;
  if (!options.user.empty()) wanted["user"] = options.user;
  if (!options.lifetime.empty()) {
    REGATTA_TRY_DO(time_flag("token: --lifetime", options.lifetime, "d"));
    wanted["lifetime"] = options.lifetime;
  }
  REGATTA_TRY(made, create_token(client, wanted));
  std::string text = text_in(made, "secret");
  if (options.is_join) {
    REGATTA_TRY(joined, join_token_of(made, context.ca));
    text = joined;
  }
  if (options.json) {
    made["text"] = text;
    fmt::print("{}\n", made.dump());
  } else {
    fmt::print("{}\n", text);
  }
  return 0;
}

int finish_access(const Result<int>& done) {
  return done ? *done : report_error(done.error());
}

void add_users(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<AccessOptions>();
  CLI::App* users =
      add_command(app, "users", "List the users of the platform, or change one; admins may",
                  "regatta users --set ada --role user",
                  [=, &exit_status] { exit_status = finish_access(list_users(*options)); });
  CLI::Option* set = users->add_option("--set", options->name, "Add or change this user")
                         ->type_name("USER")
                         ->check(not_empty());
  users->add_option("--role", options->role, "Role of the user of --set")
      ->type_name("ROLE")
      ->needs(set)
      ->check(one_of({"viewer", "user", "tenant_admin", "operator", "admin"}));
  users
      ->add_flag("--password", options->asks_password,
                 "Ask for the password of the user of --set, or read it from the standard input")
      ->needs(set);
  users->add_option("--password-file", options->password_file, "Read it from this file instead")
      ->type_name("FILE")
      ->needs(set)
      ->check(not_empty());
  users->add_option("--remove", options->remove, "Remove this user and the tokens")
      ->type_name("USER")
      ->check(not_empty());
  users->add_flag("--json", options->json, "Print a JSON list of users as the API shows them");
  add_connection_options(*users, options->connection);
}

void add_token(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<AccessOptions>();
  CLI::App* token = add_command(
      app, "token", "Make a token, for programs of yours or for servers, and print it once",
      "regatta token --join --uses 8",
      [=, &exit_status] { exit_status = finish_access(print_new_token(*options)); });
  token->add_flag("--join", options->is_join, "For servers that join; an operator may");
  token->add_option("--name", options->name, "Says later what it is for")->type_name("NAME");
  token->add_option("--user", options->user, "For this user; an admin may")
      ->type_name("USER")
      ->check(not_empty());
  token->add_option("--lifetime", options->lifetime, "How long it is valid (30d, of --join 1h)")
      ->type_name("TIME")
      ->check(not_empty());
  token->add_option("--uses", options->uses, "With --join: how many servers")
      ->type_name("N")
      ->capture_default_str()
      ->check(whole_number(1, 100'000));
  token->add_flag("--json", options->json, "Print the token with its id and end as JSON");
  add_connection_options(*token, options->connection);
}

constexpr const char* kLoginFragment = "/#once=";

}  // namespace

Result<std::string> make_login_url(PlatformClient& client, const std::string& server) {
  REGATTA_TRY(made, create_token(client, {{"name", "browser"}, {"use", "login"}}));
  return server.substr(0, server.find(',')) + kLoginFragment + text_in(made, "secret");
}

Result<std::string> make_join_token(PlatformClient& client, const std::string& ca, int uses,
                                    const std::string& name) {
  REGATTA_TRY(made, create_token(client, {{"name", name}, {"use", "join"}, {"uses", uses}}));
  return join_token_of(made, ca);
}

void add_platform_access_commands(CLI::App& app, int& exit_status) {
  const auto options = std::make_shared<AccessOptions>();
  CLI::App* login =
      add_command(app, "login", "Name the controller of the commands that follow",
                  "regatta login --server https://head:7780 --ca ca.pem --token-file token",
                  [=, &exit_status] { exit_status = finish_access(log_in(*options)); });
  login->add_flag("--json", options->json, "Print a JSON object with the file that was written");
  login->add_flag("--url", options->wants_url,
                  "Print instead where a browser is logged in as you, once, within 15 minutes");
  add_connection_options(*login, options->connection);
  add_users(app, exit_status);
  CLI::App* tokens =
      add_command(app, "tokens", "List your tokens, without their secrets", "regatta tokens",
                  [=, &exit_status] { exit_status = finish_access(list_tokens(*options)); });
  tokens->add_option("--remove", options->remove, "Remove the token of this id")
      ->type_name("ID")
      ->check(not_empty());
  tokens->add_flag("--json", options->json, "Print a JSON list of tokens as the API shows them");
  add_connection_options(*tokens, options->connection);
  add_token(app, exit_status);
}

}  // namespace regatta::cli
