// controller_service/alert_messages.h: alerts as messages to people.
#pragma once

#include <memory>
#include <string>

#include "regatta/base/core/result.h"
#include "regatta/platform/controller/cluster_monitor.h"
#include "regatta/platform/monitoring/alert_book.h"
#include "regatta/platform/notification/notifier.h"

namespace regatta::controller_service {

// {"id", "phase", "alert": {...}}; the id is that of the alert and its phase.
notification::Message alert_message(const monitoring::Alert& alert);

// Sends by `options` what MonitorOptions::tell gets; lives as long as a copy of the function.
std::function<void(const monitoring::Alert&, std::function<void()>)> alert_sender(
    notification::NotifierOptions options);

// TYPE=PRICE of an hour, such as h100=2.5. kInvalidInput names the flag and its form.
Result<monitoring::DevicePrices> parse_prices(const std::vector<std::string>& flags);

}  // namespace regatta::controller_service
