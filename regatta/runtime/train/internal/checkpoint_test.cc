#include "regatta/runtime/train/internal/checkpoint.h"

#include <filesystem>
#include <fstream>

#include <c10/core/InferenceMode.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "regatta/runtime/train/test_run.h"

namespace regatta::train {
namespace {

Parameters some_parameters(std::uint64_t seed) {
  return make_parameters(
      {{.name = "w", .rows = 10, .columns = 10, .init = Init::kNormal, .deviation = 1}},
      {.seed = seed});
}

class Checkpoint : public testing::Test {
 protected:
  // A complete checkpoint of step 4.
  void SetUp() override {
    ASSERT_TRUE(save_part(folder_.path(), 4, {}, some_parameters(1)));
    ASSERT_TRUE(save_manifest(folder_.path(), 4, test::tiny_job(), {}));
  }
  std::string part() const { return folder_.path() + "/step-00000004/pp0-tp0.part"; }
  std::string load_error() const {
    Parameters into = some_parameters(2);
    const Status loaded = load_part(folder_.path(), 4, {}, into);
    return loaded ? "" : loaded.error().message;
  }

  c10::InferenceMode inference_;
  os::TempFolder folder_ = test::test_folder();
};

TEST_F(Checkpoint, GivesBackWhatWasSaved) {
  Parameters into = some_parameters(2);
  ASSERT_FALSE(into.master.equal(some_parameters(1).master));
  ASSERT_TRUE(load_part(folder_.path(), 4, {}, into));
  EXPECT_TRUE(into.master.equal(some_parameters(1).master));
  EXPECT_EQ(newest_checkpoint(folder_.path()).value(), 4);
  EXPECT_TRUE(check_manifest(folder_.path(), 4, test::tiny_job(), {}));
}

TEST_F(Checkpoint, LeavesNoHalfWrittenFile) {
  int files = 0;
  for (const auto& entry : std::filesystem::directory_iterator(folder_.path() + "/step-00000004")) {
    EXPECT_THAT(entry.path().string(), testing::Not(testing::HasSubstr(".new")));
    ++files;
  }
  EXPECT_EQ(files, 2);
}

TEST_F(Checkpoint, CountsOnlyWithItsManifest) {
  ASSERT_TRUE(save_part(folder_.path(), 9, {}, some_parameters(1)));
  std::filesystem::create_directory(folder_.path() + "/step-later");
  EXPECT_EQ(newest_checkpoint(folder_.path()).value(), 4);
  ASSERT_TRUE(save_manifest(folder_.path(), 9, test::tiny_job(), {}));
  EXPECT_EQ(newest_checkpoint(folder_.path()).value(), 9);
}

TEST_F(Checkpoint, NamesAFileThatIsMissing) {
  std::filesystem::remove(part());
  EXPECT_EQ(load_error(), "checkpoint " + part() +
                              ": the file is missing or unreadable; make its folder readable on "
                              "every server, or remove it to resume from an older one");
}

TEST_F(Checkpoint, NamesAFileThatIsTruncated) {
  const auto size = std::filesystem::file_size(part());
  std::filesystem::resize_file(part(), size - 5);
  EXPECT_THAT(load_error(),
              testing::HasSubstr(part() + ": " + std::to_string(size - 5) + " bytes instead of " +
                                 std::to_string(size) + ": the file is truncated"));
}

TEST_F(Checkpoint, NamesAFileWhoseContentChanged) {
  std::fstream file(part(), std::ios::in | std::ios::out | std::ios::binary);
  file.seekp(200);
  file.put('x');
  file.close();
  EXPECT_THAT(load_error(), testing::HasSubstr("its content changed since it was written"));
}

TEST_F(Checkpoint, NamesTheModelKeyThatDiffers) {
  workload::Job job = test::tiny_job();
  job.model.hidden = 64;
  const Status checked = check_manifest(folder_.path(), 4, job, {});
  ASSERT_FALSE(checked);
  EXPECT_THAT(checked.error().message, testing::HasSubstr("saved with hidden 32, not 64"));
  EXPECT_THAT(check_manifest(folder_.path(), 4, test::tiny_job(), {.pp = 2}).error().message,
              testing::HasSubstr("saved with pp 1, not 2"));
}

TEST_F(Checkpoint, LetsDataParallelismAndMicroBatchChange) {
  EXPECT_TRUE(check_manifest(folder_.path(), 4, test::tiny_job(), {.dp = 4, .micro_batch = 2}));
}

TEST_F(Checkpoint, NamesTheLayersOfStagesThatDiffer) {
  const workload::Job job = test::tiny_job();
  const workload::Strategy uneven{.pp = 2, .stage_layers = {1, 3}};
  ASSERT_TRUE(save_manifest(folder_.path(), 4, job, uneven));
  EXPECT_TRUE(check_manifest(folder_.path(), 4, job, uneven));
  EXPECT_THAT(check_manifest(folder_.path(), 4, job, {.pp = 2}).error().message,
              testing::HasSubstr("saved with stage_layers [1,3], not [2,2]; resume with that one"));
  ASSERT_TRUE(save_manifest(folder_.path(), 4, job, {.pp = 2}));
  EXPECT_TRUE(check_manifest(folder_.path(), 4, job, {.pp = 2, .stage_layers = {2, 2}}));
}

TEST_F(Checkpoint, NamesAManifestThatIsAFolder) {
  const std::string path = folder_.path() + "/step-00000004/manifest.json";
  std::filesystem::remove(path);
  std::filesystem::create_directory(path);
  const Status checked = check_manifest(folder_.path(), 4, test::tiny_job(), {});
  ASSERT_FALSE(checked);
  EXPECT_EQ(checked.error().code, Code::kInvalidInput);
  EXPECT_THAT(checked.error().message,
              testing::HasSubstr("manifest.json: the file is missing or unreadable; "));
}

TEST_F(Checkpoint, NamesAManifestThatIsNone) {
  std::ofstream(folder_.path() + "/step-00000004/manifest.json") << "{";
  EXPECT_THAT(check_manifest(folder_.path(), 4, test::tiny_job(), {}).error().message,
              testing::HasSubstr("manifest.json: manifest: not JSON in line 1: "));
}

TEST(CheckpointFolder, NamesAFolderThatCannotBeWritten) {
  const c10::InferenceMode inference;
  const Status saved = save_part("/proc/nothing", 1, {}, some_parameters(1));
  ASSERT_FALSE(saved);
  EXPECT_THAT(saved.error().message, testing::HasSubstr("/proc/nothing"));
}

TEST_F(Checkpoint, SaysWhyAPartCannotTakeItsPlace) {
  std::filesystem::create_directories(folder_.path() + "/step-00000008/pp0-tp0.part/taken");
  const Status status = save_part(folder_.path(), 8, {}, some_parameters(1));
  ASSERT_FALSE(status);
  EXPECT_THAT(status.error().message, testing::HasSubstr("/step-00000008/pp0-tp0.part: "));
  EXPECT_THAT(status.error().message, testing::HasSubstr("irectory"));
}

}  // namespace
}  // namespace regatta::train
