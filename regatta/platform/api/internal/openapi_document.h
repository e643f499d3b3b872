// api/internal/openapi_document.h: the OpenAPI 3.1 document of the API, docs/api/openapi.json.
#pragma once

#include <string_view>

namespace regatta::api {

std::string_view openapi_document();

}  // namespace regatta::api
