#include "regatta/planning/replay/internal/csv_table.h"

#include <string>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace regatta::replay {
namespace {

using testing::HasSubstr;

TEST(ParseCsvTable, SkipsCommentsAndKeepsCommasInQuotes) {
  const auto table = CsvTable::parse("# source\nname,gpus,note\na,8,\"x, y\"\n\nb,,\r\n", "t.csv");
  ASSERT_TRUE(table) << table.error().message;
  ASSERT_EQ(table->rows().size(), 2U);
  EXPECT_EQ(table->rows()[0].text("note"), "x, y");
  EXPECT_EQ(table->rows()[0].number("gpus"), 8);
  EXPECT_EQ(table->rows()[1].number("gpus"), std::nullopt);
  EXPECT_EQ(table->rows()[1].text("note"), "");
  EXPECT_EQ(table->rows()[1].text("none"), "");
  EXPECT_FALSE(table->has("none"));
}

TEST(ParseCsvTable, TakesNoWordForANumber) {
  const auto table = CsvTable::parse("a,b,c\n1x,inf,nan\n", "t.csv");
  ASSERT_TRUE(table);
  for (const char* column : {"a", "b", "c"})
    EXPECT_EQ(table->rows()[0].number(column), std::nullopt) << column;
}

TEST(ParseCsvTable, NamesTheLineThatDoesNotFit) {
  const auto error_of = [](const std::string& text) {
    const auto table = CsvTable::parse(text, "t.csv");
    return table ? "none" : table.error().message;
  };
  EXPECT_THAT(error_of("a,b\n1,2\n1,2,3\n"),
              HasSubstr("t.csv:3: 3 values where 2 columns are named, none named for '3'"));
  EXPECT_THAT(error_of("a,b\n1\n"),
              HasSubstr("t.csv:2: 1 values where 2 columns are named, none for 'b'"));
  EXPECT_THAT(error_of("a,b\n\"1,2\n"), HasSubstr("t.csv:2: a quote is not closed"));
  EXPECT_THAT(error_of("a,a\n"), HasSubstr("t.csv:1: two columns are called 'a'"));
  EXPECT_THAT(error_of("# only a comment\n"), HasSubstr("t.csv: no line names the columns"));
}

}  // namespace
}  // namespace regatta::replay
