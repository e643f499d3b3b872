#include "regatta/platform/controller_service/alert_messages.h"

#include <utility>

#include <fmt/format.h>

#include "regatta/base/core/ids.h"
#include "regatta/base/core/text.h"
#include "regatta/base/core/yaml_map.h"

namespace regatta::controller_service {

notification::Message alert_message(const monitoring::Alert& alert) {
  const char* const phase = at(monitoring::kAlertPhaseNames, static_cast<int>(alert.phase));
  notification::Message message;
  message.id = fmt::format("{}/{}", alert.id, phase);
  message.subject = fmt::format("[regatta] {}: {}", phase, alert.text);
  message.text =
      fmt::format("{}\n\nrule: {}\nkind: {}\nphase: {}\nid: {}\n", alert.text, alert.rule,
                  at(monitoring::kAlertKindNames, static_cast<int>(alert.kind)), phase, alert.id);
  message.json = R"({"id":)";
  append_json_quoted(message.id, message.json);
  message.json +=
      fmt::format(R"(,"phase":"{}","alert":{}}})", phase, monitoring::alert_json(alert));
  return message;
}

std::function<void(const monitoring::Alert&, std::function<void()>)> alert_sender(
    notification::NotifierOptions options) {
  const auto notifier = std::make_shared<notification::Notifier>(std::move(options));
  return [notifier](const monitoring::Alert& alert, std::function<void()> done) {
    notifier->send(alert_message(alert), std::move(done));
  };
}

Result<monitoring::DevicePrices> parse_prices(const std::vector<std::string>& flags) {
  monitoring::DevicePrices prices;
  for (const std::string& flag : flags) {
    const std::size_t equals = flag.find('=');
    const auto price = equals == std::string::npos
                           ? std::nullopt
                           : parse_number<double>(std::string_view(flag).substr(equals + 1));
    if (equals == 0 || !price || !(*price >= 0) || !(*price < 1e9))
      return Error{Code::kInvalidInput,
                   fmt::format("--price {}: no price; give TYPE=PRICE of an hour, such as h100=2.5",
                               printable(flag, 60))};
    prices[flag.substr(0, equals)] = *price;
  }
  return prices;
}

}  // namespace regatta::controller_service
