#include "regatta/platform/api/internal/api_request.h"

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/platform/api/problem.h"

namespace regatta::api {

std::string_view ApiRequest::query(std::string_view key) const {
  return http().query_value(key);
}

Result<YamlDocument> ApiRequest::body() const {
  REGATTA_TRY(tree, parse_json(http().body, "body", kBodyBounds));
  return YamlDocument::read(std::move(tree), "body");
}

std::int64_t query_number(const ApiRequest& request, std::string_view key, std::int64_t fallback) {
  const std::string_view text = request.query(key);
  if (text.empty()) return fallback;
  const auto number = parse_number<std::int64_t>(text);
  if (number && *number >= 0) return *number;
  refuse(request, {Code::kInvalidInput, fmt::format("{}: no whole number; give one from 0", key)});
  return -1;
}

void respond(controller::ControllerRuntime& runtime, const ApiRequest& request,
             http::Response response) {
  request.exchange->note(response.status);
  runtime.when_durable([exchange = request.exchange,
                        response = std::make_shared<http::Response>(std::move(response))] {
    exchange->respond(std::move(*response));
  });
}

void respond_json(controller::ControllerRuntime& runtime, const ApiRequest& request,
                  std::string json, int status, std::optional<store::Revision> revision) {
  http::Response response;
  response.status = status;
  response.body = std::move(json);
  if (revision) response.headers.emplace_back("ETag", fmt::format("\"{}\"", *revision));
  respond(runtime, request, std::move(response));
}

void refuse(const ApiRequest& request, const Error& error) {
  request.exchange->respond(problem(error));
}

std::optional<http::Response> check_revision(const ApiRequest& request, store::Revision revision) {
  std::string_view given = request.http().header("If-Match");
  if (given.empty())
    return problem(428, "PreconditionRequired",
                   "the header If-Match is missing; send the object's rev in it");
  if (given == "*") return std::nullopt;
  if (given.size() > 1 && given.front() == '"' && given.back() == '"')
    given = given.substr(1, given.size() - 2);
  if (parse_number<store::Revision>(given) == revision) return std::nullopt;
  return problem(412, "Stale",
                 fmt::format("the object has rev {} now; read it again and repeat", revision));
}

}  // namespace regatta::api
