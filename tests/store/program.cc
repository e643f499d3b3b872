// tests/store/program.cc: commits numbered transactions until it is killed or has done its part.
//
//   regatta-test-store FOLDER COUNT [--waiting N] [--longest BYTES] [--shipping FOLDER]
//
// Prints "loaded T" (transactions in the store), then "durable T" after each commit: a line that
// was written is an acknowledgement. Exit status 3: the disk is full; 4: the outcome is unknown.
#include <cstdlib>
#include <string>
#include <string_view>
#include <vector>

#include <fmt/format.h>
#include <unistd.h>

#include "regatta/platform/store/commit_queue.h"
#include "regatta/platform/store/sqlite_store.h"
#include "tests/store/test_transactions.h"

namespace regatta::store {
namespace {

struct Settings {
  SqliteStoreOptions store;
  std::int64_t count = 0;
  int waiting = 1;
  std::size_t longest = 300;
};

void print_line(const std::string& line) {
  const std::string text = line + "\n";
  if (::write(STDOUT_FILENO, text.data(), text.size()) < 0) std::_Exit(5);
}

[[noreturn]] void fail(const Error& error) {
  fmt::print(stderr, "{}\n", error.message);
  std::_Exit(error.code == Code::kExhausted ? 3 : 4);
}

// One commit after another by the store itself: the same system calls in each run.
void commit_alone(Store& store, const Settings& settings, std::int64_t first) {
  for (std::int64_t number = first; number < first + settings.count; ++number) {
    if (const Status status = store.commit(test_transaction(number, settings.longest)); !status)
      fail(status.error());
    print_line(fmt::format("durable {}", number));
    if (const Status status = store.maintain(); !status) fail(status.error());
  }
}

// In groups, with up to so many transactions that wait.
void commit_in_groups(std::unique_ptr<Store> store, const Settings& settings, std::int64_t first) {
  CommitQueue queue(std::move(store), {.maintain_after = Seconds{0.002}},
                    [](const CommitReport& report) {
                      if (!report.status) fail(report.status.error());
                      print_line(fmt::format("durable {}", report.durable / kChangesEach));
                    });
  const auto most = static_cast<std::size_t>(settings.waiting * kChangesEach);
  for (std::int64_t number = first; number < first + settings.count; ++number) {
    while (queue.waiting_changes() >= most)
      ::usleep(100);
    queue.add(test_transaction(number, settings.longest));
  }
}

void run(const Settings& settings) {
  Result<std::unique_ptr<Store>> store = open_sqlite_store(settings.store);
  if (!store) fail(store.error());
  const Result<std::int64_t> loaded = count_transactions(**store, settings.longest);
  if (!loaded) fail(loaded.error());
  print_line(fmt::format("loaded {}", *loaded));
  if (settings.waiting == 1)
    commit_alone(**store, settings, *loaded + 1);
  else
    commit_in_groups(std::move(*store), settings, *loaded + 1);
}

}  // namespace
}  // namespace regatta::store

int main(int argc, char** argv) {
  if (argc < 3) return 2;
  regatta::store::Settings settings;
  settings.store.folder = argv[1];
  settings.store.reserve = regatta::Bytes{1 << 20};
  settings.store.log_pages_max = 64;
  settings.count = std::atoll(argv[2]);
  for (int i = 3; i + 1 < argc; i += 2) {
    const std::string_view name = argv[i];
    if (name == "--waiting") settings.waiting = std::atoi(argv[i + 1]);
    if (name == "--longest") settings.longest = static_cast<std::size_t>(std::atoll(argv[i + 1]));
    if (name == "--shipping") settings.store.backup.shipping_folder = argv[i + 1];
  }
  regatta::store::run(settings);
}
