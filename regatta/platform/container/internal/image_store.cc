#include "regatta/platform/container/internal/image_store.h"

#include <array>
#include <csignal>
#include <filesystem>
#include <system_error>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/openat2.h>
#include <sys/file.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include "regatta/base/core/text.h"
#include "regatta/base/os/file.h"
#include "regatta/base/os/process.h"
#include "regatta/platform/container/image_layout.h"
#include "regatta/platform/container/internal/user_mounts.h"

namespace regatta::container {
namespace {

constexpr std::size_t kJsonMost = std::size_t{4} << 20;
constexpr std::string_view kWhiteout = ".wh.";
constexpr std::string_view kOpaque = ".wh..wh..opq";

Error bad_image(const std::string& name, const std::string& what) {
  return {Code::kInvalidInput, fmt::format("image {}: {}", printable(name, 200), what)};
}

// A file of the layout, never one that a link of it names.
Result<os::UniqueFd> open_blob(const std::string& layout, const std::string& path) {
  const os::UniqueFd folder(::open(layout.c_str(), O_PATH | O_DIRECTORY | O_CLOEXEC));
  open_how how{};
  how.flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK;
  how.resolve = RESOLVE_BENEATH | RESOLVE_NO_SYMLINKS | RESOLVE_NO_XDEV;
  os::UniqueFd file(
      static_cast<int>(::syscall(SYS_openat2, folder.get(), path.c_str(), &how, sizeof how)));
  if (!file) return os::errno_error(path);
  return file;
}

Result<std::string> read_blob(const std::string& layout, const std::string& path) {
  REGATTA_TRY(file, open_blob(layout, path));
  std::string text;
  std::array<char, 65536> block{};
  ssize_t count = 0;
  while ((count = ::read(file.get(), block.data(), block.size())) > 0 && text.size() < kJsonMost)
    text.append(block.data(), static_cast<std::size_t>(count));
  if (count != 0) return Error{Code::kInvalidInput, path + ": it is too long, or cannot be read"};
  return text;
}

// The name of this machine in images.
std::string architecture() {
  utsname system{};
  ::uname(&system);
  const std::string machine = system.machine;
  if (machine == "x86_64") return "amd64";
  return machine == "aarch64" ? "arm64" : machine;
}

std::vector<std::string> tar_command(const ImageLayer& layer) {
  std::vector<std::string> command = {"tar", "--file=-"};
  if (!layer.compression.empty()) command.push_back("--" + layer.compression);
  return command;
}

// Runs tar with the blob as its input; `output`: of its standard output, -1 for none.
Status run_tar(std::vector<std::string> command, const std::string& layout, const ImageLayer& layer,
               const std::string& target, int output) {
  REGATTA_TRY(blob, open_blob(layout, layer.blob));
  os::SpawnOptions options;
  options.stdin_fd = blob.get();
  options.stdout_fd = output;
  options.working_folder = target;
  REGATTA_TRY(pid, os::spawn(command, options));
  REGATTA_TRY(ended, os::wait_for(pid));
  if (!ended.is_success())
    return Error{Code::kInvalidInput,
                 fmt::format("layer {}: tar cannot unpack it", layer.blob.substr(13, 12))};
  return {};
}

bool is_within(std::string_view path) {
  if (path.starts_with('/')) return false;
  for (const std::string& part : split(path, '/'))
    if (part == "..") return false;
  return true;
}

// Takes away the files of lower layers that this one says are gone.
Status remove_whiteouts(const std::string& layout, const ImageLayer& layer,
                        const std::string& target) {
  REGATTA_TRY(list, os::memory_file("layer"));
  std::vector<std::string> command = tar_command(layer);
  command.emplace_back("--list");
  REGATTA_TRY_DO(run_tar(command, layout, layer, target, list.get()));
  const auto names = os::read_file(fmt::format("/proc/self/fd/{}", list.get()));
  if (!names) return names.error();
  for (const std::string& name : split(*names, '\n')) {
    const std::size_t slash = name.rfind('/');
    const std::string folder = slash == std::string::npos ? "" : name.substr(0, slash + 1);
    const std::string file = name.substr(folder.size());
    if (!file.starts_with(kWhiteout)) continue;
    if (!is_within(name))
      return Error{Code::kInvalidInput, "a layer removes a file outside of its root"};
    std::error_code error;
    if (file != kOpaque) {
      std::filesystem::remove_all(target + "/" + folder + file.substr(kWhiteout.size()), error);
      continue;
    }
    for (const auto& entry : std::filesystem::directory_iterator(target + "/" + folder, error)) {
      std::error_code ignored;
      std::filesystem::remove_all(entry.path(), ignored);
    }
  }
  return {};
}

Status unpack_layers(const std::string& layout, const ImageManifest& image,
                     const std::string& target) {
  REGATTA_TRY_DO(enter_mount_namespace());
  REGATTA_TRY_DO(make_all_read_only_but(target));
  for (const ImageLayer& layer : image.layers) {
    REGATTA_TRY_DO(remove_whiteouts(layout, layer, target));
    std::vector<std::string> command = tar_command(layer);
    for (const char* word : {"--extract", "--numeric-owner", "--preserve-permissions",
                             "--delay-directory-restore", "--exclude=.wh.*"})
      command.emplace_back(word);
    REGATTA_TRY_DO(run_tar(command, layout, layer, target, -1));
  }
  return {};
}

// In a child, whose mounts go with it; its message comes by a pipe.
Status unpack(const std::string& layout, const ImageManifest& image, const std::string& target) {
  REGATTA_TRY(pipe, os::make_pipe());
  const pid_t child = ::fork();
  if (child < 0) return os::errno_error("fork");
  if (child == 0) {
    const Status done = unpack_layers(layout, image, target);
    if (!done) {
      const std::string& text = done.error().message;
      static_cast<void>(::write(pipe.write_end.get(), text.data(), text.size()) < 0);
    }
    ::_exit(done ? 0 : 1);
  }
  pipe.write_end.reset();
  std::string message;
  std::array<char, 4096> block{};
  ssize_t count = 0;
  while ((count = ::read(pipe.read_end.get(), block.data(), block.size())) > 0)
    message.append(block.data(), static_cast<std::size_t>(count));
  REGATTA_TRY(ended, os::wait_for(child));
  if (ended.is_success()) return {};
  return Error{Code::kInvalidInput, message.empty() ? "it cannot be unpacked" : message};
}

Result<ImageRoot> root_of_layout(const std::string& mounted, const std::string& name,
                                 const std::string& store, unsigned uid) {
  auto image =
      read_image_layout([&](const auto& path) { return read_blob(mounted, path); }, architecture());
  if (!image) return bad_image(name, image.error().message);
  ImageRoot root{.folder = fmt::format("{}/{}-{}", store, uid, image->digest),
                 .environment = std::move(image->environment)};
  // One rank unpacks; the others wait for it.
  const os::UniqueFd lock(
      ::open((root.folder + ".lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  if (!lock || ::flock(lock.get(), LOCK_EX) != 0) return os::errno_error(root.folder);
  std::error_code error;
  if (std::filesystem::exists(root.folder, error)) return root;
  const std::string target = root.folder + ".new";
  REGATTA_TRY_DO(os::remove_tree(target));
  REGATTA_TRY_DO(os::make_folder(target));
  if (const Status unpacked = unpack(mounted, *image, target); !unpacked) {
    static_cast<void>(os::remove_tree(target));
    return bad_image(name, unpacked.error().message);
  }
  std::filesystem::rename(target, root.folder, error);
  if (error) return bad_image(name, error.message());
  return root;
}

}  // namespace

Result<ImageRoot> root_of_image(const std::string& mounted, const std::string& name,
                                const std::string& store, unsigned uid) {
  std::error_code error;
  if (std::filesystem::exists(mounted + "/oci-layout", error))
    return root_of_layout(mounted, name, store, uid);
  for (const char* folder : {"/usr", "/bin"})
    if (std::filesystem::exists(mounted + folder, error))
      return ImageRoot{.folder = mounted, .environment = {}};
  return bad_image(name,
                   "neither an OCI layout nor a root file system; unpack an archive with ctr image "
                   "or tar into a folder, and name that");
}

}  // namespace regatta::container
