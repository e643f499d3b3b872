#include "regatta/platform/api/audited_exchange.h"

namespace regatta::api {

void AuditedExchange::begin(audit::AuditLog& log, audit::AuditRecord record) {
  log_ = &log;
  record_ = std::move(record);
}

void AuditedExchange::note(int status) {
  if (log_ == nullptr || number_ != 0) return;
  record_.status = status;
  number_ = log_->add(record_);
}

void AuditedExchange::respond(http::Response response) {
  note(response.status);
  if (log_ == nullptr) return exchange_->respond(std::move(response));
  log_->when_durable(number_, [exchange = exchange_,
                               answer = std::make_shared<http::Response>(std::move(response))] {
    exchange->respond(std::move(*answer));
  });
}

std::unique_ptr<http::ResponseStream> AuditedExchange::stream(http::Response head) {
  note(head.status);
  return exchange_->stream(std::move(head));
}

Result<std::unique_ptr<http::WebSocket>> AuditedExchange::accept_web_socket() {
  return exchange_->accept_web_socket();
}

}  // namespace regatta::api
