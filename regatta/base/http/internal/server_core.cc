#include "regatta/base/http/internal/server_core.h"

#include "regatta/base/http/internal/header_text.h"
#include "regatta/base/os/clock.h"

namespace regatta::http {

const std::string& ServerCore::date() {
  const auto second = static_cast<std::int64_t>(os::system_now().value);
  if (second != date_second_) {
    date_second_ = second;
    date_ = format_http_date(second);
  }
  return date_;
}

}  // namespace regatta::http
