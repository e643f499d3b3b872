#include "regatta/gpu/sharing/hook_loading.h"

#include <cstdlib>
#include <filesystem>
#include <functional>
#include <optional>
#include <vector>

#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/core.h>
#include <grp.h>
#include <link.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "regatta/base/core/stats.h"
#include "regatta/base/core/text.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/process.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::sharing {
namespace {

namespace fs = std::filesystem;

constexpr const char* kHook = "libregatta_gpu.so";
constexpr unsigned kNobody = 65534;
// The loader ends a path in its variables at these, or puts something else in their place.
constexpr const char* kLoaderLetters = " :;$\t\n";

// A library that one of ours can stand in front of.
struct Replaced {
  const char* name;
  const char* real_name;  // that the real one has in the folder
};
constexpr Replaced kReplaced[] = {{"libcuda.so.1", "libregatta_cuda_real.so"},
                                  {"libnvidia-ml.so.1", "libregatta_nvml_real.so"}};

struct Link {
  std::string name;
  std::string target;
};

Error wrong(const std::string& what) {
  return {Code::kInvalidInput, what};
}

bool is_there(const fs::path& path) {
  std::error_code error;
  return fs::exists(path, error);
}

// Runs `body` in a child, which writes its result; "" when the child fails.
std::string result_of_child(const std::function<std::string()>& body) {
  auto pipe = os::make_pipe();
  if (!pipe) return "";
  const pid_t child = ::fork();
  if (child == 0) {
    const std::string text = body();
    const ssize_t written = ::write(pipe->write_end.get(), text.data(), text.size());
    ::_exit(written < 0 ? 1 : 0);
  }
  pipe->write_end.reset();
  std::string text;
  char part[4096];
  for (ssize_t size = 0; (size = ::read(pipe->read_end.get(), part, sizeof part)) > 0;)
    text.append(part, static_cast<std::size_t>(size));
  if (child > 0) static_cast<void>(os::wait_for(child).has_value());
  return text;
}

// Where the loader finds a library, or finds it behind one of ours; "" where there is none. In a
// child, which loads it and ends.
std::string find_library(const Replaced& replaced) {
  return result_of_child([&]() -> std::string {
    void* const handle = ::dlopen(replaced.name, RTLD_LAZY | RTLD_LOCAL);
    link_map* map = nullptr;
    if (handle == nullptr || ::dlinfo(handle, RTLD_DI_LINKMAP, &map) != 0) return "";
    std::error_code error;
    const fs::path behind = fs::path(map->l_name).parent_path() / replaced.real_name;
    return fs::canonical(is_there(behind) ? behind : fs::path(map->l_name), error).string();
  });
}

// Whether a user who owns nothing can load all of these, as the loader does it. Where this process
// is not root's its programs have its user.
bool can_all_load(const std::vector<std::string>& paths) {
  return result_of_child([&]() -> std::string {
           if (::geteuid() == 0 &&
               (::setgroups(0, nullptr) != 0 || ::setresgid(kNobody, kNobody, kNobody) != 0 ||
                ::setresuid(kNobody, kNobody, kNobody) != 0))
             return "no";
           for (const std::string& path : paths) {
             const os::UniqueFd file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
             if (!file || ::mmap(nullptr, 1, PROT_READ | PROT_EXEC, MAP_PRIVATE, file.get(), 0) ==
                              MAP_FAILED)
               return "no";
           }
           return "yes";
         }) == "yes";
}

// The hook, and what stands in front of those libraries that this machine has.
Result<std::vector<Link>> find_links() {
  REGATTA_TRY(folder, os::executable_folder());
  const fs::path self(folder);
  std::vector<Link> links;
  for (const fs::path& place : {self, self.parent_path() / "lib"})
    if (links.empty() && is_there(place / kHook))
      links.push_back({kHook, (place / kHook).string()});
  if (links.empty()) {
    return wrong(fmt::format(
        "{}/{}: is not there, and without it a program is not limited; install it", folder, kHook));
  }
  for (const Replaced& replaced : kReplaced) {
    const std::string real = find_library(replaced);
    if (real.empty()) continue;
    for (const fs::path& place : {self / "replacement", self.parent_path() / "lib/regatta"}) {
      if (!is_there(place / replaced.name)) continue;
      links.push_back({replaced.name, (place / replaced.name).string()});
      links.push_back({replaced.real_name, real});
      break;
    }
  }
  return links;
}

bool is_own_folder(const std::string& path) {
  struct stat state {};
  return ::lstat(path.c_str(), &state) == 0 && S_ISDIR(state.st_mode) &&
         state.st_uid == ::geteuid() && (state.st_mode & (S_IWGRP | S_IWOTH)) == 0;
}

bool fill(const fs::path& folder, const std::vector<Link>& links, bool are_copies) {
  std::error_code error;
  for (const Link& link : links) {
    // The real driver stays where it is: it looks for its parts beside itself.
    const bool is_real = link.name.find("_real.") != std::string::npos;
    if (are_copies && !is_real)
      fs::copy_file(link.target, folder / link.name, error);
    else
      fs::create_symlink(link.target, folder / link.name, error);
    if (error) return false;
  }
  return ::chmod(folder.c_str(), 0755) == 0;
}

// A folder of `place` with these libraries, made at its first use; its name says what it holds.
std::optional<std::string> folder_in(const std::string& place, const std::vector<Link>& links,
                                     bool are_copies) {
  std::string content;
  std::error_code error;
  for (const Link& link : links) {
    content += link.name + "\n" + link.target + "\n";
    if (are_copies) {
      const auto time = fs::last_write_time(link.target, error).time_since_epoch().count();
      content += fmt::format("{} {}\n", time, fs::file_size(link.target, error));
    }
  }
  const std::string folder = fmt::format("{}/driver-{:016x}", place, fnv1a(content));
  const bool is_new = !is_there(folder);
  if (is_new) {
    std::string made = place + "/driver-new-XXXXXX";
    if (::mkdtemp(made.data()) == nullptr) return std::nullopt;
    const bool is_filled = fill(made, links, are_copies);
    // Another process may have been faster.
    if (!is_filled || ::rename(made.c_str(), folder.c_str()) != 0)
      static_cast<void>(os::remove_tree(made).has_value());
  }
  if (!is_own_folder(folder)) return std::nullopt;
  std::vector<std::string> paths;
  for (const Link& link : links)
    paths.push_back(folder + "/" + link.name);
  if (can_all_load(paths)) return folder;
  if (is_new) static_cast<void>(os::remove_tree(folder).has_value());
  return std::nullopt;
}

std::string in_front(const std::string& value, const std::string& others) {
  return others.empty() ? value : value + ":" + others;
}

}  // namespace

Result<std::string> find_hook_folder(const std::string& daemon_socket) {
  REGATTA_TRY(links, find_links());
  const std::string beside = fs::absolute(daemon_socket).parent_path().string();
  for (const std::string& place : {beside, std::string("/run/regatta-gpu-driver")}) {
    if (place.find_first_of(kLoaderLetters) != std::string::npos) continue;
    if (place != beside && !os::make_folder(place)) continue;
    if (!is_own_folder(place)) continue;
    for (const bool are_copies : {false, true}) {
      const auto folder = folder_in(place, links, are_copies);
      if (folder) return *folder;
    }
  }
  return wrong(fmt::format(
      "{}: not every user can load it, nor a copy in {}, and who cannot would not be limited; "
      "install it where all may read, or start the daemon with a socket in a folder that all may "
      "enter, of a name without blanks",
      printable(links.front().target, 200), printable(beside, 200)));
}

std::vector<std::pair<std::string, std::string>> hook_variables(const std::string& folder,
                                                                const std::string& preload,
                                                                const std::string& library_path) {
  return {{"LD_PRELOAD", in_front(folder + "/" + kHook, preload)},
          {"LD_LIBRARY_PATH", in_front(folder, library_path)}};
}

}  // namespace regatta::sharing
