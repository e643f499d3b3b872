// experimental/remote/internal/handshakes.h: bounds the connections that have not said yet what
// they want, and with them the threads that strangers can start: in all, and of one address, so
// that one stranger keeps nobody else out. Any thread may call.
#pragma once

#include <map>
#include <string>

#include "regatta/base/core/mutex.h"

namespace regatta::remote {

class Handshakes {
 public:
  static constexpr int kOfAllMax = 1024;
  static constexpr int kOfAddressMax = 64;

  // False: there are too many already. `address` is numeric; IPv6 counts by its first 64 bits,
  // which one host has for itself.
  bool begin(const std::string& address);
  void end(const std::string& address);

 private:
  Mutex mutex_;
  int all_ REGATTA_GUARDED_BY(mutex_) = 0;
  std::map<std::string, int> of_address_ REGATTA_GUARDED_BY(mutex_);
};

}  // namespace regatta::remote
