// regatta-container RUN: makes a container for one rank and becomes runc, which runs it. The
// supervisor of a replica starts it as root; RANK and LOCAL_RANK come by the environment, all else
// from RUN/container.json. Exit status: that of the rank; 125 where there is no container, with a
// sentence.

#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <filesystem>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>
#include <unistd.h>

#include "regatta/base/core/text.h"
#include "regatta/base/core/yaml_map.h"
#include "regatta/base/os/file.h"
#include "regatta/platform/container/container_config.h"
#include "regatta/platform/container/internal/image_store.h"
#include "regatta/platform/container/internal/user_mounts.h"
#include "regatta/platform/container/rank_container.h"

namespace regatta::container {
namespace {

constexpr int kNoContainer = 125;

int number_of(const char* variable) {
  const char* text = std::getenv(variable);
  return text != nullptr ? parse_number<int>(text).value_or(0) : 0;
}

// The CDI documents of this node: JSON or YAML.
std::vector<nlohmann::json> cdi_documents() {
  std::vector<nlohmann::json> documents;
  for (const char* folder : {"/etc/cdi", "/var/run/cdi"}) {
    std::error_code error;
    for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
      const std::string path = entry.path().string();
      const auto text = os::read_text_file(path);
      if (!text) continue;
      const auto tree = path.ends_with(".json") ? parse_json(*text, path) : parse_yaml(*text, path);
      if (tree) documents.push_back(nlohmann::json::parse(json_text(*tree), nullptr, false));
    }
  }
  return documents;
}

Status add_mounts(const RankContainer& request, const UserRights& user, const std::string& folder,
                  ContainerRoot& root) {
  std::vector<std::string> own = request.own_mounts;
  REGATTA_TRY_DO(os::make_folder(folder + "/mounts"));
  const auto add = [&](const std::string& path, const UserRights& rights, bool is_read_only) {
    const std::string target = fmt::format("{}/mounts/{}", folder, root.bound.size());
    auto opened = open_as_user(path, rights);
    if (!opened) return Status(opened.error());
    root.bound.push_back({.source = target, .inside = path, .is_read_only = is_read_only});
    return mount_opened(*opened, target);
  };
  for (const std::string& path : own)
    REGATTA_TRY_DO(add(path, {}, false));
  for (const char* path : {"/etc/resolv.conf", "/etc/hosts"})
    if (::access(path, R_OK) == 0) REGATTA_TRY_DO(add(path, {}, true));
  for (const std::string& path : request.mounts)
    REGATTA_TRY_DO(add(path, user, false));
  return {};
}

// The bundle of the rank's container.
Result<std::string> make_bundle(const RankContainer& request, const RankNumbers& numbers) {
  const UserRights user{.uid = request.uid, .gid = request.gid, .groups = request.groups};
  const std::string folder = fmt::format("{}/container-{}", request.run, numbers.local_rank);
  REGATTA_TRY_DO(os::make_folder(request.store, 0700));
  REGATTA_TRY_DO(os::make_folder(folder, 0755));
  REGATTA_TRY_DO(enter_mount_namespace());
  REGATTA_TRY(opened, open_as_user(request.image, user));
  REGATTA_TRY_DO(mount_opened(opened, folder + "/image"));
  REGATTA_TRY(image, root_of_image(folder + "/image", request.image, request.store, request.uid));
  REGATTA_TRY_DO(mount_changeable(image.folder, folder));
  ContainerRoot root{
      .path = folder + "/root", .image_environment = std::move(image.environment), .bound = {}};
  REGATTA_TRY_DO(add_mounts(request, user, folder, root));
  nlohmann::json config = container_config(request, root, numbers);
  if (!request.cdi_devices.empty()) {
    const auto documents = cdi_documents();
    for (const std::string& device : request.cdi_devices)
      REGATTA_TRY_DO(apply_cdi_device(documents, device, config));
  }
  REGATTA_TRY_DO(os::write_file(folder + "/config.json", config.dump()));
  return folder;
}

Status become_runc(const std::string& run) {
  const RankNumbers numbers{.rank = number_of("RANK"), .local_rank = number_of("LOCAL_RANK")};
  REGATTA_TRY(text, os::read_file(request_path(run)));
  REGATTA_TRY(request, decode_rank_container(text));
  REGATTA_TRY(bundle, make_bundle(request, numbers));
  std::vector<std::string> words = {"runc",
                                    "--root",
                                    run + "/runc",
                                    "run",
                                    "--bundle",
                                    bundle,
                                    container_name(request, numbers.local_rank)};
  std::vector<char*> arguments;
  for (std::string& word : words)
    arguments.push_back(word.data());
  arguments.push_back(nullptr);
  std::string path = "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin";
  char* variables[] = {path.data(), nullptr};
  ::execvpe("runc", arguments.data(), variables);
  return Error{Code::kNotFound, errno == ENOENT
                                    ? std::string("runc is not installed on this node; install it")
                                    : fmt::format("runc: {}", std::strerror(errno))};
}

}  // namespace
}  // namespace regatta::container

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fputs("regatta-container: give it the folder of a replica; its supervisor starts it\n",
               stderr);
    return 2;
  }
  try {
    const regatta::Status ended = regatta::container::become_runc(argv[1]);
    std::fprintf(stderr, "regatta: %s\n", ended.error().message.c_str());
  } catch (const std::exception& error) {
    std::fprintf(stderr, "regatta-container: bug: %s; please report it\n", error.what());
  }
  return regatta::container::kNoContainer;
}
