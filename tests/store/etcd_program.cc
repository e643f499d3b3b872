// tests/store/etcd_program.cc: a controller's store in etcd: waits until it leads, then commits
// numbered transactions until it is killed or has done its part.
//
//   regatta-test-etcd-store ENDPOINT NAME COUNT WAIT_SECONDS
//
// Prints "loaded T" when it leads, then "durable T" after each commit. Exit status 3: another
// leads; 4: another error.
#include <cstdlib>
#include <string>

#include <fmt/format.h>
#include <unistd.h>

#include "regatta/platform/store/etcd_store.h"
#include "tests/store/test_transactions.h"

namespace regatta::store {
namespace {

constexpr std::size_t kLongest = 300;

[[noreturn]] void fail_with(const Error& error) {
  fmt::print(stderr, "{}\n", error.message);
  std::_Exit(error.code == Code::kConflict ? 3 : 4);
}

void run_controller(const EtcdStoreOptions& options, std::int64_t count) {
  Result<std::unique_ptr<Store>> store = open_etcd_store(options);
  if (!store) fail_with(store.error());
  const Result<std::int64_t> loaded = count_transactions(**store, kLongest);
  if (!loaded) fail_with(loaded.error());
  const auto print_line = [](const std::string& line) {
    if (::write(STDOUT_FILENO, line.data(), line.size()) < 0) std::_Exit(5);
  };
  print_line(fmt::format("loaded {}\n", *loaded));
  for (std::int64_t number = *loaded + 1; number <= *loaded + count; ++number) {
    Status status = (*store)->commit(test_transaction(number, kLongest));
    if (!status) fail_with(status.error());
    print_line(fmt::format("durable {}\n", number));
    if (number % 5 == 0) status = (*store)->maintain();
    if (!status) fail_with(status.error());
  }
}

}  // namespace
}  // namespace regatta::store

int main(int argc, char** argv) {
  if (argc != 5) return 2;
  regatta::store::run_controller(
      {.endpoints = {argv[1]}, .name = argv[2], .wait_most = regatta::Seconds{std::atof(argv[4])}},
      std::atoll(argv[3]));
}
