// node_agent/internal/lease_file.h: the lease of a server's replicas, in memory that the agent and
// the supervisors share by a file: a supervisor sees it expire also when the agent is stopped or
// gone. The supervisor links this: no dependency but the C library.
#pragma once

#include <cstdint>
#include <string>
#include <utility>

#include "regatta/base/core/result.h"

namespace regatta::node_agent {

// CLOCK_BOOTTIME, which runs while the machine sleeps, in ns.
std::int64_t boottime_ns();

class LeaseFile {
 public:
  // For the agent: keeps the content of an earlier agent of this boot, begins anew otherwise: then
  // the last contact is the present. kUnavailable.
  static Result<LeaseFile> create(const std::string& path, const std::string& boot_id,
                                  std::int64_t lease_ns);
  // For a supervisor. kInvalidInput when it is of another version.
  static Result<LeaseFile> open(const std::string& path);

  LeaseFile(LeaseFile&& other) noexcept : block_(std::exchange(other.block_, nullptr)) {}
  LeaseFile& operator=(LeaseFile&&) = delete;
  LeaseFile(const LeaseFile&) = delete;
  LeaseFile& operator=(const LeaseFile&) = delete;
  ~LeaseFile();

  // When a replica with this lease ends; 0: never, -1: that of the file.
  std::int64_t deadline_ns(std::int64_t lease_ns) const;
  std::int64_t last_contact_ns() const;
  std::int64_t lease_ns() const;
  // The lease ends `lease_ns` after `last_contact_ns`.
  void renew(std::int64_t last_contact_ns, std::int64_t lease_ns);
  // No replica ends before `time_ns` (a later time counts), until end_extension().
  void keep_until(std::int64_t time_ns);
  std::int64_t kept_until_ns() const;
  void end_extension();

 private:
  struct Block;
  explicit LeaseFile(Block* block) : block_(block) {}
  Block* block_ = nullptr;
};

}  // namespace regatta::node_agent
