// sharing/internal/client/client_pages.h: the two pages that this process shares with the daemon
// (internal/ledger/page_layout.h), mapped: the tenant's, which is read-only, and the client's own.
// Any thread may read; accept() needs a lock of the caller.
#pragma once

#include <cstdint>

#include "regatta/base/core/result.h"
#include "regatta/gpu/sharing/internal/client/known_fd.h"
#include "regatta/gpu/sharing/internal/ledger/page_layout.h"
#include "regatta/gpu/sharing/messages.h"

namespace regatta::sharing {

class ClientPages {
 public:
  ClientPages() = default;
  ClientPages(const ClientPages&) = delete;
  ClientPages& operator=(const ClientPages&) = delete;
  ~ClientPages();

  // Maps the tenant's page. kInvalidInput when it is of another version. The descriptor stays open
  // until accept().
  Status map_tenant(int fd);
  // Maps the pages that came with the daemon's reply to a handshake in place of the earlier ones.
  // kUnavailable when the client has no page after that.
  Status accept(DaemonMessage& message);
  // For the next handshake; -1 before the first, and when the program has closed it.
  int client_page_fd() const { return client_page_fd_.get(); }
  // For the first handshake; -1 after it.
  int tenant_page_fd() const { return tenant_page_fd_; }

  bool has_client_page() const { return client_page_ != nullptr; }
  bool is_joined_process() const { return *fork_marker_ != 0; }  // not a child of fork()
  // Kept up to date by the daemon. Leased bytes include spare bytes of the tenant's clients.
  const regatta_tenant_page& tenant() const { return *tenant_; }
  bool is_overcommitted() const {
    return (__atomic_load_n(&tenant_->flags, __ATOMIC_RELAXED) & REGATTA_TENANT_OVERCOMMIT) != 0;
  }

  regatta_lease_counter& lease_counter(int device) const {
    return client_page_->lease_counters[device];
  }
  std::uint64_t spare(int device) const {
    return regatta_lease_word_spare(regatta_lease_counter_read(&lease_counter(device)));
  }
  regatta_work& work(int device) const { return client_page_->works[device]; }
  regatta_work_marks& work_marks(int device) const { return client_page_->work_marks[device]; }
  regatta_engine_usage& engine_usage(int device, regatta_engine engine) const {
    return client_page_->engine_usage[device][engine];
  }
  regatta_residency_state& residency(int device) const { return client_page_->residency[device]; }
  regatta_process& process() const { return client_page_->process; }
  // False while a checkpoint takes the process off its devices or brings it back.
  bool is_on_devices() const {
    return __atomic_load_n(&client_page_->process.state, __ATOMIC_SEQ_CST) ==
           REGATTA_PROCESS_RUNNING;
  }

 private:
  void replace_tenant_page_fd(int fd);

  regatta_tenant_page* tenant_ = nullptr;
  regatta_client_page* client_page_ = nullptr;
  volatile unsigned* fork_marker_ = nullptr;  // 0 in a child of fork()
  KnownFd client_page_fd_;
  int tenant_page_fd_ = -1;  // not owned: the program's
  std::uint64_t tenant_page_inode_ = 0;
};

}  // namespace regatta::sharing
