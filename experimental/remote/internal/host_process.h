// experimental/remote/internal/host_process.h: the process on the server that runs the calls of one
// remote program, one thread for each connection. A hostile client can damage this process only.
#pragma once

#include <atomic>
#include <map>
#include <memory>
#include <unordered_map>

#include "experimental/remote/internal/channel.h"
#include "experimental/remote/internal/handles.h"
#include "experimental/remote/internal/layout.h"
#include "experimental/remote/internal/table.h"
#include "regatta/base/core/mutex.h"
#include "regatta/base/core/result.h"

namespace regatta::remote {

// The driver's functions, by their names.
class DriverFunctions {
 public:
  virtual ~DriverFunctions() = default;
  virtual void* find(const char* symbol) = 0;  // null when it has none
};
Result<std::unique_ptr<DriverFunctions>> load_driver(const std::string& path);

// Not a status of the driver: the message is malformed, which ends the connection.
inline constexpr CUresult kBroken = -1;

class HostProcess {
 public:
  explicit HostProcess(DriverFunctions& driver) : driver_(driver) {}

  Handles& handles() { return handles_; }
  // Null when the driver lacks it.
  template <typename Function>
  Function* find(CallNumber number, const char* name) {
    return reinterpret_cast<Function*>(find(static_cast<std::size_t>(number), name));
  }
  template <typename Function>
  Function* find(const char* name) {
    return reinterpret_cast<Function*>(driver_.find(name));
  }

  CUresult layout(CUfunction function, ParameterLayout& layout);
  void forget_layouts();

  // Progress of each connection; a fence waits for another's.
  void note_progress(std::uint64_t connection, std::uint64_t count);
  void note_start(std::uint64_t connection);
  void note_end(std::uint64_t connection);
  bool wait_for(const Fence& fence);  // false: there was no such connection

  // Pieces on their way to the device.
  std::byte* acquire_piece();
  void release_piece(std::byte* piece);

 private:
  static constexpr int kMostPieces = 64;
  void* find(std::size_t number, const char* name);

  DriverFunctions& driver_;
  Handles handles_;
  std::atomic<void*> functions_[static_cast<std::size_t>(CallNumber::kCount)] = {};

  Mutex layouts_mutex_;
  std::unordered_map<CUfunction, ParameterLayout> layouts_ REGATTA_GUARDED_BY(layouts_mutex_);

  Mutex mutex_;
  ConditionVariable changed_;
  std::map<std::uint64_t, std::uint64_t> progress_ REGATTA_GUARDED_BY(mutex_);
  int waiting_ REGATTA_GUARDED_BY(mutex_) = 0;
  int pieces_ REGATTA_GUARDED_BY(mutex_) = 0;
};

// Runs one message of the table; `answer` gets the results. kBroken: it is malformed.
CUresult run_call(HostProcess& host, std::uint16_t number, std::span<const std::byte> message,
                  Buffer& answer);
bool has_result(std::uint16_t number);

// Serves until the client closes.
void serve_connection(HostProcess& host, ByteChannel& channel, std::uint64_t id);

}  // namespace regatta::remote
