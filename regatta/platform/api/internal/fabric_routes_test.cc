#include "regatta/platform/api/internal/fabric_routes.h"

#include <gmock/gmock.h>

namespace regatta::api {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

Result<FabricVerdicts> read(const std::string& text) {
  auto tree = parse_json(text, "body");
  EXPECT_TRUE(tree);
  auto document = YamlDocument::read(std::move(*tree), "body");
  EXPECT_TRUE(document);
  return read_fabric_verdicts(document->root(), *document);
}

TEST(FabricVerdicts, AreReadAsAProberTellsThem) {
  const auto verdicts = read(
      R"({"source":"probe","verdicts":[{"culprit":"nic s3.nic0","kind":"nic","symptom":"loss",)"
      R"("server":"s3","confidence":0.9,"loss_share":0.2,"since_ms":1764302400000,)"
      R"("or":["link s3-leaf1, both ways"]}]})");
  ASSERT_TRUE(verdicts) << verdicts.error().message;
  EXPECT_EQ(verdicts->source, "probe");
  ASSERT_EQ(verdicts->faults.size(), 1U);
  const FabricFault& fault = verdicts->faults[0];
  EXPECT_EQ(fault.culprit, "nic s3.nic0");
  EXPECT_EQ(fault.server, "s3");
  EXPECT_EQ(fault.confidence, 0.9);
  EXPECT_EQ(fault.since_ms, 1764302400000);
  EXPECT_THAT(fault.alternatives, ElementsAre("link s3-leaf1, both ways"));
}

TEST(FabricVerdicts, AreRefusedByTheirKey) {
  EXPECT_THAT(read(R"({"source":"p"})").error().message, HasSubstr("verdicts"));
  EXPECT_THAT(read(R"({"source":"p","verdicts":[{"kind":"nic"}]})").error().message,
              HasSubstr("culprit"));
  EXPECT_THAT(read(R"({"source":"p","verdicts":[{"culprit":"a","kind":"nic","confidence":2}]})")
                  .error()
                  .message,
              HasSubstr("confidence"));
  EXPECT_THAT(read(R"({"source":"p","verdicts":[],"more":1})").error().message, HasSubstr("more"));
  const std::string name(400, 'a');
  EXPECT_THAT(read(R"({"source":")" + name + R"(","verdicts":[]})").error().message,
              HasSubstr("longer than"));
}

}  // namespace
}  // namespace regatta::api
