#include "regatta/platform/monitoring/metrics_text.h"

#include <gtest/gtest.h>

namespace regatta::monitoring {
namespace {

TEST(MetricsText, WritesHelpTypeAndSamplesWithEscapedLabels) {
  MetricsText text;
  text.begin("regatta_a_seconds_total", "counter", "Time.");
  text.sample(1.5, {{"user", "a\"b\\c\nd"}, {"queue", "q"}});
  text.sample(2);
  text.add("regatta_b", "gauge", "Things.", 3);
  EXPECT_EQ(text.take(),
            "# HELP regatta_a_seconds_total Time.\n# TYPE regatta_a_seconds_total counter\n"
            "regatta_a_seconds_total{user=\"a\\\"b\\\\c\\nd\",queue=\"q\"} 1.5\n"
            "regatta_a_seconds_total 2\n"
            "# HELP regatta_b Things.\n# TYPE regatta_b gauge\nregatta_b 3\n");
}

}  // namespace
}  // namespace regatta::monitoring
