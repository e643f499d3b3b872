// With the hook a program finds what it finds without it, but for our wrappers: which are functions
// of the same names.
#include <sstream>

#include <gmock/gmock.h>

#include "tests/hook/run.h"

namespace regatta::hook_test {
namespace {

const std::string kProgram = REGATTA_PROGRAM;
const std::string kLinked = kProgram + "-linked";

std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);)
    lines.push_back(line);
  return lines;
}

// Where ours replaces the driver it also has what this driver has not yet: programs that look for
// such a function find one that fails. "dlsym driver cuNew: null, an error" against ": cuNew".
bool is_new(const std::string& expected, const std::string& found) {
  const std::string question = expected.substr(0, expected.find(": null, an error"));
  return question != expected &&
         found == question + ": " + question.substr(question.rfind(' ') + 1);
}

void expect_same(const ProgramResult& plain, const ProgramResult& hooked, HookMode how) {
  ASSERT_EQ(plain.status, 0);
  ASSERT_EQ(hooked.status, 0);
  const auto expected = lines_of(plain.output);
  const auto found = lines_of(hooked.output);
  ASSERT_GT(expected.size(), 20'000U);
  ASSERT_EQ(found.size(), expected.size());
  int differences = 0;
  for (std::size_t i = 0; i < expected.size() && differences < 10; ++i) {
    if (expected[i] == found[i] || (how == HookMode::kReplaced && is_new(expected[i], found[i])))
      continue;
    ++differences;
    ADD_FAILURE() << "without the hook: " << expected[i] << "\nwith it: " << found[i];
  }
}

class Lookup : public testing::TestWithParam<unsigned> {};

TEST_P(Lookup, OfAProgramThatOpensTheDriverFindsTheSame) {
  const std::vector<std::string> words = {kProgram, "lookups", std::to_string(GetParam())};
  expect_same(run(words, environment_for(HookMode::kPlain)),
              run(words, environment_for(HookMode::kPreloaded)), HookMode::kPreloaded);
}

TEST_P(Lookup, OfAProgramThatIsLinkedToTheDriverFindsTheSame) {
  const std::vector<std::string> words = {kLinked, "lookups", std::to_string(GetParam())};
  expect_same(run(words, environment_for(HookMode::kPlain)),
              run(words, environment_for(HookMode::kPreloaded)), HookMode::kPreloaded);
}

TEST_P(Lookup, InALibraryThatReplacesTheDriverFindsTheSame) {
  for (const std::string& program : {kProgram, kLinked}) {
    const std::vector<std::string> words = {program, "lookups", std::to_string(GetParam())};
    expect_same(run(words, environment_for(HookMode::kPlain)),
                run(words, environment_for(HookMode::kReplaced)), HookMode::kReplaced);
  }
}

INSTANTIATE_TEST_SUITE_P(Seeds, Lookup, testing::Values(1U, 2U));

TEST(LookupOfALibrary, ThatAnotherOneBroughtFindsTheSame) {
  const std::vector<std::string> words = {kProgram, "dependency", REGATTA_PLUGIN};
  const ProgramResult plain = run(words, environment_for(HookMode::kPlain));
  EXPECT_EQ(plain.output, "cuInit: found\ncuNothing: null\nmalloc: found\n");
  for (const HookMode how : {HookMode::kPreloaded, HookMode::kReplaced}) {
    const ProgramResult hooked = run(words, environment_for(how));
    EXPECT_EQ(hooked.status, 0);
    EXPECT_EQ(hooked.output, plain.output);
  }
}

TEST(LookupOfManyThreads, NeitherHangsNorForgets) {
  for (const HookMode how : {HookMode::kPreloaded, HookMode::kReplaced}) {
    const ProgramResult done = run({kProgram, "threads"}, environment_for(how));
    EXPECT_EQ(done.status, 0) << done.output;
  }
}

TEST(Library, NeitherAllocatesNorStartsAThreadWhenItIsLoaded) {
  const ProgramResult plain = run({kProgram, "start"}, environment_for(HookMode::kPlain));
  const ProgramResult hooked = run({kProgram, "start"}, environment_for(HookMode::kPreloaded));
  EXPECT_EQ(plain.status, 0);
  EXPECT_THAT(plain.output, testing::EndsWith("1 threads\n"));
  EXPECT_EQ(hooked.output, plain.output);
}

TEST(Library, NeedsOnlyTheCLibraryAndShowsOnlyWhatItWraps) {
  const ProgramResult needs = run({"readelf", "-dW", REGATTA_HOOK}, {"LC_ALL=C"});
  ASSERT_EQ(needs.status, 0);
  for (const std::string& line : lines_of(needs.output)) {
    if (line.find("(NEEDED)") == std::string::npos) continue;
    EXPECT_THAT(line,
                testing::AnyOf(testing::HasSubstr("[libc.so.6]"), testing::HasSubstr("[ld-linux")));
  }
  const ProgramResult shows = run({"nm", "-D", "--defined-only", REGATTA_HOOK}, {"LC_ALL=C"});
  ASSERT_EQ(shows.status, 0);
  int wrappers = 0;
  for (const std::string& line : lines_of(shows.output)) {
    EXPECT_THAT(line, testing::ContainsRegex(
                          " T (cu[A-Z]|cuvid[A-Z]|nvml[A-Z]|NvEncodeAPI|dlsym$|regatta_gpu_)"));
    wrappers += line.find(" T cu") != std::string::npos ? 1 : 0;
  }
  EXPECT_GE(wrappers, 50);
}

TEST(Library, LetsAProgramRunThatHasNoDriver) {
  const ProgramResult done = run({"/bin/echo", "here"}, {preloading_hook()});
  EXPECT_EQ(done.output, "here\n");
}

}  // namespace
}  // namespace regatta::hook_test
