#include "regatta/base/core/json.h"

#include <cstdint>
#include <limits>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

namespace regatta {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

enum class Color { kRed, kGreen };
constexpr std::array kColors{Color::kRed, Color::kGreen};
std::string to_string(Color color) {
  return color == Color::kRed ? "red" : "green";
}

JsonReader parsed(std::string_view text) {
  auto root = JsonReader::parse(text, "f.json");
  EXPECT_TRUE(root) << root.error().message;
  return root ? *root : JsonReader(nullptr, "f.json");
}

std::string syntax_error(std::string_view text, JsonLimits limits = {}) {
  const auto root = JsonReader::parse(text, "f.json", limits);
  return root ? "none" : root.error().message;
}

// The error of reading the key "a" of `text` as a `T`.
template <typename T, typename... Limits>
std::string error_of(std::string_view text, const Limits&... limits) {
  const JsonReader root = parsed(text);
  static_cast<void>(root.at("a").as<T>(limits...));
  return root.status() ? "none" : root.status().error().message;
}

TEST(JsonReader, ReadsEveryKindOfValue) {
  const JsonReader root = parsed(R"({"i": -7, "u": 18446744073709551615, "d": 2, "b": true,
    "s": "x", "size": 4096, "time_s": 0.5, "rank": 3, "list": [1, 2], "color": "green",
    "nested": {"names": ["p", "q"]}})");
  EXPECT_EQ(root.at("i").as<int>(), -7);
  EXPECT_EQ(root.at("u").as<std::uint64_t>(), std::numeric_limits<std::uint64_t>::max());
  EXPECT_EQ(root.at("d").as<double>(), 2);
  EXPECT_TRUE(root.at("b").as<bool>());
  EXPECT_EQ(root.at("s").as<std::string>(), "x");
  EXPECT_EQ(root.at("size").as<Bytes>(), Bytes{4096});
  EXPECT_EQ(root.at("time_s").as<Seconds>(kNotNegative), Seconds{0.5});
  EXPECT_EQ(root.at("rank").as<Rank>(), Rank{3});
  EXPECT_THAT(root.at("list").as<std::vector<int>>(), ElementsAre(1, 2));
  EXPECT_EQ(root.at("color").as<Color>(kColors), Color::kGreen);
  EXPECT_THAT(root.at("nested").at("names").as<std::vector<std::string>>(), ElementsAre("p", "q"));
  EXPECT_EQ(root.members().size(), 11U);
  EXPECT_TRUE(root.status());
}

TEST(JsonReader, NamesTheTextThePathAndWhatItFound) {
  EXPECT_EQ(error_of<int>(R"({"a": "two"})"),
            "f.json: a: expected an integer, found the string \"two\"");
  EXPECT_EQ(error_of<std::string>(R"({"a": [1]})"), "f.json: a: expected a string, found a list");
  EXPECT_EQ(error_of<bool>(R"({"a": 1})"), "f.json: a: expected true or false, found 1");
  EXPECT_EQ(error_of<double>(R"({"a": null})"), "f.json: a: expected a number, found null");
  EXPECT_EQ(error_of<std::vector<int>>(R"({"a": [1, {}]})"),
            "f.json: a[1]: expected an integer, found an object");
  EXPECT_EQ(error_of<int>("{}"), "f.json: a: missing");
  EXPECT_EQ(error_of<int>("[1]"), "f.json: expected an object, found a list");
  const JsonReader root = parsed(R"({"a": {"b": [{"c": 1}]}})");
  static_cast<void>(root.at("a").at("b").items()[0].at("c").as<std::string>());
  EXPECT_EQ(root.status().error().message, "f.json: a.b[0].c: expected a string, found 1");
}

TEST(JsonReader, ChecksIntegersAgainstTheirTypeAndRange) {
  EXPECT_EQ(error_of<int>(R"({"a": 4294967296})"),
            "f.json: a: expected an integer, found 4294967296");
  EXPECT_EQ(error_of<int>(R"({"a": 18446744073709551615})"),
            "f.json: a: expected an integer, found 18446744073709551615");
  EXPECT_EQ(error_of<std::uint16_t>(R"({"a": 65536})"),
            "f.json: a: expected an integer from 0 to 65535, found 65536");
  EXPECT_EQ(error_of<std::uint64_t>(R"({"a": -1})"),
            "f.json: a: expected an integer, at least 0, found -1");
  EXPECT_EQ(error_of<int>(R"({"a": 9})", IntRange{1, 8}),
            "f.json: a: expected an integer from 1 to 8, found 9");
  EXPECT_EQ(error_of<int>(R"({"a": 1.5})"), "f.json: a: expected an integer, found 1.5");
  EXPECT_EQ(error_of<int>(R"({"a": 8})", IntRange{1, 8}), "none");
  EXPECT_EQ(error_of<int>(R"({"a": -2147483648})"), "none");
}

TEST(JsonReader, ChecksNumbersAgainstTheirRange) {
  EXPECT_EQ(error_of<double>(R"({"a": 0})", kPositive),
            "f.json: a: expected a number above 0, found 0");
  EXPECT_EQ(error_of<Seconds>(R"({"a": -0.5})", kNotNegative),
            "f.json: a: expected a number, at least 0, found -0.5");
  EXPECT_EQ(error_of<double>(R"({"a": 2})", NumberRange{0, 1}),
            "f.json: a: expected a number from 0 to 1, found 2");
  EXPECT_EQ(error_of<double>(R"({"a": 0})", NumberRange{kPositive.low, 8}),
            "f.json: a: expected a number above 0, at most 8, found 0");
  EXPECT_EQ(error_of<double>(R"({"a": -1e308})"), "none");
}

TEST(JsonReader, ReadsEnumerationsByTheirNamesAlone) {
  EXPECT_EQ(error_of<Color>(R"({"a": "blue"})", kColors),
            "f.json: a: expected one of red, green, found the string \"blue\"");
  EXPECT_EQ(error_of<Color>(R"({"a": 1})", kColors),
            "f.json: a: expected one of red, green, found 1");
  constexpr EnumNames<2> kNames{"rouge", "vert"};
  EXPECT_EQ(parsed(R"("vert")").as<Color>(kNames), Color::kGreen);
  const Choices<Color> choices{{"red", Color::kRed}, {"crimson", Color::kRed}};
  EXPECT_EQ(parsed(R"("crimson")").as<Color>(choices), Color::kRed);
}

TEST(JsonReader, KeepsTheFirstErrorAndTheValuesBeforeIt) {
  const JsonReader root = parsed(R"({"a": 1, "b": "x", "c": null})");
  int a = 0;
  int b = 5;
  int c = 6;
  std::optional<int> d;
  root.read("a", a);
  root.read_if("c", c);
  root.read_if("a", d);
  root.read("b", b);
  root.fail("later");
  EXPECT_EQ(a, 1);
  EXPECT_EQ(b, 5);
  EXPECT_EQ(c, 6);
  EXPECT_EQ(d, 1);
  EXPECT_EQ(root.finish(1).error().message,
            "f.json: b: expected an integer, found the string \"x\"");
  EXPECT_EQ(parsed("{}").finish(1).value_or(0), 1);
}

TEST(JsonReader, OffersTheNearestKeyForAnUnknownOne) {
  const JsonReader root = parsed(R"({"speling": 1})");
  root.allow({"spelling", "other"});
  EXPECT_EQ(root.status().error().message,
            "f.json: speling: unknown key; did you mean 'spelling'?");
  const JsonReader list = parsed("[]");
  int value = 0;
  list.read_if("a", value);
  EXPECT_EQ(list.status().error().message, "f.json: expected an object, found a list");
}

TEST(JsonReader, RejectsTextThatIsNotJson) {
  EXPECT_THAT(syntax_error("{\"a\": [1,\n 2"), HasSubstr("f.json: not JSON in line 2: "));
  EXPECT_THAT(syntax_error(""), HasSubstr("f.json: not JSON in line 1: "));
  EXPECT_THAT(syntax_error("{\"a\": 1e999}"), HasSubstr("f.json: not JSON: number overflow"));
  EXPECT_THAT(syntax_error("\"\xff\""), HasSubstr("f.json: not JSON in line 1: "));
}

TEST(JsonReader, RejectsDeepAndHugeText) {
  EXPECT_EQ(syntax_error(std::string(1'000'000, '[')), "f.json: nested more than 64 levels deep");
  EXPECT_EQ(syntax_error(std::string(64, '[') + std::string(64, ']')), "none");
  EXPECT_EQ(syntax_error("\"" + std::string(100, '[') + "\\\"[\""), "none");
  EXPECT_EQ(syntax_error("[1, 2, 3]", {.size_max = 8}),
            "f.json: larger than 8 bytes; is this the right file?");
}

TEST(JsonReader, ShowsHostileTextShortAndPrintable) {
  EXPECT_EQ(
      error_of<int>(R"({"a": "\n)" + std::string(100, 'x') + "\"}"),
      "f.json: a: expected an integer, found the string \"?" + std::string(39, 'x') + "...\"");
}

TEST(JsonLine, HasTheDigitsThatMeanSomething) {
  EXPECT_EQ(json_line({{"seconds", 0.1 + 0.2}}), R"({"seconds":0.3})");
  EXPECT_EQ(json_line({{"us", {63.812345678, 0.00001234567891, -1.0 / 3}}}),
            R"({"us":[63.8123,1.23457e-05,-0.333333]})");
}

TEST(JsonLine, KeepsTheMillisecondsOfATimeSince1970) {
  EXPECT_EQ(json_line({{"at_s", 1763889123.3371234}}), R"({"at_s":1763889123.337})");
  EXPECT_EQ(json_line({{"at_s", 61987.33712}}), R"({"at_s":61987.337})");
}

TEST(JsonLine, LeavesWhatIsNoFractionAsItIs) {
  EXPECT_EQ(json_line({{"count", 12345678901}, {"whole", 5.0}, {"text", "0.30000000000000004"}}),
            R"({"count":12345678901,"text":"0.30000000000000004","whole":5.0})");
  EXPECT_EQ(json_line(nlohmann::json::array({std::numeric_limits<double>::infinity()})), "[null]");
}

TEST(JsonLine, ReplacesBytesThatAreNotUtf8) {
  EXPECT_EQ(json_line({{"why", "a\xc3"}}), "{\"why\":\"a\xef\xbf\xbd\"}");
}

}  // namespace
}  // namespace regatta
