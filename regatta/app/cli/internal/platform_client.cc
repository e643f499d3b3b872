#include "regatta/app/cli/internal/platform_client.h"

#include <cctype>
#include <cstdlib>
#include <ctime>
#include <filesystem>
#include <utility>

#include <fmt/format.h>
#include <sys/stat.h>

#include "regatta/app/cli/internal/arguments.h"
#include "regatta/app/cli/internal/cluster_file.h"
#include "regatta/base/core/json.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"

namespace regatta::cli {
namespace {

constexpr std::size_t kContextBytesMax = 1 << 20;
constexpr Seconds kAgainFor{10};
constexpr Seconds kAgainPause{0.2};

Result<PlatformContext> load_context(const std::string& path) {
  REGATTA_TRY(text, os::read_text_file(path, kContextBytesMax));
  REGATTA_TRY(root, JsonReader::parse(text, path));
  PlatformContext context;
  root.allow({"server", "ca", "token"});
  root.read("server", context.server);
  root.read("ca", context.ca);
  root.read("token", context.token);
  return root.finish(context);
}

}  // namespace

void add_connection_options(CLI::App& command, ConnectionOptions& options) {
  command
      .add_option("--server", options.server,
                  "URL of the controller, https://HOST:PORT; several with commas between them")
      ->type_name("URL")
      ->check(not_empty());
  command.add_option("--ca", options.ca_file, "Certificate of the controller's authority (PEM)")
      ->type_name("FILE")
      ->check(not_empty());
  command.add_option("--token-file", options.token_file, "File with your token")
      ->type_name("FILE")
      ->check(not_empty());
  command
      .add_option("--context", options.context_file,
                  "File that `regatta up` or `regatta login` wrote, for what is not given "
                  "(~/.config/regatta/context.json)")
      ->type_name("FILE")
      ->check(not_empty());
}

std::string default_context_file() {
  const char* folder = std::getenv("XDG_CONFIG_HOME");
  if (folder != nullptr && *folder == '/') return std::string(folder) + "/regatta/context.json";
  const char* home = std::getenv("HOME");
  return std::string(home != nullptr ? home : "") + "/.config/regatta/context.json";
}

Result<PlatformContext> find_context(const ConnectionOptions& options) {
  PlatformContext context;
  const bool is_complete =
      !options.server.empty() && !options.ca_file.empty() && !options.token_file.empty();
  if (!is_complete) {
    const std::string path =
        options.context_file.empty() ? default_context_file() : options.context_file;
    auto loaded = load_context(path);
    if (!loaded && loaded.error().code == Code::kNotFound)
      return Error{Code::kInvalidInput,
                   path +
                       ": there is no such file, so the controller is not known; start one with "
                       "regatta up, or name one with regatta login"};
    if (!loaded) return Error{Code::kInvalidInput, loaded.error().message};
    context = std::move(*loaded);
  }
  if (!options.server.empty()) context.server = options.server;
  if (!options.ca_file.empty()) {
    REGATTA_TRY(ca, read_named_file(options.ca_file, kContextBytesMax));
    context.ca = std::move(ca);
  }
  if (!options.token_file.empty()) {
    REGATTA_TRY(token, read_named_file(options.token_file, kContextBytesMax));
    context.token = std::string(trim(token));
  }
  return context;
}

Status write_secret_file(const std::string& path, std::string_view text) {
  const mode_t before = ::umask(0077);
  Status written = os::write_file_atomically(path, text);
  ::umask(before);
  return written;
}

Status save_context(const std::string& path, const PlatformContext& context) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (!folder.empty()) REGATTA_TRY_DO(os::make_folder(folder, 0700));
  const nlohmann::json object = {
      {"server", context.server}, {"ca", context.ca}, {"token", context.token}};
  return write_secret_file(path, object.dump(2) + "\n");
}

Result<PlatformClient> PlatformClient::open(const PlatformContext& context) {
  http::ClientOptions options;
  options.url = context.server;
  options.ca = context.ca;
  REGATTA_TRY(client, http::HttpClient::create(options));
  options.response_limit = Seconds{0};
  REGATTA_TRY(streams, http::HttpClient::create(options));
  return PlatformClient(std::move(client), std::move(streams), context.token);
}

Result<PlatformClient> PlatformClient::open(const ConnectionOptions& options) {
  REGATTA_TRY(context, find_context(options));
  return open(context);
}

Result<PlatformClient> PlatformClient::open_for(const ConnectionOptions& options, Seconds limit) {
  REGATTA_TRY(context, find_context(options));
  http::ClientOptions bounded;
  bounded.url = context.server;
  bounded.ca = context.ca;
  bounded.connect_limit = limit;
  bounded.response_limit = limit;
  REGATTA_TRY(client, http::HttpClient::create(bounded));
  REGATTA_TRY(streams, http::HttpClient::create(bounded));
  return PlatformClient(std::move(client), std::move(streams), context.token);
}

http::Headers PlatformClient::with_token(http::Headers headers) const {
  headers.emplace_back("Authorization", "Bearer " + token_);
  return headers;
}

Result<nlohmann::json> PlatformClient::call(const ApiCall& call) {
  http::Headers headers = with_token(call.headers);
  if (!call.body.empty()) headers.emplace_back("Content-Type", "application/json");
  REGATTA_TRY(response, client_.send(call.method, call.target, headers, call.body));
  if (response.status >= 300) return error_of_answer(response.status, response.body);
  REGATTA_TRY(root, JsonReader::parse(response.body, "the controller's answer"));
  return root.raw();
}

Result<nlohmann::json> PlatformClient::call_again(const ApiCall& call) {
  const Seconds end = os::monotonic_now() + kAgainFor;
  for (;;) {
    auto answer = this->call(call);
    const bool is_away = !answer && (answer.error().code == Code::kUnavailable ||
                                     answer.error().code == Code::kTimeout);
    if (!is_away || os::monotonic_now() > end) return answer;
    os::sleep_for(kAgainPause);
  }
}

Status PlatformClient::stream(const std::string& target, const http::Headers& headers,
                              const std::function<bool(std::string_view)>& piece) {
  REGATTA_TRY_DO(download(target, headers, piece));
  return {};
}

Result<http::Response> PlatformClient::download(
    const std::string& target, const http::Headers& headers,
    const std::function<bool(std::string_view)>& piece) {
  REGATTA_TRY(response, streams_.stream("GET", target, with_token(headers), piece));
  if (response.status >= 300) return error_of_answer(response.status, response.body);
  return response;
}

Error error_of_answer(int status, const std::string& body) {
  const nlohmann::json problem = nlohmann::json::parse(body, nullptr, false);
  std::string detail = problem.is_object() ? text_in(problem, "detail") : "";
  if (detail.empty()) detail = fmt::format("the controller answers with status {}", status);
  Code code = Code::kUnavailable;
  if (status == 400 || status == 401 || status == 403 || status == 422) code = Code::kInvalidInput;
  if (status == 404) code = Code::kNotFound;
  if (status == 409 || status == 412) code = Code::kConflict;
  if (status == 501) code = Code::kUnsupported;
  return {code, printable(detail, 1000)};
}

std::string url_text(std::string_view text) {
  std::string out;
  for (const char letter : text) {
    const auto byte = static_cast<unsigned char>(letter);
    if (std::isalnum(byte) != 0 || letter == '-' || letter == '.' || letter == '_')
      out += letter;
    else
      out += fmt::format("%{:02X}", byte);
  }
  return out;
}

std::string time_text(long long unix_ms) {
  if (unix_ms <= 0) return "-";
  const std::time_t then = unix_ms / 1000;
  const std::time_t now = std::time(nullptr);
  std::tm local{};
  std::tm today{};
  ::localtime_r(&then, &local);
  ::localtime_r(&now, &today);
  const bool is_today = local.tm_yday == today.tm_yday && local.tm_year == today.tm_year;
  char text[32] = {};
  std::strftime(text, sizeof text, is_today ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S", &local);
  return text;
}

std::string text_in(const nlohmann::json& object, const char* key) {
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

}  // namespace regatta::cli
