#include "regatta/app/cli/internal/platform_access.h"

#include <cstdio>
#include <memory>
#include <utility>
#include <vector>

#include <fmt/format.h>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/job_file.h"
#include "regatta/base/core/text.h"
#include "regatta/base/tls/certificate.h"

namespace regatta::cli {
namespace {

struct AccessOptions {
  ConnectionOptions connection;
  std::string name;
  std::string remove;
  std::string lifetime;
  std::string role;
  std::string user;
  int uses = 1;
  bool is_join = false;
  bool json = false;
};

Result<int> log_in(const AccessOptions& options) {
  const ConnectionOptions& given = options.connection;
  if (given.server.empty() || given.ca_file.empty() || given.token_file.empty())
    return Error{Code::kInvalidInput,
                 "login: --server, --ca and --token-file are needed; the operator of the "
                 "controller has them"};
  REGATTA_TRY(context, find_context(given));
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
  if (!options.lifetime.empty()) wanted["lifetime"] = options.lifetime;
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

}  // namespace

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
