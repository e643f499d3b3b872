#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include <linux/ethtool.h>
#include <linux/sockios.h>
#include <net/if.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

#include "regatta/base/os/file.h"
#include "regatta/base/os/netlink.h"
#include "regatta/base/os/unique_fd.h"

namespace regatta::os {
namespace {

constexpr std::uint32_t kMostCounters = 65'536;  // more is an error of the driver
constexpr std::size_t kMayBeAdded = 8'192;       // between two questions

// A command of ethtool with so many bytes behind it.
template <typename Command>
class Buffer {
 public:
  explicit Buffer(std::size_t behind)
      : words_((sizeof(Command) + behind) / sizeof(std::uint64_t) + 1, 0) {}
  Command* get() { return reinterpret_cast<Command*>(words_.data()); }
  const char* behind() const {
    return reinterpret_cast<const char*>(words_.data()) + sizeof(Command);
  }

 private:
  std::vector<std::uint64_t> words_;
};

Error not_there(const std::string& device) {
  return Error{Code::kNotFound, device + ": no network device is called so"};
}

// The `count` counters that the driver wrote. A name may fill its field without a terminating zero.
EthtoolCounters counters_of(const char* names, const char* values, std::uint32_t count) {
  EthtoolCounters counters;
  for (std::uint32_t i = 0; i < count; ++i) {
    const char* const name = names + std::size_t{i} * ETH_GSTRING_LEN;
    std::uint64_t value = 0;
    std::memcpy(&value, values + i * sizeof(value), sizeof(value));
    counters.emplace_back(std::string(name, strnlen(name, ETH_GSTRING_LEN)), value);
  }
  return counters;
}

}  // namespace

Result<EthtoolCounters> ethtool_counters_by(const std::string& device, const EthtoolAsk& ask) {
  const auto failed = [&](int error) {
    if (error == ENODEV) return not_there(device);
    return Error{Code::kUnavailable,
                 device + ": its counters cannot be read: " + errno_text(error)};
  };
  Buffer<ethtool_drvinfo> info(0);
  info.get()->cmd = ETHTOOL_GDRVINFO;
  if (const int error = ask(info.get()); error != 0) {
    if (error == EOPNOTSUPP) return EthtoolCounters();
    return failed(error);
  }
  const std::uint32_t count = info.get()->n_stats;
  if (count == 0) return EthtoolCounters();
  if (count > kMostCounters)
    return Error{Code::kUnavailable, device + ": it has more counters than can be read"};
  // The kernel ignores the given length and writes all counters: queues may have been added
  // meanwhile.
  const std::size_t room = std::size_t{count} + kMayBeAdded;
  const Error changed{Code::kUnavailable, device + ": its counters changed while they were read"};
  Buffer<ethtool_gstrings> names(room * ETH_GSTRING_LEN);
  names.get()->cmd = ETHTOOL_GSTRINGS;
  names.get()->string_set = ETH_SS_STATS;
  names.get()->len = count;
  if (const int error = ask(names.get()); error != 0) return failed(error);
  if (names.get()->len != count) return changed;
  Buffer<ethtool_stats> values(room * sizeof(std::uint64_t));
  values.get()->cmd = ETHTOOL_GSTATS;
  values.get()->n_stats = count;
  if (const int error = ask(values.get()); error != 0) return failed(error);
  if (values.get()->n_stats != count) return changed;
  return counters_of(names.behind(), values.behind(), count);
}

Result<EthtoolCounters> ethtool_counters(const std::string& device) {
  if (device.empty() || device.size() >= IFNAMSIZ) return not_there("'" + device + "'");
  const UniqueFd fd(socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0));
  if (!fd) return Error{Code::kUnavailable, "socket: " + errno_text(errno)};
  return ethtool_counters_by(device, [&](void* command) {
    ifreq request = {};
    std::strncpy(request.ifr_name, device.c_str(), IFNAMSIZ - 1);
    request.ifr_data = static_cast<char*>(command);
    return ioctl(fd.get(), SIOCETHTOOL, &request) == 0 ? 0 : errno;
  });
}

Result<std::vector<std::string>> network_devices() {
  std::vector<std::string> names;
  std::error_code error;
  for (const auto& entry : std::filesystem::directory_iterator("/sys/class/net", error))
    if (const std::string name = entry.path().filename(); name != "lo" && entry.is_directory())
      names.push_back(name);
  if (error) return Error{Code::kUnavailable, "/sys/class/net: " + error.message()};
  std::ranges::sort(names);
  return names;
}

bool has_carrier(const std::string& device) {
  const auto text = read_file("/sys/class/net/" + device + "/carrier");
  return text && text->starts_with("1");
}

}  // namespace regatta::os
