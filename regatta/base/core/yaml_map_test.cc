#include "regatta/base/core/yaml_map.h"

#include <functional>
#include <string>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;

enum class Colour { kRed, kBlue };
const Choices<Colour> kColours = {{"red", Colour::kRed}, {"blue", Colour::kBlue}};

// The message that `read` leaves behind on the document `text`; "" for none.
std::string message_of(const std::string& text, const std::function<void(const YamlMap&)>& read) {
  const auto document = YamlDocument::parse(text, "f.yaml");
  if (!document) return document.error().message;
  read(document->root());
  const Status status = document->status();
  return status ? "" : status.error().message;
}

TEST(YamlMap, ReadsEveryKindOfValue) {
  const auto document = YamlDocument::parse(
      "name: a b\n"
      "count: 3\n"
      "lr: 3e-4\n"
      "on: true\n"
      "size: 2KiB\n"
      "rate: 8Gbps\n"
      "time: 5us\n"
      "share: 20%\n"
      "colour: blue\n"
      "list: [x, y]\n"
      "numbers: [7, 8]\n"
      "map: {inner: 1}\n"
      "items:\n  - {id: 7}\n  - {id: 8}\n",
      "f.yaml");
  ASSERT_TRUE(document.has_value());
  const YamlMap root = document->root();
  EXPECT_EQ(root.text("name"), "a b");
  EXPECT_EQ(root.integer("count"), 3);
  EXPECT_DOUBLE_EQ(root.number_or("lr", 0), 3e-4);
  EXPECT_TRUE(root.boolean_or("on", false));
  EXPECT_EQ(root.bytes("size").value, 2048);
  EXPECT_DOUBLE_EQ(root.rate("rate").value, 1e9);
  EXPECT_DOUBLE_EQ(root.seconds_or("time", {}).value, 5e-6);
  EXPECT_DOUBLE_EQ(root.ratio_or("share", 0), 0.2);
  EXPECT_EQ(root.choice("colour", kColours), Colour::kBlue);
  EXPECT_THAT(root.texts("list"), ElementsAre("x", "y"));
  EXPECT_THAT(root.integers("numbers"), ElementsAre(7, 8));
  EXPECT_EQ(root.map("map").integer("inner"), 1);
  const auto items = root.maps("items");
  ASSERT_EQ(items.size(), 2U);
  EXPECT_EQ(items[1].integer("id"), 8);
  EXPECT_EQ(items[1].path(), "items[1]");
  EXPECT_TRUE(document->status().has_value());
}

TEST(YamlMap, FallsBackOnlyWhereAKeyIsOptional) {
  const auto document = YamlDocument::parse("other: 1\n", "f.yaml");
  const YamlMap root = document->root();
  EXPECT_EQ(root.integer_or("count", 5), 5);
  EXPECT_EQ(root.text("name", "x"), "x");
  EXPECT_EQ(root.choice("colour", kColours, std::optional(Colour::kBlue)), Colour::kBlue);
  EXPECT_TRUE(document->status().has_value());
  EXPECT_EQ(root.integer("count", {1, 9}), 1);
  EXPECT_EQ(document->status().error().message,
            "f.yaml:1: count: missing; add a whole number from 1 to 9");
}

TEST(YamlMap, KeepsTheFirstError) {
  const auto read = [](const YamlMap& root) {
    root.integer("a");
    root.integer("b");
  };
  EXPECT_EQ(message_of("\na: x\nb: y\n", read),
            "f.yaml:2: a: 'x' is not a whole number; write a whole number, at least 1");
}

struct BadFile {
  const char* text;
  void (*read)(const YamlMap&);
  const char* message;
};

TEST(YamlMap, NamesFileLineKeyAndRemedy) {
  const BadFile cases[] = {
      {"a: 1\nnmae: x\n",
       [](const YamlMap& m) {
         m.allow({"a", "name"});
       },
       "f.yaml:2: nmae: unknown key; did you mean 'name'?"},
      {"zzzzzzzz: 1\n",
       [](const YamlMap& m) {
         m.allow({"a", "name"});
       },
       "f.yaml:1: zzzzzzzz: unknown key; the keys here are a, name"},
      {"{name:3}\n",
       [](const YamlMap& m) {
         m.allow({"a", "name"});
       },
       "f.yaml:1: name:3: no space follows the colon; write 'name: 3'"},
      {"m:\n  rate: 100\n", [](const YamlMap& m) { m.map("m").rate("rate"); },
       "f.yaml:2: m.rate: '100' has no unit; write it like 400Gbps or 50GB/s"},
      {"a: 7\n",
       [](const YamlMap& m) {
         m.integer("a", {1, 5});
       },
       "f.yaml:1: a: '7' is out of range; write a whole number from 1 to 5"},
      {"a: 3.5\n",
       [](const YamlMap& m) {
         m.integer("a", {1, 5});
       },
       "f.yaml:1: a: '3.5' is not a whole number; write a whole number from 1 to 5"},
      {"a: 99999999999999999999\n",
       [](const YamlMap& m) {
         m.integer("a", {1, 5});
       },
       "f.yaml:1: a: '99999999999999999999' is out of range; write a whole number from 1 to 5"},
      {"a: yes\n", [](const YamlMap& m) { m.boolean_or("a", false); },
       "f.yaml:1: a: 'yes' is neither true nor false; write one of them"},
      {"a: 0x10\n", [](const YamlMap& m) { m.number_or("a", 0); },
       "f.yaml:1: a: '0x10' is not a number; write a number, at least 0"},
      {"a: +-5\n", [](const YamlMap& m) { m.number_or("a", 0); },
       "f.yaml:1: a: '+-5' is not a number; write a number, at least 0"},
      {"a: nan\n", [](const YamlMap& m) { m.number_or("a", 0); },
       "f.yaml:1: a: 'nan' is not a number; write a number, at least 0"},
      {"a: 64000m\n", [](const YamlMap& m) { m.number_or("a", 0, {.low = 0, .high = 9}); },
       "f.yaml:1: a: '64000m' is not a number; write a number from 0 to 9 without a unit"},
      {"a: 8 GPUs\n",
       [](const YamlMap& m) {
         m.integer("a", {1, 5});
       },
       "f.yaml:1: a: '8 GPUs' is not a whole number; write a whole number from 1 to 5 without a "
       "unit"},
      {"a: 30\n", [](const YamlMap& m) { m.seconds_or("a", {}); },
       "f.yaml:1: a: '30' has no unit; write it like 30s"},
      {"a: 2.5\n", [](const YamlMap& m) { m.seconds_or("a", {}, {.low = 0, .high = 1}); },
       "f.yaml:1: a: '2.5' has no unit; write it like 2.5us"},
      {"a: 2 days\n", [](const YamlMap& m) { m.seconds_or("a", {}); },
       "f.yaml:1: a: '2 days' has the unknown unit 'days'; write it like 5us, 30s or 2h"},
      {"a: [{}]\n",
       [](const YamlMap& m) { m.maps("a").front().fail("", "it is empty; write a key"); },
       "f.yaml:1: a[0]: it is empty; write a key"},
      {"a: purple\n", [](const YamlMap& m) { m.choice("a", kColours); },
       "f.yaml:1: a: 'purple' is not one of red, blue"},
      {"a: bleu\n", [](const YamlMap& m) { m.choice("a", kColours); },
       "f.yaml:1: a: 'bleu' is not one of red, blue; did you mean 'blue'?"},
      {"a: [1]\n", [](const YamlMap& m) { m.integer("a"); },
       "f.yaml:1: a: found a list where a single value is expected"},
      {"a:\n", [](const YamlMap& m) { m.integer("a"); },
       "f.yaml:1: a: found nothing where a single value is expected; write it, or leave the key "
       "out"},
      {"a: 1\n", [](const YamlMap& m) { m.map("a"); },
       "f.yaml:1: a: found a single value where a map of keys is expected"},
      {"a:\n  - {b: 1}\n  - 2\n", [](const YamlMap& m) { m.maps("a"); },
       "f.yaml:3: a[1]: found a single value where a map of keys is expected"},
      {"a:\n  - b\n  - [c]\n", [](const YamlMap& m) { m.texts("a"); },
       "f.yaml:3: a[1]: found a list where a text is expected"},
      {"a: [4, x]\n", [](const YamlMap& m) { m.integers("a"); },
       "f.yaml:1: a: 'x' is not a whole number; write a whole number, at least 1"},
      {"a: [4, 0]\n", [](const YamlMap& m) { m.integers("a"); },
       "f.yaml:1: a: '0' is out of range; write a whole number, at least 1"},
      {"a: 4\n", [](const YamlMap& m) { m.integers("a"); },
       "f.yaml:1: a: found a single value where a list is expected; write it in brackets"},
      {"a: 0%\n", [](const YamlMap& m) { m.ratio_or("a", 1); },
       "f.yaml:1: a: '0%' is out of range; write it like 20%, more than 0 and at most 100%"},
      {"a: \"x\\ny\"\n", [](const YamlMap& m) { m.integer("a"); },
       "f.yaml:1: a: 'x?y' is not a whole number; write a whole number, at least 1"},
  };
  for (const BadFile& bad : cases)
    EXPECT_EQ(message_of(bad.text, bad.read), bad.message) << bad.text;
}

TEST(YamlMap, MarksWhatIsNotYetAvailable) {
  const auto document = YamlDocument::parse("a: 1\n", "f.yaml");
  document->root().fail("a", "not yet available", Code::kUnsupported);
  EXPECT_EQ(document->status().error().code, Code::kUnsupported);
}

TEST(ParseYaml, RefusesADuplicateWithBothLines) {
  EXPECT_EQ(parse_yaml("m:\n  a: 1\n  a: 2\n", "f.yaml").error().message,
            "f.yaml:3: m.a: given twice, first in line 2; keep one");
}

TEST(ParseYaml, RefusesAliasBombs) {
  std::string bomb = "a: &a [x, x, x, x, x, x, x, x, x]\n";
  for (char c = 'b'; c <= 'i'; ++c)
    bomb += fmt::format("{0}: &{0} [*{1}, *{1}, *{1}]\n", c, static_cast<char>(c - 1));
  EXPECT_EQ(parse_yaml(bomb, "f.yaml").error().message,
            "f.yaml:1: anchors are not read here; write the value out where it is used");
}

TEST(ParseYaml, BoundsDepthCountAndSize) {
  const std::string deep = std::string(100'000, '[');
  EXPECT_FALSE(parse_yaml("a: " + deep, "f.yaml").has_value());
  std::string wide = "a: [";
  for (int i = 0; i < kYamlMaxNodes; ++i)
    wide += "1,";
  EXPECT_THAT(parse_yaml(wide + "]", "f.yaml").error().message,
              EndsWith("more than 100000 values; split the file"));
  const std::string large(kYamlMaxBytes + 1, ' ');
  EXPECT_THAT(parse_yaml(large, "f.yaml").error().message, EndsWith("is this the right file?"));
  std::string keys;
  for (std::size_t i = 0; i <= kYamlMaxKeys; ++i)
    keys += "k" + std::to_string(i) + ": 1\n";
  EXPECT_THAT(parse_yaml(keys, "f.yaml").error().message, EndsWith("keys in one map; split it"));
}

TEST(ParseYaml, ExplainsTabs) {
  EXPECT_THAT(parse_yaml("a:\n\tb: 1\n", "f.yaml").error().message,
              EndsWith("the line starts with a tab; indent with spaces"));
}

TEST(ParseYaml, NamesTheLineOfAColonWithoutASpace) {
  EXPECT_EQ(parse_yaml("a: 1\nsteps:3\nb: 2\n", "f.yaml").error().message,
            "f.yaml:3: not YAML: illegal map value; no space follows the colon in line 2");
}

TEST(ParseYaml, PointsAtBracketsWhenOneIsMissing) {
  EXPECT_THAT(parse_yaml("{a: 1", "f.yaml").error().message,
              EndsWith("check colons, brackets and quotes"));
}

TEST(ParseYaml, NamesTheLineOfAQuoteThatIsNotClosed) {
  for (const char* text : {"a: 1\nname: \"x\nb: 2\n", "a: 1\nname: 'x\nb: 2\n"}) {
    EXPECT_EQ(parse_yaml(text, "f.yaml").error().message,
              "f.yaml:2: a quote is not closed; close it");
  }
  for (const char* text : {"a: it's\n", "a: \"x\n  y\"\n", "a: 1 # don't\n", "a: 'it''s'\n"})
    EXPECT_TRUE(parse_yaml(text, "f.yaml")) << text;
}

TEST(ParseYaml, RefusesKeysThatAreNoWords) {
  EXPECT_EQ(parse_yaml("? [a]\n: 1\n", "f.yaml").error().message,
            "f.yaml:1: a key must be a plain word; check colons, brackets and quotes");
  EXPECT_FALSE(parse_yaml("? {a: 1}\n: 1\n", "f.yaml").has_value());
  EXPECT_FALSE(parse_yaml("~: 1\n", "f.yaml").has_value());
}

TEST(YamlDocument, RefusesBytesThatAreNoLetters) {
  const auto document = YamlDocument::parse("name: a\nother: \"g\xff\"\n", "job.yaml");
  ASSERT_FALSE(document);
  EXPECT_EQ(document.error().message,
            "job.yaml:2: a byte that is no letter of UTF-8; write the file as UTF-8");
  EXPECT_TRUE(YamlDocument::parse("name: \"g\\xff caf\u00e9\"\n", "job.yaml"));
}

}  // namespace
}  // namespace regatta
