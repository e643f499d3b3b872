#include "regatta/platform/api/internal/audit_routes.h"

#include <string>
#include <utility>

#include "regatta/base/core/text.h"
#include "regatta/platform/api/internal/json_object.h"
#include "regatta/platform/api/problem.h"

namespace regatta::api {
namespace {

constexpr std::int64_t kRecordsDefault = 100;
constexpr std::int64_t kRecordsMax = 500;

// The chain's end as the log and as the store have it.
std::string head_json(std::int64_t number, const std::string& hash) {
  JsonObject object;
  object.add_revision("number", number);
  object.add("hash", hash);
  return object.take();
}

}  // namespace

void list_audit(audit::AuditLog* log, controller::ControllerRuntime& runtime,
                const ApiRequest& request) {
  if (log == nullptr) return refuse(request, {Code::kUnsupported, "this controller has no audit"});
  const std::string_view limit_text = request.query("limit");
  const std::string_view after_text = request.query("after");
  const auto limit =
      limit_text.empty() ? kRecordsDefault : parse_number<std::int64_t>(limit_text).value_or(0);
  const auto after = after_text.empty() ? 0 : parse_number<std::int64_t>(after_text).value_or(-1);
  if (limit < 1 || limit > kRecordsMax || after < 0)
    return refuse(request, {Code::kInvalidInput,
                            "limit is not from 1 to 500, or after is no next of a page; give such "
                            "numbers"});
  log->read(after, static_cast<std::size_t>(limit), std::string(request.query("user")),
            [log, &runtime, request](const Result<audit::AuditPage>& page) {
              if (!page) return refuse(request, page.error());
              std::string items;
              for (const audit::AuditLink& link : page->links)
                append_item(items, audit_line(link));
              const control::AuditMark& mark = runtime.tables().audit;
              JsonObject object;
              object.add_raw("head", head_json(log->head().number, log->head().hash));
              object.add_raw("stored_head", head_json(mark.number, mark.hash));
              if (page->next > 0) object.add_revision("next", page->next);
              object.add_raw("items", finished_list(std::move(items)));
              http::Response response;
              response.body = object.take();
              request.exchange->respond(std::move(response));
            });
}

}  // namespace regatta::api
