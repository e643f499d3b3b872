// node_agent/internal/rank_log.h: the output of a rank in files of bounded size: the latest two are
// kept, and a line says how many bytes were dropped before. The supervisor links this: no
// dependency but the C library.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "regatta/base/core/result.h"

namespace regatta::node_agent {

// A file of the output of a rank: `begin` is the place of its first byte in all that was written.
struct LogSegment {
  std::string path;
  std::int64_t begin = 0;
  std::int64_t size = 0;
};

// The segments of a rank by rising place.
std::vector<LogSegment> log_segments(const std::string& run, int rank);

// Up to `most` bytes from the place `offset` on. A place before the first byte that is kept, or in
// front of a gap, gives those that follow: `offset` says where they begin. Empty at the end.
struct LogBytes {
  std::int64_t offset = 0;
  std::string data;
};
Result<LogBytes> read_log(const std::string& run, int rank, std::int64_t offset, std::size_t most);

class RankLogWriter {
 public:
  // `bytes_max`: of one file; at least 4096 are taken.
  RankLogWriter(std::string run, int rank, std::int64_t bytes_max);
  RankLogWriter(RankLogWriter&& other) noexcept;
  RankLogWriter& operator=(RankLogWriter&&) = delete;
  RankLogWriter(const RankLogWriter&) = delete;
  RankLogWriter& operator=(const RankLogWriter&) = delete;
  ~RankLogWriter();

  // Never fails for the rank: what cannot be written, as on a full disk, is dropped and counted.
  void write(std::string_view bytes);

 private:
  void open_next();

  std::string run_;
  int rank_;
  std::int64_t bytes_max_;
  int fd_ = -1;
  std::int64_t place_ = 0;    // of the next byte
  std::int64_t size_ = 0;     // of the open file
  std::int64_t dropped_ = 0;  // bytes in files that were removed, or that could not be written
  std::vector<LogSegment> kept_;
};

}  // namespace regatta::node_agent
