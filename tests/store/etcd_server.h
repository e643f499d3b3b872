// tests/store/etcd_server.h: a real etcd on free ports of the loopback interface, in a folder that
// goes with it.
#pragma once

#include <memory>
#include <string>

#include <sys/types.h>

#include "regatta/base/core/result.h"
#include "regatta/base/os/file.h"

namespace regatta::store {

class EtcdServer {
 public:
  // kUnsupported where etcd is not installed.
  static Result<std::unique_ptr<EtcdServer>> start();
  EtcdServer(const EtcdServer&) = delete;
  EtcdServer& operator=(const EtcdServer&) = delete;
  ~EtcdServer();

  const std::string& endpoint() const { return endpoint_; }
  // SIGSTOP and SIGCONT: a server that does not answer.
  void pause();
  void resume();

 private:
  EtcdServer(os::TempFolder folder, std::string endpoint, pid_t pid)
      : folder_(std::move(folder)), endpoint_(std::move(endpoint)), pid_(pid) {}

  os::TempFolder folder_;
  std::string endpoint_;
  pid_t pid_;
};

}  // namespace regatta::store
