#include "regatta/platform/api/internal/openapi_document.h"

namespace regatta::api {
namespace {

// The build writes it from docs/api/openapi.json.
constexpr std::string_view kOpenapiText =
#include "regatta/platform/api/openapi_text.inc"
    ;

}  // namespace

std::string_view openapi_document() {
  return kOpenapiText;
}

}  // namespace regatta::api
