#include "regatta/platform/controller_service/alert_messages.h"

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace regatta::controller_service {
namespace {

using testing::HasSubstr;

TEST(AlertMessage, HasOneIdForEachPhaseOfAnAlert) {
  monitoring::Alert alert{.id = "node-silent/n1/5",
                          .rule = "node-silent",
                          .object = "n1",
                          .text = "node \"n1\": it is not heard",
                          .since_ms = 5};
  const notification::Message firing = alert_message(alert);
  EXPECT_EQ(firing.id, "node-silent/n1/5/firing");
  EXPECT_EQ(firing.subject, "[regatta] firing: node \"n1\": it is not heard");
  const auto json = nlohmann::json::parse(firing.json);
  EXPECT_EQ(json["alert"]["text"], alert.text);
  EXPECT_EQ(json["phase"], "firing");
  alert.phase = monitoring::AlertPhase::kResolved;
  EXPECT_EQ(alert_message(alert).id, "node-silent/n1/5/resolved");
}

TEST(DevicePrices, AreReadFromFlags) {
  EXPECT_EQ(*parse_prices({"h100=2.5", "a100=1"}),
            (monitoring::DevicePrices{{"a100", 1}, {"h100", 2.5}}));
  for (const char* flag : {"h100", "=1", "h100=", "h100=-1", "h100=many", "h100=nan"})
    EXPECT_THAT(parse_prices({flag}).error().message, HasSubstr("give TYPE=PRICE")) << flag;
}

}  // namespace
}  // namespace regatta::controller_service
