#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "regatta/base/core/yaml_map.h"

namespace regatta {
namespace {

using testing::HasSubstr;

std::string error_of(std::string_view text, YamlBounds bounds = {}) {
  const auto tree = parse_json(text, "body", bounds);
  return tree ? "" : tree.error().message;
}

TEST(JsonTree, HasLinesAndTheBytesOfEachValue) {
  const std::string text = "{\"jobs\": [\n {\"name\": \"a\"},\n {\"n\": -1.5e3, \"ok\": true}]}";
  const auto tree = parse_json(text, "body");
  ASSERT_TRUE(tree) << tree.error().message;
  const YamlNode& second = tree->find("jobs")->items.at(1);
  EXPECT_EQ(second.line, 3);
  EXPECT_EQ(text.substr(second.begin, second.end - second.begin), "{\"n\": -1.5e3, \"ok\": true}");
  EXPECT_EQ(second.find("n")->scalar, "-1.5e3");
}

TEST(JsonTree, IsReadAsAMapOfYamlIs) {
  auto tree = parse_json(R"({"memory": "80GiB", "count": 4})", "body");
  ASSERT_TRUE(tree);
  const auto document = YamlDocument::read(*tree, "body");
  ASSERT_TRUE(document);
  EXPECT_EQ(document->root().bytes("memory").value, 80LL << 30);
  EXPECT_EQ(document->root().integer("count"), 4);
  EXPECT_TRUE(document->status());
}

TEST(JsonTree, WritesTheTreeOfAYamlFileAsJson) {
  const auto tree = parse_yaml("a: 1\nb: ['2', x, 80GiB, -.5]\nc: {d: true, e: ~}\n", "f");
  ASSERT_TRUE(tree);
  EXPECT_EQ(json_text(*tree), R"({"a":1,"b":["2","x","80GiB","-.5"],"c":{"d":true,"e":null}})");
}

TEST(JsonTree, NamesTheLineAndTheRemedy) {
  EXPECT_EQ(error_of("{\"a\": 1,\n \"a\": 2}"), "body:2: a: given twice; keep one");
  EXPECT_THAT(error_of("[1 2]"), HasSubstr("a comma or ] must follow"));
  EXPECT_THAT(error_of("{'a': 1}"), HasSubstr("double quotes"));
  EXPECT_THAT(error_of("\"a"), HasSubstr("a quote is not closed"));
  EXPECT_THAT(error_of("[[1]]", {.depth = 1}), HasSubstr("more than 1 levels"));
  EXPECT_THAT(error_of("[1,2,3]", {.nodes = 3}), HasSubstr("more than 3 values"));
}

// Random texts over the letters that JSON gives a meaning: the library accepts the same ones, but
// for keys that come twice.
TEST(JsonTree, AcceptsTheTextsThatAnotherParserAccepts) {
  std::mt19937 random(7);
  const std::vector<std::string> parts = {"{",       "}",
                                          "[",       "]",
                                          ",",       ":",
                                          "\"a\"",   "\"b\"",
                                          "1",       "-",
                                          "0",       "1.5",
                                          "1e",      "+2",
                                          "true",    "null",
                                          " ",       "x",
                                          "\"",      "\\u00",
                                          "\"\\n\"", "\"\\ud83d\\ude00\""};
  int accepted = 0;
  for (int trial = 0; trial < 20000; ++trial) {
    std::string text;
    const std::size_t length = 1 + random() % 9;
    for (std::size_t i = 0; i < length; ++i)
      text += parts[random() % parts.size()];
    const bool is_json = nlohmann::json::accept(text);
    const auto tree = parse_json(text, "body");
    if (!tree && tree.error().message.find("given twice") != std::string::npos) continue;
    ASSERT_EQ(tree.has_value(), is_json) << text;
    if (!is_json) continue;
    ++accepted;
    EXPECT_EQ(nlohmann::json::parse(json_text(*tree)), nlohmann::json::parse(text)) << text;
  }
  EXPECT_GT(accepted, 500);
}

}  // namespace
}  // namespace regatta
