#include "regatta/platform/controller_service/page_server.h"

#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/text.h"
#include "regatta/base/os/clock.h"
#include "regatta/platform/api/problem.h"

namespace regatta::controller_service {
namespace {

constexpr Seconds kLookPause{1};

// Scripts, styles and connections of this origin alone, none inside the page; nobody frames it. A
// timeline is handed to another window, so that windows which the page opens keep it as opener.
const http::Headers kPageHeaders = {
    {"Content-Security-Policy",
     "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self' data:; "
     "font-src 'self'; connect-src 'self'; worker-src 'self'; manifest-src 'self'; "
     "frame-src 'self'; form-action 'self'; base-uri 'none'; frame-ancestors 'none'"},
    {"Cross-Origin-Opener-Policy", "same-origin-allow-popups"},
    {"X-Frame-Options", "DENY"}};

http::Response not_built() {
  http::Response response;
  response.status = 404;
  response.content_type = "text/plain; charset=utf-8";
  response.body =
      "The page is not built; run npm ci and npm run build in web/ of the source, or start "
      "regatta-controller with --page FOLDER. The API is at /v1.\n";
  return response;
}

}  // namespace

void PageServer::load_if_new() {
  const Seconds now = os::monotonic_now();
  if (now < next_look_ || folder_.empty()) return;
  next_look_ = now + kLookPause;
  std::error_code error;
  const auto time = std::filesystem::last_write_time(folder_ + "/index.html", error);
  if (error) return;
  if (files_ && time == loaded_time_) return;
  auto files = http::StaticFiles::load(folder_);
  if (!files) return;
  files_ = std::move(*files);
  loaded_time_ = time;
}

void PageServer::handle(http::Exchange& exchange) {
  load_if_new();
  const http::Request& request = exchange.request();
  std::optional<http::Response> response;
  if (files_)
    response = files_->respond(request);
  else if (request.path == "/")
    response = not_built();
  if (!response)
    response = api::problem(404, "NotFound",
                            fmt::format("{}: there is no such path", printable(request.path, 100)));
  response->headers.insert(response->headers.end(), kPageHeaders.begin(), kPageHeaders.end());
  exchange.respond(std::move(*response));
}

}  // namespace regatta::controller_service
