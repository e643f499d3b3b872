// notification/internal/transfer.h: one message to one receiver, by libcurl.
#pragma once

#include <atomic>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"
#include "regatta/platform/notification/notifier.h"

namespace regatta::notification {

// Wait for the end, or until `stops`. kInvalidInput: the receiver refuses the message (a status of
// 400 to 499 other than 408 and 429; of SMTP 500 to 599); kUnavailable: it may take it later.
Status post(const Webhook& webhook, const Message& message, Seconds limit,
            const std::atomic<bool>& stops);
Status mail(const MailServer& server, const Message& message, Seconds limit,
            const std::atomic<bool>& stops);

// The message as RFC 5322 has it, with lines that end with CR LF; nothing in it can add a header.
std::string mail_text(const MailServer& server, const Message& message, std::string_view date);

}  // namespace regatta::notification
