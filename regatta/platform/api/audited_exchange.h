// api/audited_exchange.h: a request whose answer waits until the audit's record of it is durable.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>

#include "regatta/base/http/http_server.h"
#include "regatta/platform/audit/audit_log.h"

namespace regatta::api {

// Passes everything on; after begin() it writes a record once the result is known.
class AuditedExchange final : public http::Exchange {
 public:
  explicit AuditedExchange(std::unique_ptr<http::Exchange> exchange)
      : exchange_(std::move(exchange)) {}

  // From now on the request is of those that the audit has. `log` outlives the exchange.
  void begin(audit::AuditLog& log, audit::AuditRecord record);
  // Leaves it out, as of requests that anybody may send in any number.
  void leave_out() { log_ = nullptr; }
  void set_user(const std::string& user) { record_.user = user; }
  void set_object(const std::string& object) { record_.object = object; }
  // The result is known, and the answer follows when it is durable elsewhere: the record is written
  // meanwhile.
  void note(int status);

  const http::Request& request() const override { return exchange_->request(); }
  void respond(http::Response response) override;
  std::unique_ptr<http::ResponseStream> stream(http::Response head) override;
  Result<std::unique_ptr<http::WebSocket>> accept_web_socket() override;

 private:
  std::shared_ptr<http::Exchange> exchange_;
  audit::AuditLog* log_ = nullptr;
  audit::AuditRecord record_;
  std::int64_t number_ = 0;  // of the written record
};

}  // namespace regatta::api
