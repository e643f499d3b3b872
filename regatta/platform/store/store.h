// store/store.h: the controller's durable log: records by key, changed in groups of all or none.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <limits>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "regatta/base/core/result.h"
#include "regatta/base/core/units.h"

namespace regatta::store {

// One counter for the whole store: each change gets the next number. 0: before the first.
using Revision = std::int64_t;

// A record that is written, or removed (no value). `key` is KIND/ID, such as job/000000000017: not
// empty, at most kKeyMost bytes of UTF-8 without a byte 0; the value is any bytes, at most
// kValueMost.
struct Change {
  std::string key;
  Revision revision = 0;
  std::optional<std::string> value;
};

inline constexpr std::size_t kKeyMost = 512;
inline constexpr std::size_t kValueMost = 1 << 20;

struct Record {
  std::string_view key;
  Revision revision = 0;
  std::string_view value;
};

// Implementations: SQLite in a file (sqlite_store.h), etcd (etcd_store.h). One thread at a time.
class Store {
 public:
  virtual ~Store() = default;
  // Gives all records in the order of their keys (as bytes); returns the revision of the last
  // change, removals included. The first error of `visit` ends it and is returned. kInvalidInput
  // names the file, and the record where one is damaged.
  virtual Result<Revision> load(const std::function<Status(const Record&)>& visit) = 0;
  // Writes all changes or none; on return they survive the end of the process and of the power.
  // Revisions rise, beyond all earlier ones (a key may occur again). kExhausted: the disk is full,
  // nothing was written, and the store goes on; kConflict: another controller took over, and this
  // one must end; kUnavailable: what is on disk is unknown, and the process must end and load
  // again: every later call fails with the same error.
  virtual Status commit(std::span<const Change> changes) = 0;
  // Called when no commit waits: moves the log into its place, makes the reserve and due copies.
  // The same errors as commit().
  virtual Status maintain() = 0;
  // On the monotonic clock: before it no other process can have changed this store. Infinite for a
  // store that one process alone can open. Any thread.
  virtual Seconds leads_until() const { return Seconds{std::numeric_limits<double>::infinity()}; }
  // The error of the copies of this store (backup.h), until a later copy succeeds; commits go on.
  virtual Status backup_status() const = 0;
  // Writes all records into the new file `path`, from which restore() (backup.h) makes a store.
  // Takes the time of reading and writing all. kUnsupported: the store has means of its own.
  virtual Status copy_to(const std::string& path) {
    return Error{Code::kUnsupported, path + ": this store is copied by its own tools"};
  }
};

}  // namespace regatta::store
