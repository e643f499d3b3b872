// api/internal/api_request.h: what the handlers of routes share: an open exchange, its parts, and
// answers that wait until what they say is durable.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "regatta/base/core/result.h"
#include "regatta/base/core/yaml_map.h"
#include "regatta/base/http/http_server.h"
#include "regatta/platform/api/access.h"
#include "regatta/platform/api/audited_exchange.h"
#include "regatta/platform/controller/controller_runtime.h"

namespace regatta::api {

inline constexpr YamlBounds kBodyBounds{
    .bytes = 5 << 20, .depth = kYamlMaxDepth, .nodes = 2'000'000};

struct ApiRequest {
  std::shared_ptr<AuditedExchange> exchange;
  std::vector<std::string> parameters;  // of the route's pattern
  Caller caller;

  const http::Request& http() const { return exchange->request(); }
  // Empty when the query has no such key.
  std::string_view query(std::string_view key) const;
  // The body as a map; errors name `body`.
  Result<YamlDocument> body() const;
};

// The answer leaves once everything that is in memory now is durable.
void respond(controller::ControllerRuntime& runtime, const ApiRequest& request,
             http::Response response);
// `revision`: for the header ETag.
void respond_json(controller::ControllerRuntime& runtime, const ApiRequest& request,
                  std::string json, int status = 200,
                  std::optional<store::Revision> revision = std::nullopt);
void refuse(const ApiRequest& request, const Error& error);

// A number of the query, `fallback` where it is missing; -1 with an answer where it is none.
std::int64_t query_number(const ApiRequest& request, std::string_view key, std::int64_t fallback);

// The object must be as it was when the caller read it: 428 without the header If-Match, 412 when
// it is not. Nothing: it is.
std::optional<http::Response> check_revision(const ApiRequest& request, store::Revision revision);

}  // namespace regatta::api
