#include "regatta/platform/node_agent/internal/log_service.h"

#include <algorithm>
#include <utility>

#include <unistd.h>

#include "regatta/platform/node_agent/internal/metrics_file.h"
#include "regatta/platform/node_agent/internal/rank_log.h"

namespace regatta::node_agent {
namespace {

constexpr std::size_t kPartBytes = std::size_t{64} << 10;
constexpr std::size_t kRequestsMost = 256;
constexpr Seconds kFollowEvery{0.1};

}  // namespace

void LogService::request(const node_protocol::LogRequest& request) {
  if (request.is_cancelled) {
    open_.erase(request.request);
  } else if (request.is_of_metrics) {
    serve_metrics(request);
  } else if (open_.size() >= kRequestsMost) {
    access_.send({.request = request.request,
                  .offset = 0,
                  .data = {},
                  .is_last = true,
                  .error = "too many logs of this node are read at once; end some"});
  } else {
    open_[request.request] = request;
  }
}

// They are bounded, so they leave at once.
void LogService::serve_metrics(const node_protocol::LogRequest& request) const {
  const std::string text = read_metrics(access_.run_folder(request.key));
  for (std::size_t begin = 0; begin < text.size(); begin += kPartBytes)
    access_.send({.request = request.request,
                  .offset = static_cast<std::int64_t>(begin),
                  .data = text.substr(begin, kPartBytes),
                  .is_last = begin + kPartBytes >= text.size(),
                  .error = {}});
}

bool LogService::serve_one(node_protocol::LogRequest& request, bool& is_done) const {
  // Before the reading: what is written after it is not missed.
  const bool is_over = access_.is_over(request.key);
  const bool is_bounded = !request.is_following && request.length > 0;
  const std::size_t most =
      is_bounded ? std::min(kPartBytes, static_cast<std::size_t>(request.length)) : kPartBytes;
  const std::string run = access_.run_folder(request.key);
  if (!request.is_following && ::access(run.c_str(), F_OK) != 0) {
    is_done = true;
    access_.send({.request = request.request,
                  .offset = 0,
                  .data = {},
                  .is_last = true,
                  .error = "the node has no output of this attempt: the replica did not start "
                           "there, or its files are removed by now"});
    return false;
  }
  auto bytes = read_log(run, request.rank, request.offset, most);
  node_protocol::LogPart part{.request = request.request, .offset = 0, .data = {}, .error = {}};
  if (!bytes) {
    is_done = true;
    part.error = "the log cannot be read";
  } else {
    const bool is_end = bytes->data.empty();
    part.offset = bytes->offset;
    part.data = std::move(bytes->data);
    request.offset = part.offset + static_cast<std::int64_t>(part.data.size());
    if (is_bounded) request.length -= static_cast<std::int64_t>(part.data.size());
    is_done = (is_end && (!request.is_following || is_over)) || (is_bounded && request.length <= 0);
    if (is_end && !is_done) return false;
  }
  part.is_last = is_done;
  access_.send(part);
  return !is_done;
}

Seconds LogService::serve() {
  bool has_more = false;
  for (auto each = open_.begin(); each != open_.end();) {
    bool is_done = false;
    has_more |= serve_one(each->second, is_done);
    each = is_done ? open_.erase(each) : std::next(each);
  }
  if (open_.empty()) return Seconds{-1};
  return has_more ? Seconds{0} : kFollowEvery;
}

}  // namespace regatta::node_agent
