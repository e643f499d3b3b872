#include "regatta/platform/container/image_layout.h"

#include <map>

#include <fmt/format.h>
#include <gmock/gmock.h>

namespace regatta::container {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::string digest(char letter) {
  return "sha256:" + std::string(64, letter);
}

class ImageLayoutTest : public testing::Test {
 protected:
  void put(char letter, const std::string& text) {
    files_["blobs/sha256/" + std::string(64, letter)] = text;
  }
  Result<ImageManifest> read() {
    return read_image_layout(
        [&](const std::string& path) -> Result<std::string> {
          const auto found = files_.find(path);
          if (found == files_.end()) return Error{Code::kNotFound, path + ": no such file"};
          return found->second;
        },
        "amd64");
  }
  std::string manifest(const std::string& layer_type) {
    return fmt::format(
        R"({{"config":{{"digest":"{}"}},"layers":[{{"mediaType":"{}","digest":"{}"}}]}})",
        digest('c'), layer_type, digest('d'));
  }

  std::map<std::string, std::string> files_ = {
      {"index.json", fmt::format(R"({{"manifests":[{{"digest":"{}"}}]}})", digest('a'))}};
};

TEST_F(ImageLayoutTest, ReadsLayersAndVariables) {
  put('a', manifest("application/vnd.oci.image.layer.v1.tar+gzip"));
  put('c', R"({"config":{"Env":["PATH=/opt/bin"]}})");
  const auto image = read();
  ASSERT_TRUE(image) << image.error().message;
  EXPECT_EQ(image->digest, std::string(64, 'a'));
  ASSERT_EQ(image->layers.size(), 1U);
  EXPECT_EQ(image->layers[0].blob, "blobs/sha256/" + std::string(64, 'd'));
  EXPECT_EQ(image->layers[0].compression, "gzip");
  EXPECT_THAT(image->environment, ElementsAre("PATH=/opt/bin"));
}

TEST_F(ImageLayoutTest, ChoosesTheImageOfThisArchitecture) {
  files_["index.json"] = fmt::format(
      R"({{"manifests":[{{"digest":"{}","platform":{{"architecture":"arm64","os":"linux"}}}},
                        {{"digest":"{}","platform":{{"architecture":"amd64","os":"linux"}}}}]}})",
      digest('b'), digest('a'));
  put('a', manifest("application/vnd.oci.image.layer.v1.tar"));
  put('c', "{}");
  ASSERT_TRUE(read());
  EXPECT_EQ(read()->layers[0].compression, "");
}

TEST_F(ImageLayoutTest, SaysWhatIsWrong) {
  EXPECT_THAT(read().error().message, HasSubstr("no such file"));
  put('a', manifest("text/plain"));
  put('c', "{}");
  EXPECT_THAT(read().error().message, HasSubstr("text/plain"));
  files_["index.json"] = R"({"manifests":[{"digest":"sha256:../../etc/passwd"}]})";
  EXPECT_THAT(read().error().message, HasSubstr("no digest"));
  files_["index.json"] = fmt::format(R"({{"manifests":[{{"digest":"{}"}}]}})", digest('e'));
  put('e', files_["index.json"]);
  EXPECT_THAT(read().error().message, HasSubstr("name each other"));
  files_["index.json"] = R"({"manifests":[]})";
  EXPECT_THAT(read().error().message, HasSubstr("names no image"));
}

}  // namespace
}  // namespace regatta::container
