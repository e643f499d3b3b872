#include "regatta/platform/api/internal/backup_routes.h"

#include <cstdio>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include "regatta/base/os/unique_fd.h"
#include "regatta/platform/api/problem.h"

namespace regatta::api {
namespace {

constexpr std::size_t kBackupPiece = std::size_t{256} << 10;
constexpr std::size_t kBackupQueued = std::size_t{512} << 10;  // then the reader is waited for
constexpr Seconds kBackupPause{0.005};

}  // namespace

struct BackupRoutes::Sending {
  os::UniqueFd file;
  std::unique_ptr<http::ResponseStream> stream;
  bool is_closed = false;
};

void BackupRoutes::send(const ApiRequest& request) {
  if (folder_.empty())
    return refuse(request, {Code::kUnsupported, "this controller has no folder for backups"});
  if (is_sending_)
    return refuse(request, {Code::kConflict, "backup: another one is under way; try again later"});
  is_sending_ = true;
  const std::string path = folder_ + "/backup.part";
  std::remove(path.c_str());  // of a controller that ended meanwhile
  runtime_.copy_store(path, [this, request, path, alive = std::weak_ptr(life_)](Status copied) {
    if (alive.expired()) return;
    if (copied) return begin(request, path);
    is_sending_ = false;
    std::remove(path.c_str());
    refuse(request, copied.error());
  });
}

void BackupRoutes::begin(const ApiRequest& request, const std::string& path) {
  const auto sending = std::make_shared<Sending>();
  sending->file = os::UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  struct stat facts {};
  const bool is_open = sending->file.get() >= 0 && ::fstat(sending->file.get(), &facts) == 0;
  ::unlink(path.c_str());  // its bytes stay until it is closed
  if (!is_open) {
    is_sending_ = false;
    return refuse(request, {Code::kUnavailable, path + ": the copy cannot be read"});
  }
  http::Response head;
  head.content_type = "application/vnd.sqlite3";
  head.headers = {{"Cache-Control", "no-store"},
                  {"Regatta-Bytes", std::to_string(static_cast<long long>(facts.st_size))}};
  sending->stream = request.exchange->stream(std::move(head));
  sending->stream->on_closed([raw = sending.get()] { raw->is_closed = true; });
  go_on(sending);
}

void BackupRoutes::go_on(const std::shared_ptr<Sending>& sending) {
  std::vector<char> piece(kBackupPiece);
  while (sending->is_closed || sending->stream->queued_bytes() < kBackupQueued) {
    const ssize_t count =
        sending->is_closed ? 0 : ::read(sending->file.get(), piece.data(), piece.size());
    const bool goes_on =
        count > 0 && sending->stream->send({piece.data(), static_cast<std::size_t>(count)});
    if (goes_on) continue;
    is_sending_ = false;
    sending->stream.reset();
    return;
  }
  loop_.after(kBackupPause, [this, sending, alive = std::weak_ptr(life_)] {
    if (!alive.expired()) go_on(sending);
  });
}

}  // namespace regatta::api
