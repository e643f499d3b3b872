#include "regatta/platform/store/sqlite_store.h"

#include <filesystem>
#include <utility>

#include "regatta/base/os/clock.h"
#include "regatta/base/os/file.h"
#include "regatta/platform/store/internal/change_check.h"
#include "regatta/platform/store/internal/folder_sync.h"
#include "regatta/platform/store/internal/reserve_file.h"
#include "regatta/platform/store/internal/shipping_folder.h"
#include "regatta/platform/store/internal/sqlite_schema.h"
#include "regatta/platform/store/sqlite_connection.h"

namespace regatta::store {
namespace {

// As SQLite leaves it when it makes a file; log_pages_max counts such pages.
constexpr long long kPageSize = 4096;
constexpr Seconds kOpenCopiesAgainAfter{10.0};  // of a shipping folder that could not be opened

class SqliteStore final : public Store {
 public:
  SqliteStore(const SqliteStoreOptions& options, std::unique_ptr<SqliteConnection> connection,
              SqliteRecords records, Revision last)
      : options_(options),
        reserve_(options.folder, options.reserve),
        connection_(std::move(connection)),
        records_(std::move(records)),
        last_(last) {}

  Result<Revision> load(const std::function<Status(const Record&)>& visit) override {
    REGATTA_TRY_DO(failure_);
    return records_.load(visit);
  }

  Status commit(std::span<const Change> changes) override {
    REGATTA_TRY_DO(failure_);
    if (changes.empty()) return {};
    check_changes(changes, last_);
    Status status = try_commit(changes);
    // The log moves into its place first: otherwise it would take the space that was given up.
    if (is_full(status) && reserve_.release()) {
      status = connection_->move_log(true);
      if (status || is_full(status)) status = try_commit(changes);
    }
    REGATTA_TRY_DO(checked(status));
    const Revision previous = std::exchange(last_, changes.back().revision);
    if (shipping_) shipping_->append(previous, changes);
    if (connection_->log_pages() < options_.log_pages_max) return {};
    return move_log(false);
  }

  Status maintain() override {
    REGATTA_TRY_DO(failure_);
    if (connection_->log_pages() > 0) REGATTA_TRY_DO(move_log(false));
    reserve_.make_when_possible();
    if (shipping_)
      shipping_->maintain();
    else if (has_copies() && os::monotonic_now() - shipping_time_ > kOpenCopiesAgainAfter)
      static_cast<void>(open_shipping().has_value());
    return {};
  }

  Status copy_to(const std::string& path) override {
    REGATTA_TRY_DO(failure_);
    return connection_->copy_to(path);
  }

  Status backup_status() const override { return shipping_ ? shipping_->status() : no_shipping_; }

  // kConflict: the folder belongs to another store. Other errors are kept, and it is tried again.
  Status open_shipping() {
    if (!has_copies()) return {};
    shipping_time_ = os::monotonic_now();
    Result<std::unique_ptr<ShippingFolder>> shipping = ShippingFolder::open(
        options_.backup, last_,
        [this](const std::string& path) { return connection_->copy_to(path); });
    no_shipping_ = shipping ? Status() : Status(shipping.error());
    if (shipping) shipping_ = std::move(*shipping);
    if (no_shipping_ || no_shipping_.error().code != Code::kConflict) return {};
    return no_shipping_;
  }

  // Rewrites what the log holds and synchronizes it: after a failed fsync of an earlier process the
  // kernel may show data that is not on disk and never will be.
  Status move_log(bool is_cut) {
    Status status = connection_->move_log(is_cut);
    // The changes are durable in the log, so a full disk is no error yet.
    if (is_full(status) && reserve_.release()) status = connection_->move_log(true);
    if (is_full(status)) return {};
    return checked(status);
  }

  void make_reserve() const { reserve_.make_when_possible(); }

 private:
  bool has_copies() const { return !options_.backup.shipping_folder.empty(); }

  static bool is_full(const Status& status) {
    return !status && status.error().code == Code::kExhausted;
  }

  Status try_commit(std::span<const Change> changes) {
    Status status = connection_->execute("BEGIN IMMEDIATE");
    if (status) status = records_.write(changes);
    if (status) status = connection_->execute("COMMIT");
    // Errors of the disk end the transaction by themselves, others do not.
    if (!status && connection_->is_in_transaction())
      static_cast<void>(connection_->execute("ROLLBACK").has_value());
    return status;
  }

  // A full disk passes, and all else is final.
  Status checked(const Status& status) {
    if (status || is_full(status)) return status;
    failure_ = Error{Code::kUnavailable, status.error().message + "; the process must start again"};
    connection_->keep_log_on_close();
    return failure_;
  }

  const SqliteStoreOptions options_;
  const ReserveFile reserve_;
  std::unique_ptr<SqliteConnection> connection_;
  SqliteRecords records_;
  Revision last_;
  Status failure_;  // of a commit whose outcome is unknown
  std::unique_ptr<ShippingFolder> shipping_;
  Status no_shipping_;  // why there is none
  Seconds shipping_time_{0};
};

// A new folder's own entry has to be on disk, too.
Status make_store_folder(const std::string& path) {
  if (std::filesystem::is_directory(path)) return {};
  REGATTA_TRY_DO(os::make_folder(path, 0700));
  const std::filesystem::path parent = std::filesystem::absolute(path).parent_path();
  return synchronize_path(parent.string());
}

}  // namespace

Result<std::unique_ptr<Store>> open_sqlite_store(const SqliteStoreOptions& options) {
  REGATTA_TRY_DO(make_store_folder(options.folder));
  const std::string path = options.folder + "/regatta.db";
  REGATTA_TRY(connection, SqliteConnection::open(path, true));
  REGATTA_TRY_DO(prepare_connection(*connection, path, kPageSize * options.log_pages_max));
  REGATTA_TRY(records, SqliteRecords::open(*connection, path));
  REGATTA_TRY(last, records.last_revision());
  auto store =
      std::make_unique<SqliteStore>(options, std::move(connection), std::move(records), last);
  REGATTA_TRY_DO(store->move_log(true));
  REGATTA_TRY_DO(store->open_shipping());
  store->make_reserve();
  return std::unique_ptr<Store>(std::move(store));
}

Result<DiskState> disk_state(const SqliteStoreOptions& options) {
  REGATTA_TRY(free, free_space(options.folder));
  const ReserveFile reserve(options.folder, options.reserve);
  return DiskState{free, free.value < 2 * options.reserve.value || !reserve.is_there()};
}

}  // namespace regatta::store
