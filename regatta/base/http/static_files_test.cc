#include "regatta/base/http/static_files.h"

#include <filesystem>
#include <string>

#include <gmock/gmock.h>

#include "regatta/base/os/file.h"

namespace regatta::http {
namespace {

class StaticFilesTest : public testing::Test {
 protected:
  void write(const std::string& name, const std::string& text) const {
    const std::string path = folder_.path() + "/web/" + name;
    ASSERT_TRUE(os::make_folder(std::filesystem::path(path).parent_path().string()));
    ASSERT_TRUE(os::write_file(path, text));
  }
  StaticFiles load() const {
    auto files = StaticFiles::load(folder_.path() + "/web");
    EXPECT_TRUE(files) << files.error().message;
    return std::move(*files);
  }
  static Request get(const std::string& path, Headers headers = {}) {
    return {.method = "GET", .path = path, .query = {}, .headers = std::move(headers)};
  }

  os::TempFolder folder_ = os::TempFolder::create().value();
};

std::string header(const std::optional<Response>& response, const char* name) {
  return std::string(find_header(response->headers, name));
}

TEST_F(StaticFilesTest, GivesFilesWithTheirTypes) {
  write("index.html", "<p>");
  write("assets/main-Bx3_9d1-.js", "x");
  const StaticFiles files = load();
  EXPECT_EQ(files.respond(get("/"))->body, "<p>");
  EXPECT_EQ(files.respond(get("/"))->content_type, "text/html; charset=utf-8");
  EXPECT_EQ(header(files.respond(get("/")), "Cache-Control"), "no-cache");
  const auto script = files.respond(get("/assets/main-Bx3_9d1-.js"));
  EXPECT_EQ(script->content_type, "text/javascript; charset=utf-8");
  EXPECT_EQ(header(script, "Cache-Control"), "public, max-age=31536000, immutable");
  EXPECT_FALSE(files.respond(get("/assets/none.js", {{"Accept", "text/html"}})));
  EXPECT_FALSE(files.respond(get("/none.js")));
  EXPECT_EQ(files.respond(get("/jobs/hello-1", {{"Accept", "text/html,*/*"}}))->body, "<p>");
  Request post = get("/");
  post.method = "POST";
  EXPECT_FALSE(files.respond(post));
}

TEST_F(StaticFilesTest, GivesTheCompressedFileToClientsThatTakeIt) {
  write("index.html", "plain");
  write("index.html.gz", "gzipped");
  write("index.html.br", "brotli");
  const StaticFiles files = load();
  const auto body = [&](const char* accepted) {
    return files.respond(get("/", {{"Accept-Encoding", accepted}}))->body;
  };
  EXPECT_EQ(body("gzip, deflate, br"), "brotli");
  EXPECT_EQ(body("gzip, br;q=0"), "gzipped");
  EXPECT_EQ(body("GZIP;q=0.5"), "gzipped");
  EXPECT_EQ(body("gzip;q=0.0"), "plain");
  EXPECT_EQ(body(""), "plain");
  EXPECT_FALSE(files.respond(get("/index.html.gz")));
}

TEST_F(StaticFilesTest, SaysWhenAFileIsTheSameAsBefore) {
  write("index.html", "one");
  const std::string tag = header(load().respond(get("/")), "ETag");
  EXPECT_EQ(load().respond(get("/", {{"If-None-Match", tag}}))->status, 304);
  write("index.html", "two");
  EXPECT_EQ(load().respond(get("/", {{"If-None-Match", tag}}))->status, 200);
}

TEST_F(StaticFilesTest, LeadsNobodyOutOfTheFolder) {
  write("index.html", "<p>");
  ASSERT_TRUE(os::write_file(folder_.path() + "/secret", "key"));
  std::filesystem::create_symlink(folder_.path() + "/secret", folder_.path() + "/web/link");
  const StaticFiles files = load();
  for (const char* path : {"/link", "/../secret", "//secret", "/assets/../../secret", "/..", ""})
    EXPECT_FALSE(files.respond(get(path))) << path;
}

TEST_F(StaticFilesTest, NeedsAnIndex) {
  write("main.js", "x");
  EXPECT_EQ(StaticFiles::load(folder_.path() + "/web").error().code, Code::kNotFound);
  EXPECT_EQ(StaticFiles::load(folder_.path() + "/none").error().code, Code::kNotFound);
}

}  // namespace
}  // namespace regatta::http
