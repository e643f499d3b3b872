#include "regatta/gpu/sharing/oci_hook.h"

#include <filesystem>

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "regatta/base/os/file.h"

namespace regatta::sharing {
namespace {

using namespace regatta::literals;
using nlohmann::json;
using testing::HasSubstr;

std::string error_of(const auto& result) {
  return result ? "" : result.error().message;
}

TEST(OciHook, ReadsTheStateOfAContainer) {
  const auto state = parse_container_state(
      R"({"ociVersion":"1.0.2","id":"c1","status":"creating","pid":77,"bundle":"/b"})");
  ASSERT_TRUE(state);
  EXPECT_EQ(state->id, "c1");
  EXPECT_EQ(state->pid, 77);
  EXPECT_EQ(state->bundle, "/b");
  EXPECT_EQ(parse_container_state(R"({"id":"c1","bundle":"/b"})").value().pid, 0);  // has ended
  for (const char* text : {"", "{", "[]", "7", R"({"id":"c1"})", R"({"id":1,"bundle":"/b"})",
                           R"({"id":"","bundle":"/b"})", R"({"id":"c","bundle":"/b","pid":"7"})",
                           R"({"id":"c","bundle":"/b","pid":-7})"}) {
    const auto wrong = parse_container_state(text);
    ASSERT_FALSE(wrong) << text;
    EXPECT_EQ(wrong.error().code, Code::kInvalidInput);
    EXPECT_THAT(wrong.error().message, HasSubstr("standard input"));
  }
}

TEST(OciHook, ReadsAnnotationsOfTheBundle) {
  const auto annotations =
      parse_annotations(R"({"root":{},"annotations":{"regatta.gpu.memory":"1GiB","a":"b"}})", "c");
  ASSERT_TRUE(annotations);
  EXPECT_EQ(annotations->at("regatta.gpu.memory"), "1GiB");
  EXPECT_TRUE(parse_annotations("{}", "c").value().empty());
  EXPECT_TRUE(parse_annotations(R"({"annotations":null})", "c").value().empty());
  for (const char* text :
       {"", "[]", R"({"annotations":[]})", R"({"annotations":{"regatta.gpu.memory":1}})"}) {
    EXPECT_THAT(error_of(parse_annotations(text, "/b/config.json")), HasSubstr("/b/config.json"))
        << text;
  }
}

TEST(OciHook, TakesTheLimitsOfTheAnnotations) {
  const auto wish = parse_container_request("c1", {{"regatta.gpu.memory", "1=2GiB"},
                                                   {"regatta.gpu.compute", "30"},
                                                   {"regatta.gpu.weight", "2"},
                                                   {"regatta.gpu.priority", "high"},
                                                   {"org.other", "x"}});
  ASSERT_TRUE(wish);
  EXPECT_EQ(wish->tenant, "c1");
  EXPECT_FALSE(wish->is_named);
  EXPECT_EQ(wish->slice.memory.at(1), 2_GiB);
  EXPECT_EQ(wish->slice.compute_ppm, 300'000U);
  EXPECT_EQ(wish->slice.weight, 2U);
  EXPECT_EQ(wish->slice.is_high_priority, true);
  EXPECT_EQ(parse_container_request("c1", {{"regatta.gpu.name", "team"}}).value().tenant, "team");
}

TEST(OciHook, RefusesAnAnnotationThatIsMisspeltOrWrong) {
  EXPECT_THAT(error_of(parse_container_request("c1", {{"regatta.gpu.memroy", "1GiB"}})),
              HasSubstr("did you mean regatta.gpu.memory?"));
  EXPECT_THAT(error_of(parse_container_request("c1", {{"regatta.gpu.xyzzy", "1GiB"}})),
              HasSubstr("choose one of regatta.gpu.{memory, compute"));
  EXPECT_THAT(error_of(parse_container_request("c1", {{"regatta.gpu.memory", "lots"}})),
              HasSubstr("container c1: annotation regatta.gpu.memory: "));
}

TEST(OciHook, NamesATenantAfterItsContainer) {
  EXPECT_EQ(tenant_name_of("web-1"), "web-1");
  const std::string id(64, 'a');
  const std::string name = tenant_name_of(id);
  EXPECT_EQ(name.size(), 47U);
  EXPECT_EQ(name.substr(0, 31), id.substr(0, 30) + "-");
  EXPECT_NE(name, tenant_name_of(std::string(63, 'a') + "b"));
  EXPECT_NE(tenant_name_of("a+b"), tenant_name_of("a:b"));
  EXPECT_EQ(tenant_name_of("++").size(), 16U);
}

TEST(OciHook, FindsTheCgroupThatTheContainerHasForItself) {
  const std::vector<os::CgroupPath> runtime = {
      {"memory", "/host"}, {"pids", "/"}, {"name=systemd", "/docker"}, {"", "/"}};
  const auto found = [&](const std::vector<os::CgroupPath>& container) {
    const auto cgroup = own_cgroup("c1", container, runtime);
    return cgroup ? os::to_string(*cgroup) : cgroup.error().message;
  };
  EXPECT_EQ(found({{"memory", "/c1"}, {"", "/c1"}}), "/c1");
  EXPECT_EQ(found({{"memory", "/c1"}, {"", "/"}}), "memory:/c1");
  EXPECT_EQ(found({{"memory", "/host"}, {"pids", "/c1"}, {"", "/"}}), "pids:/c1");
  EXPECT_EQ(found({{"name=systemd", "/docker/c1"}}), "name=systemd:/docker/c1");
  // A cgroup that also holds the runtime is not the container's own.
  EXPECT_THAT(found({{"memory", "/host"}, {"pids", "/"}, {"name=systemd", "/docker"}, {"", "/"}}),
              HasSubstr("cgroupsPath"));
}

class Bundle : public testing::Test {
 protected:
  std::string request_error(const char* config, const GpuSlice& most = {}, pid_t pid = 1,
                            const std::string& proc = "/proc") const {
    if (config != nullptr) {
      EXPECT_TRUE(os::write_file_atomically(folder_.path() + "/config.json", config));
    }
    return error_of(enroll_request({.id = "c1", .pid = pid, .bundle = folder_.path()}, most, proc));
  }

  os::TempFolder folder_ = os::TempFolder::create("oci").value();
};

TEST_F(Bundle, WithoutALimitIsRefused) {
  EXPECT_THAT(request_error(nullptr), HasSubstr("config.json"));
  EXPECT_THAT(request_error("{}"), HasSubstr("annotate it with regatta.gpu.memory"));
  EXPECT_THAT(request_error(R"({"annotations":{"regatta.gpu.compute":"3"}})"),
              HasSubstr("has no limit of memory"));
  EXPECT_THAT(request_error(R"({"annotations":{"regatta.gpu.memory":"1GiB"}})", {}, 0),
              HasSubstr("has no process"));
}

TEST_F(Bundle, ThatAsksForMoreThanTheOperatorAllowsIsRefused) {
  GpuSlice most;
  most.memory = {{0, 1_GiB}};
  EXPECT_THAT(request_error(R"({"annotations":{"regatta.gpu.memory":"2GiB"}})", most),
              HasSubstr("container c1: 2 GiB on GPU 0 is more"));
}

TEST_F(Bundle, OfAProcessThatHasEndedIsRefused) {
  const pid_t more_than_any = 0x7fffffff;
  EXPECT_EQ(request_error(R"({"annotations":{"regatta.gpu.memory":"1GiB"}})", {}, more_than_any),
            "container c1: its process 2147483647 is not there; start this hook while it is, as "
            "createRuntime");
}

TEST_F(Bundle, OfAProcessThatCannotBeReadSaysWhy) {
  const std::string file = folder_.path() + "/77/cgroup";
  ASSERT_TRUE(std::filesystem::create_directories(file));
  EXPECT_EQ(
      request_error(R"({"annotations":{"regatta.gpu.memory":"1GiB"}})", {}, 77, folder_.path()),
      "container c1: " + file + ": is a directory");
}

TEST_F(Bundle, OfAProcessInTheRuntimesOwnCgroupIsRefused) {
  EXPECT_THAT(request_error(R"({"annotations":{"regatta.gpu.memory":"1GiB"}})", {}, ::getpid()),
              HasSubstr("has no cgroup of its own"));
}

}  // namespace
}  // namespace regatta::sharing
