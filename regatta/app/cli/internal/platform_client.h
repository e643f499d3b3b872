// cli/internal/platform_client.h: how the commands of the platform reach its controller, and what
// they share: requests with errors in one sentence, and the context file.
// Format: docs/formats/api.md.
#pragma once

#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "regatta/base/core/result.h"
#include "regatta/base/http/http_client.h"

namespace regatta::cli {

// The controller, the authority that signed its certificate (PEM text), and who asks.
struct PlatformContext {
  std::string server;  // https://HOST:PORT
  std::string ca;
  std::string token;
};

// Flags of every command of the platform: files that stand before those of the context.
struct ConnectionOptions {
  std::string server;
  std::string ca_file;
  std::string token_file;
  std::string context_file;
};
void add_connection_options(CLI::App& command, ConnectionOptions& options);

// $XDG_CONFIG_HOME/regatta/context.json, below ~/.config without the variable.
std::string default_context_file();
// kInvalidInput where the flags and the context file leave something open; the text says what.
Result<PlatformContext> find_context(const ConnectionOptions& options);
// Readable by its owner alone (mode 0600); makes the folder.
Status save_context(const std::string& path, const PlatformContext& context);
// The same for any text.
Status write_secret_file(const std::string& path, std::string_view text);

// A request to the API and its answer.
struct ApiCall {
  std::string method = "GET";
  std::string target = {};
  http::Headers headers = {};
  std::string body = {};
};

class PlatformClient {
 public:
  static Result<PlatformClient> open(const PlatformContext& context);
  static Result<PlatformClient> open(const ConnectionOptions& options);
  // One that gives up after `limit`: for what nobody shall wait for.
  static Result<PlatformClient> open_for(const ConnectionOptions& options, Seconds limit);

  // The answer as JSON. An answer with an error status is that error: 400, 401, 403 and 422
  // kInvalidInput, 404 kNotFound, 409 and 412 kConflict, 501 kUnsupported, others kUnavailable.
  Result<nlohmann::json> call(const ApiCall& call);
  // The same, repeated for up to 10 s while the controller cannot be reached, as while it starts
  // again: for requests that may come twice.
  Result<nlohmann::json> call_again(const ApiCall& call);
  // The answer's pieces as they come, without a limit of time between them; ends when `piece`
  // returns false. Errors as of call().
  Status stream(const std::string& target, const http::Headers& headers,
                const std::function<bool(std::string_view)>& piece);
  // The same; gives the answer's head.
  Result<http::Response> download(const std::string& target, const http::Headers& headers,
                                  const std::function<bool(std::string_view)>& piece);

 private:
  PlatformClient(http::HttpClient client, http::HttpClient streams, std::string token)
      : client_(std::move(client)), streams_(std::move(streams)), token_(std::move(token)) {}
  http::Headers with_token(http::Headers headers) const;

  http::HttpClient client_;
  http::HttpClient streams_;  // waits for as long as it takes
  std::string token_;
};

// The error that an answer of this status and body (RFC 9457) tells.
Error error_of_answer(int status, const std::string& body);

// `text` for one segment of a path or a value of a query.
std::string url_text(std::string_view text);
// "12:03:41" in the local time of a Unix time in milliseconds, with its date unless it is today;
// "-" for 0.
std::string time_text(long long unix_ms);
// A text of the object, "" where it is none.
std::string text_in(const nlohmann::json& object, const char* key);

}  // namespace regatta::cli
